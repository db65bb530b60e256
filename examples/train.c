/* A training from a C program of your own, with the same configuration files, options and folders as `mural train`.
 *
 *     cc train.c $(pkg-config --cflags --libs mural) -o train
 *     ./train --model vit_ti_4 --image-size 28 --channels 1 --classes 10 --data fashion-mnist --batch 64
 *     mpirun -n 2 ./train ...
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include <mural/run.h>

static mural_status train(mural_comm *comm, int argc, char **argv, mural_error *err)
{
	const mural_comm_facts *team = mural_comm_get_facts(comm);
	const mural_config_sources sources = {
	        .argc = argc - 1, .argv = (const char *const *)argv + 1, .ranks = team->size};
	const mural_run_options options = {.progress = stderr};
	mural_config config;
	mural_config_report *report = NULL;
	mural_train_result result;

	/* Every rank has the same options here, so each resolves for itself; rank 0's become everybody's. */
	mural_status status = mural_config_resolve(&config, &report, &sources, err);
	if (status == MURAL_OK)
		status = mural_config_check_supported(&config, report, err);
	status = mural_config_share(&config, comm, status, err);
	if (status == MURAL_OK)
		status = mural_train_run(&config, report, comm, &options, &result, err);
	if (status == MURAL_OK && team->rank == 0)
		printf("test accuracy %.4f, in %s\n", result.test_accuracy, result.run_dir);
	mural_config_report_free(report);
	return status;
}

int main(int argc, char **argv)
{
	mural_error err = {0};
	mural_comm *comm;
	mural_status status = mural_comm_open(&comm, "auto", &err);
	if (status == MURAL_OK) {
		status = train(comm, argc, argv, &err);
		mural_comm_close(comm);
	}
	if (status != MURAL_OK && status != MURAL_PEER) /* one rank tells */
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}

/* An evaluation from data to result. SPDX-License-Identifier: MIT */
#include "comm/comm.h"
#include "engine/run_files.h"

static mural_status evaluate(const mural_config *config, const mural_config_report *report, mural_comm *comm,
                             const char *weights, const mural_data *data, mural_engine **engine,
                             mural_evaluation *evaluation, mural_error *err)
{
	mural_engine_settings settings = {.config = config, .report = report, .comm = comm, .test = data};
	MU_TRY(mural_engine_create(engine, &settings, err));
	MU_TRY(mural_engine_load_weights(*engine, weights, err));
	return mural_engine_evaluate(*engine, data, evaluation, err);
}

mural_status mural_evaluate_run(const mural_config *config, const mural_config_report *report, mural_comm *comm,
                                const char *weights, mural_split split, const mural_run_options *options,
                                mural_evaluation *evaluation, mural_error *err)
{
	const mural_comm_facts *ranks = mural_comm_get_facts(comm);
	const mural_model_config *m = &config->model;
	mural_data *data = NULL;
	mural_engine *engine = NULL;
	mural_status status = ranks->rank == 0 ? mu_result_check(options->result_path, err) : MURAL_OK;
	if (status == MURAL_OK)
		status = mural_data_open(&data, &config->data, split, config->run.seed, m->channels, m->image_height,
		                         m->image_width, m->classes, err);
	status = mural_comm_agree(comm, status, err);
	if (status == MURAL_OK)
		status = evaluate(config, report, comm, weights, data, &engine, evaluation, err);
	if (status == MURAL_OK) {
		if (ranks->rank == 0 && options->result_path)
			status = mu_write_evaluation(options->result_path, evaluation, mural_data_get_facts(data),
			                             ranks->size, err);
		status = mural_comm_agree(comm, status, err);
	}
	mural_engine_free(engine);
	mural_data_free(data);
	return status;
}

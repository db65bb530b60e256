/* `mural info`: what works on this machine and what is missing. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "mural/info.h"

static void help(void)
{
	printf("usage: mural info [OPTIONS]\n\n"
	       "Shows the version, the build, the processor, and which of MPI, GPU and data sets work here;\n"
	       "for what does not work: why, and what to do.\n\n"
	       "options:\n"
	       "  --result FILE              write the same as JSON\n"
	       "  --help                     this text\n");
}

static double gib(size_t bytes)
{
	return (double)bytes / (1 << 30);
}

static void print_part(const char *name, const mural_info_part *part)
{
	printf("  %-18s %s\n", name, part->text);
	if (*part->advice)
		printf("  %-18s -> %s\n", "", part->advice);
}

static void print_info(const mural_info *info)
{
	printf("mural %s\n\nbuild\n", info->version);
	printf("  %-18s %s\n", "compiler", info->compiler);
	printf("  %-18s %s\n", "matrix products", info->matrix_products);
	printf("  %-18s %s\n", "OpenMP", info->openmp ? "yes" : "no: one thread per rank");
	printf("  %-18s %s\n", "image files", info->image_files);
	printf("\nhost %s\n", info->host);
	printf("  %-18s %s\n", "processor", info->processor);
	printf("  %-18s %d usable\n", "cores", info->cores);
	printf("  %-18s %.1f GiB, %.1f GiB of it free\n", "memory", gib(info->memory_bytes),
	       gib(info->memory_free_bytes));
	printf("  %-18s", "instructions");
	for (size_t i = 0; i < info->n_instructions; i++)
		printf(" %s", info->instructions[i]);
	printf("%s\n\nparts\n", info->n_instructions ? "" : " none that matter");
	print_part("MPI", &info->mpi);
	print_part("GPU", &info->gpu);
	print_part("energy", &info->energy);
	print_part("fashion-mnist", &info->fashion_mnist);
}

static int wrong_usage(const char *message, const char *argument)
{
	fprintf(stderr, "mural: info: %s '%s'; `mural info --help` lists the options\n", message, argument);
	return mural_exit_code(MURAL_USAGE);
}

int command_info(int argc, char **argv)
{
	const char *result = NULL;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			help();
			return 0;
		}
		if (strncmp(argv[i], "--result=", 9) == 0)
			result = argv[i] + 9;
		else if (strcmp(argv[i], "--result") != 0)
			return wrong_usage("unknown argument", argv[i]);
		else if (i + 1 < argc)
			result = argv[++i];
		else
			return wrong_usage("a file name is missing behind", argv[i]);
	}
	mural_info info;
	mural_error err = {0};
	mural_info_collect(&info);
	print_info(&info);
	fflush(stdout); /* --result /dev/stdout comes after it */
	if (result && mural_info_write(&info, result, &err) != MURAL_OK) {
		mural_error_print(&err, stderr);
		return mural_exit_code(err.status);
	}
	return 0;
}

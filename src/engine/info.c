/* `mural info`: asks each floor what it has. Nothing here fails; a part that does not work says why and what to do.
 * SPDX-License-Identifier: MIT */
#include "mural/info.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/version.h"
#include "comm/module.h"
#include "data/decode.h"
#include "kernels/cuda.h"
#include "kernels/cpu/dnnl.h"
#include "monitor/nvml.h"
#include "monitor/rapl.h"
#include "mural/comm.h"
#include "mural/data.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown compiler"
#endif

/* The error's words become the part's. */
static void does_not_work(mural_info_part *part, const char *text, const mural_error *err)
{
	part->works = false;
	snprintf(part->text, sizeof part->text, "%s", text);
	snprintf(part->advice, sizeof part->advice, "%.360s%s%.120s", err->message, *err->where ? ": " : "",
	         err->where);
}

static void collect_build(mural_info *info)
{
	snprintf(info->version, sizeof info->version, "%s", MU_VERSION);
	snprintf(info->compiler, sizeof info->compiler, "%s", COMPILER);
	snprintf(info->matrix_products, sizeof info->matrix_products, "%s", mu_dnnl_text());
	snprintf(info->bf16_products, sizeof info->bf16_products, "%s", mu_dnnl_bf16_text());
	snprintf(info->image_files, sizeof info->image_files, "%s", mu_decode_text());
#ifdef _OPENMP
	info->openmp = true;
#endif
}

/* Whole words of the flags line: "avx" is not in "avx2". */
static bool has_word(const char *line, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = line; (at = strstr(at, word)); at += length)
		if ((at == line || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

static void collect_instructions(mural_info *info)
{
	static const struct {
		const char *flag, *name;
	} rows[] = {
	        {"avx2", "AVX2"},    {"avx512f", "AVX512"}, {"avx512_vnni", "AVX512_VNNI"},
	        {"amx_bf16", "AMX"}, {"asimd", "NEON"},     {"avx512_bf16", "AVX512_BF16"},
	        {"sve", "SVE"},      {"bf16", "BF16"},
	};
	char flags[4096] = "";
	if (!mu_proc_text("/proc/cpuinfo", "flags", flags, sizeof flags))
		mu_proc_text("/proc/cpuinfo", "Features", flags, sizeof flags); /* ARM */
	for (size_t i = 0; i < sizeof rows / sizeof *rows && info->n_instructions < MURAL_INFO_INSTRUCTIONS; i++)
		if (has_word(flags, rows[i].flag))
			snprintf(info->instructions[info->n_instructions++], sizeof info->instructions[0], "%s",
			         rows[i].name);
}

static void collect_host(mural_info *info)
{
	if (gethostname(info->host, sizeof info->host) != 0)
		snprintf(info->host, sizeof info->host, "unknown");
	info->host[sizeof info->host - 1] = '\0';
	mu_proc_processor(info->processor, sizeof info->processor);
	info->cores = mural_cores();
	info->memory_bytes = mu_proc_bytes("/proc/meminfo", "MemTotal");
	info->memory_free_bytes = mu_proc_bytes("/proc/meminfo", "MemAvailable");
	collect_instructions(info);
}

static void collect_mpi(mural_info_part *part)
{
	const mu_comm_module *module;
	mural_error err = {0};
	if (mu_comm_module_load("mural_comm_mpi.so", &module, &err) != MURAL_OK) {
		does_not_work(part, "none: one rank only", &err);
		return;
	}
	char library[128] = "";
	module->library(library, sizeof library);
	part->works = true;
	snprintf(part->text, sizeof part->text, "%s: module \"%s\" found and loaded", library, module->flavour);
}

/* Works: training takes it. Otherwise the module says why not: none built, no driver, too old, no card. */
static void collect_gpu(mural_info_part *part)
{
	mural_error err = {0};
	const mu_cuda_module *module;
	if (mu_cuda_load(&module, &err) == MURAL_OK) {
		part->works = true;
		module->describe(part->text, sizeof part->text);
		return;
	}
	snprintf(part->text, sizeof part->text, "not used: %.240s", err.message);
	snprintf(part->advice, sizeof part->advice, "%.500s", err.where);
}

/* Either meter is worth having; the other's reason is told beside it. */
static void collect_energy(mural_info_part *part)
{
	mu_rapl rapl;
	mu_nvml nvml;
	mu_rapl_open(&rapl);
	mu_nvml_open(&nvml, NULL);
	double watts = mu_nvml_watts(&nvml);
	part->works = rapl.n > 0 || nvml.functions;
	int used = snprintf(part->text, sizeof part->text, "%s%s", rapl.n > 0 ? "processors: " : "", rapl.names);
	if (nvml.functions)
		snprintf(part->text + used, sizeof part->text - (size_t)used, "%sGPU: %s, %.0f W now",
		         used > 0 ? "; " : "", nvml.name, watts);
	if (!part->works)
		snprintf(part->text, sizeof part->text, "not measurable here");
	if (rapl.n == 0)
		snprintf(part->advice, sizeof part->advice, "processors: %s", rapl.why);
	mu_rapl_close(&rapl);
}

static void collect_fashion_mnist(mural_info_part *part)
{
	mural_data_config config = {.path = "fashion-mnist", .fraction = 1};
	uint64_t images[2];
	for (int split = 0; split < 2; split++) {
		mural_data *data = NULL;
		mural_error err = {0};
		mural_split which = split ? MURAL_SPLIT_TEST : MURAL_SPLIT_TRAIN;
		if (mural_data_open(&data, &config, which, 0, 1, 28, 28, 10, &err) != MURAL_OK) {
			does_not_work(part, "not usable", &err);
			return;
		}
		images[split] = mural_data_get_facts(data)->images;
		mural_data_free(data);
	}
	part->works = true;
	snprintf(part->text, sizeof part->text, "%llu training and %llu test images", (unsigned long long)images[0],
	         (unsigned long long)images[1]);
}

void mural_info_collect(mural_info *info)
{
	*info = (mural_info){0};
	collect_build(info);
	collect_host(info);
	collect_mpi(&info->mpi);
	collect_gpu(&info->gpu);
	collect_energy(&info->energy);
	collect_fashion_mnist(&info->fashion_mnist);
}

static void write_part(mu_json *json, const char *key, const mural_info_part *part)
{
	mu_json_object_begin(json, key);
	mu_json_bool(json, "works", part->works);
	mu_json_string(json, "text", part->text);
	mu_json_string(json, "advice", *part->advice ? part->advice : NULL);
	mu_json_object_end(json);
}

static void write_seats(mu_json *json, const mural_seat *seats, int n)
{
	mu_json_array_begin(json, "ranks");
	for (int r = 0; r < n; r++) {
		mu_json_object_begin(json, NULL);
		mu_json_integer(json, "rank", seats[r].rank);
		mu_json_string(json, "host", seats[r].host);
		mu_json_integer(json, "local_rank", seats[r].local_rank);
		mu_json_integer(json, "slot", seats[r].slot);
		mu_json_integer(json, "cores", seats[r].cores);
		mu_json_string(json, "cpus", seats[r].cpus);
		mu_json_string(json, "device", seats[r].device);
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
}

static void write_info(mu_json *json, const mural_info *info, const mural_seat *seats, int n_seats)
{
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "mural_version", info->version);
	mu_json_string(json, "compiler", info->compiler);
	mu_json_string(json, "matrix_products", info->matrix_products);
	mu_json_string(json, "bf16_products", info->bf16_products);
	mu_json_bool(json, "openmp", info->openmp);
	mu_json_string(json, "image_files", info->image_files);
	mu_json_string(json, "host", info->host);
	mu_json_string(json, "processor", info->processor);
	mu_json_integer(json, "cores", info->cores);
	mu_json_unsigned(json, "memory_bytes", info->memory_bytes);
	mu_json_unsigned(json, "memory_free_bytes", info->memory_free_bytes);
	mu_json_array_begin(json, "instructions");
	for (size_t i = 0; i < info->n_instructions; i++)
		mu_json_string(json, NULL, info->instructions[i]);
	mu_json_array_end(json);
	write_part(json, "mpi", &info->mpi);
	write_part(json, "gpu", &info->gpu);
	write_part(json, "energy", &info->energy);
	write_part(json, "fashion_mnist", &info->fashion_mnist);
	if (seats)
		write_seats(json, seats, n_seats);
	mu_json_object_end(json);
}

mural_status mural_info_write(const mural_info *info, const mural_seat *seats, int n_seats, const char *path,
                              mural_error *err)
{
	mu_file file;
	mu_json json;
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	write_info(&json, info, seats, n_seats);
	if (!mu_json_finished(&json) && !ferror(file.out)) {
		mu_file_abandon(&file);
		return mu_bug(err, "unfinished JSON");
	}
	return mu_file_commit(&file, err);
}

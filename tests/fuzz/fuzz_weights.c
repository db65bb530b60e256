/* Any tensors under any names, with any configuration file beside them, as weights: refused with words, or for a model that can be,
 * whose every tensor can be taken.
 *
 * Bytes 0 and 1: how many of the following are config.json (0: there is none). Byte 2: bit 0, the rest is preprocessor_config.json
 * as well. Then model.safetensors.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/data_files.h"
#include "weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

#define MOST_ELEMENTS ((size_t)1 << 20) /* of a model; larger ones only cost time */

static char *folder;

static void remove_folder(void)
{
	test_folder_remove(folder);
}

static void take_all(const mural_weights *weights)
{
	mural_model_config config = mural_weights_get_facts(weights)->model;
	mu_vit vit;
	config.classes += config.classes == 0;
	if (mural_model_config_check(&config, NULL) != MURAL_OK || mu_vit_init(&vit, &config, NULL) != MURAL_OK)
		abort();
	for (size_t u = 0; u < vit.n_units && vit.elements <= MOST_ELEMENTS; u++)
		for (size_t i = 0; i < vit.units[u].n_tensors; i++) {
			float *to = malloc(vit.units[u].tensors[i].elements * sizeof *to);
			if (!to || mu_weights_take(weights, &vit, &vit.units[u], &vit.units[u].tensors[i], to, NULL) !=
			                   MURAL_OK)
				abort();
			free(to);
		}
	mu_vit_release(&vit);
}

static void beside(const char *name, const uint8_t *bytes, size_t n, bool wanted)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	if (wanted)
		test_file_write(folder, name, bytes, n);
	else
		remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	mural_weights *weights;
	mural_error err = {0};
	if (!folder) {
		folder = test_folder_create();
		atexit(remove_folder);
	}
	if (n < 3)
		return 0;
	size_t config = (input[0] | (size_t)input[1] << 8) % (n - 2);
	bool both = input[2] & 1;
	input += 3;
	n -= 3;
	beside("config.json", input, config, config > 0);
	beside("preprocessor_config.json", input, config, config > 0 && both);
	beside("model.safetensors", input + config, n - config, true);
	mural_status status = mural_weights_open(&weights, folder, &err);
	if (status != MURAL_OK && (status != MURAL_DATA || weights || !err.message[0] || !err.where[0]))
		abort();
	if (status == MURAL_OK)
		take_all(weights);
	mural_weights_free(weights);
	return 0;
}

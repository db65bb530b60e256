/* Weight files that say what it takes to use them: the model's details, what was done to images, names of classes.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "engine/engine_internal.h"
#include "engine/weights.h"

/* What was done to the images, so that others can do the same. */
static mural_preprocess preprocess_of(const mural_engine *engine, const mural_data *data)
{
	const mural_data_config *c = &engine->config.data;
	mural_preprocess p;
	mu_preprocess_default(&p, MU_NAMING_TORCHVISION, &engine->config.model);
	p.resize = c->resize;
	p.filter = c->filter;
	p.resize_side = c->resize_side;
	if (data || c->normalise_given) {
		memcpy(p.mean, data ? data->mean : c->mean, sizeof p.mean);
		memcpy(p.std, data ? data->std : c->std, sizeof p.std);
	}
	return p;
}

/* What it takes to use the engine's weights; the caller frees it. NULL: no memory. */
static char *describe(const mural_engine *engine)
{
	const mural_data *data = engine->train; /* NULL when nothing is trained */
	const mural_preprocess preprocess = preprocess_of(engine, data);
	bool named = data && data->class_names.n == engine->config.model.classes;
	return mu_weights_describe(&engine->config.model, &preprocess,
	                           named ? (const char *const *)data->class_names.names : NULL);
}

mural_status mu_engine_lay_out_weights(const mural_engine *engine, const mu_store *store, mu_safetensors_layout *layout,
                                       mural_error *err)
{
	char *note = describe(engine);
	if (!note)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to describe the weights");
	mural_status status = mu_weights_lay_out(&engine->vit, store, note, layout, err);
	free(note);
	return status;
}

mural_status mu_engine_write_weights(const mural_engine *engine, const mu_store *store, const char *path,
                                     mural_error *err)
{
	mu_safetensors_layout layout;
	MU_TRY(mu_engine_lay_out_weights(engine, store, &layout, err));
	mural_status status = mu_safetensors_write_layout(path, &layout, err);
	mu_safetensors_layout_release(&layout);
	return status;
}

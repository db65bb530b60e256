/* Do weights fit a model? The whole file is compared with the whole model first, so that one message can tell everything
 * that does not fit.
 * SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "weights/positions.h"
#include "weights/weights.h"

#define LISTED 4 /* names per complaint; the rest is counted */

void mu_weights_note(char notes[MURAL_WEIGHTS_NOTES], const char *format, ...)
{
	size_t used = notes ? strlen(notes) : 0;
	if (!notes || used + 2 >= MURAL_WEIGHTS_NOTES)
		return;
	if (used) {
		notes[used++] = '\n';
		notes[used] = '\0';
	}
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(notes + used, MURAL_WEIGHTS_NOTES - used, format, arguments);
	va_end(arguments);
}

/* One kind of complaint: names until they get too many. */
typedef struct complaint {
	const char *kind;
	size_t count;
	char text[320];
} complaint;

typedef enum complaint_kind { MISSING, UNEXPECTED, SHAPED, TYPED, KINDS } complaint_kind;

__attribute__((format(printf, 2, 3))) static void complain(complaint *c, const char *format, ...)
{
	size_t used = strlen(c->text);
	if (c->count++ >= LISTED)
		return;
	used += (size_t)snprintf(c->text + used, sizeof c->text - used, "%s", c->count > 1 ? ", " : "");
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(c->text + used, sizeof c->text - used, format, arguments);
	va_end(arguments);
}

/* "[768, 3, 16, 16]" into a buffer, cut where it ends. */
static const char *shape_text(const uint64_t *dims, size_t n, char text[64])
{
	size_t used = 1;
	snprintf(text, 64, "[");
	for (size_t i = 0; i < n && used < 40; i++)
		used += (size_t)snprintf(text + used, 64 - used, "%s%llu", i ? ", " : "", (unsigned long long)dims[i]);
	snprintf(text + used, 64 - used, "]");
	return text;
}

size_t mu_weights_part_dims(mu_naming naming, const mu_vit *vit, const mu_tensor *tensor,
                            uint64_t dims[MU_STORED_MAX_DIMS])
{
	const mural_model_config *c = &vit->config;
	bool jax = naming == MU_NAMING_JAX || naming == MU_NAMING_BIG_VISION;
	const size_t head = c->width / c->heads;
	size_t n = (size_t)tensor->n_dims;
	for (size_t i = 0; i < n; i++)
		dims[i] = tensor->dims[i];
	if (mu_naming_parts(naming, tensor->role) == 3)
		dims[0] = c->width;
	if (!jax)
		return n;
#define SHAPE(...)                                      \
	do {                                            \
		const uint64_t shape[] = {__VA_ARGS__}; \
		memcpy(dims, shape, sizeof shape);      \
		n = sizeof shape / sizeof *shape;       \
	} while (0)
	switch (tensor->role) {
	case MU_ROLE_PATCH_W: SHAPE(c->patch, c->patch, c->channels, c->width); break;
	case MU_ROLE_QKV_W: SHAPE(c->width, c->heads, head); break;
	case MU_ROLE_QKV_B: SHAPE(c->heads, head); break;
	case MU_ROLE_OUT_W: SHAPE(c->heads, head, c->width); break;
	case MU_ROLE_FC1_W:
	case MU_ROLE_FC2_W:
	case MU_ROLE_HEAD_W: SHAPE(tensor->dims[1], tensor->dims[0]); break;
	default: break;
	}
#undef SHAPE
	return n;
}

static bool is_head(mu_role role)
{
	return role == MU_ROLE_HEAD_W || role == MU_ROLE_HEAD_B;
}

bool mu_weights_head_differs(const mural_weights *weights, const mu_vit *vit)
{
	return weights->facts.model.classes != vit->config.classes;
}

static bool other_grid(const mural_weights *weights, const mu_vit *vit)
{
	const mural_model_config *c = &vit->config;
	return weights->grid_height != c->image_height / c->patch || weights->grid_width != c->image_width / c->patch;
}

/* A position table of another grid, or one without a row for the class token, can be made to fit. */
static bool positions_can_fit(const mural_weights *weights, const mu_vit *vit, const mu_stored *found,
                              mu_weights_wish wish)
{
	return found->n_dims == 3 && found->dims[2] == vit->config.width && weights->position_prefix <= vit->prefix &&
	       (wish.new_positions || !other_grid(weights, vit));
}

static void compare_part(const mural_weights *weights, const mu_vit *vit, const mu_unit *unit, const mu_tensor *tensor,
                         unsigned part, mu_weights_wish wish, complaint complaints[KINDS])
{
	char name[128], ours[64], theirs[64];
	uint64_t dims[MU_STORED_MAX_DIMS];
	size_t n = mu_weights_part_dims(weights->naming, vit, tensor, dims);
	const mu_stored *found = mu_weights_part(weights, tensor->role, unit->block, vit->config.pool, part, name);
	if (!found)
		complain(&complaints[MISSING], "%s", name[0] ? name : tensor->name);
	else if (!mu_stored_is_float(found))
		complain(&complaints[TYPED], "%s is %s", name, found->dtype);
	else if (tensor->role == MU_ROLE_POSITION && positions_can_fit(weights, vit, found, wish))
		return;
	else if (n != found->n_dims || memcmp(dims, found->dims, n * sizeof *dims) != 0)
		complain(&complaints[SHAPED], "%s is %s instead of %s", name,
		         shape_text(found->dims, found->n_dims, theirs), shape_text(dims, n, ours));
}

/* The commonest mismatch has its own words. */
static mural_status check_classes(const mural_weights *weights, const mu_vit *vit, mu_weights_wish wish,
                                  mural_error *err)
{
	char name[128];
	size_t classes = weights->facts.model.classes;
	(void)mu_weights_part(weights, MU_ROLE_HEAD_W, 0, vit->config.pool, 0, name);
	if (!mu_weights_head_differs(weights, vit) || wish.new_head)
		return MURAL_OK;
	if (classes == 0)
		return mu_fail(err, MURAL_DATA, weights->facts.path,
		               "the weights have no classifier (%s): they can only begin a training", name);
	return mu_fail(err, MURAL_DATA, weights->facts.path,
	               "the weights are for %zu classes (%s), the model has %zu: set the model's classes to %zu",
	               classes, name, vit->config.classes, classes);
}

/* No shape tells heads where q, k and v are fused, and another number makes another model. */
static mural_status check_heads(const mural_weights *weights, const mu_vit *vit, mural_error *err)
{
	size_t heads = weights->facts.model.heads;
	if (heads == vit->config.heads || weights->heads_assumed || vit->config.width != weights->facts.model.width)
		return MURAL_OK;
	return mu_fail(err, MURAL_DATA, weights->facts.path,
	               "the weights were made with %zu heads (%s), the model has %zu", heads, weights->facts.heads_from,
	               vit->config.heads);
}

static mural_status fail_all(const mural_weights *weights, const complaint complaints[KINDS], mural_error *err)
{
	char text[900] = "";
	for (size_t i = 0; i < KINDS; i++) {
		const complaint *c = &complaints[i];
		size_t used = strlen(text);
		if (c->count)
			snprintf(text + used, sizeof text - used, "%s%zu %s (%s%s)", used ? "; " : "", c->count,
			         c->kind, c->text, c->count > LISTED ? ", ..." : "");
	}
	if (!text[0])
		return MURAL_OK;
	return mu_fail(err, MURAL_DATA, weights->facts.path, "the weights do not fit the model: tensors %s", text);
}

/* Tensors of blocks that this model does not have are unexpected to it, though they have a place by name. */
static void complain_of_rest(const mural_weights *weights, const mu_vit *vit, mu_weights_wish wish, complaint *c)
{
	char name[128];
	const mural_model_config *model = &weights->facts.model;
	for (size_t block = vit->config.depth; block < model->depth; block++)
		for (mu_role role = MU_ROLE_NORM1_W; role <= MU_ROLE_FC2_B; role++)
			for (unsigned part = 0; part < mu_naming_parts(weights->naming, role); part++)
				if (mu_weights_part(weights, role, (int)block, model->pool, part, name))
					complain(c, "%s", name);
	for (mu_role role = MU_ROLE_NORM_W; model->pool != vit->config.pool && role <= MU_ROLE_NORM_B; role++)
		if (mu_weights_part(weights, role, 0, model->pool, 0, name))
			complain(c, "%s", name);
	if (model->class_token && !vit->config.class_token &&
	    mu_weights_part(weights, MU_ROLE_CLASS_TOKEN, 0, model->pool, 0, name))
		complain(c, "%s", name);
	for (size_t i = 0; !wish.ignore_unmatched && weights->unmatched[i]; i++)
		complain(c, "%.80s", weights->unmatched[i]);
}

/* Lists names, "a, b, ...". */
static void note_names(char notes[MURAL_WEIGHTS_NOTES], const char *what, const char *const *names)
{
	complaint c = {0};
	for (size_t i = 0; names[i]; i++)
		complain(&c, "%.80s", names[i]);
	if (c.count)
		mu_weights_note(notes, "%zu tensor%s %s: %s%s", c.count, c.count == 1 ? "" : "s", what, c.text,
		                c.count > LISTED ? ", ..." : "");
}

static void note_adaptations(const mural_weights *weights, const mu_vit *vit, mu_weights_wish wish,
                             char notes[MURAL_WEIGHTS_NOTES])
{
	const mural_model_config *ours = &vit->config, *theirs = &weights->facts.model;
	if (theirs->classes == 0)
		mu_weights_note(notes, "the weights have no classifier: the head for %zu classes is initialised",
		                ours->classes);
	else if (mu_weights_head_differs(weights, vit))
		mu_weights_note(notes, "the weights are for %zu classes, the model has %zu: the head is initialised",
		                theirs->classes, ours->classes);
	if (other_grid(weights, vit))
		mu_weights_note(notes, "positions are resized from %zu x %zu to %zu x %zu patches: %s",
		                weights->grid_height, weights->grid_width, ours->image_height / ours->patch,
		                ours->image_width / ours->patch, mu_positions_convention(weights->naming));
	if (ours->norm_eps != theirs->norm_eps)
		mu_weights_note(notes, "the weights were made with norm_eps %g, the model has %g", theirs->norm_eps,
		                ours->norm_eps);
	if (ours->gelu != theirs->gelu)
		mu_weights_note(notes, "the weights were made with gelu %s, the model has %s",
		                theirs->gelu == MURAL_GELU_TANH ? "tanh" : "erf",
		                ours->gelu == MURAL_GELU_TANH ? "tanh" : "erf");
	note_names(notes, "of no use here", weights->set_aside);
	if (wish.ignore_unmatched)
		note_names(notes, "without a place in the model left out", weights->unmatched);
}

mural_status mu_weights_match(const mural_weights *weights, const mu_vit *vit, mu_weights_wish wish,
                              char notes[MURAL_WEIGHTS_NOTES], mural_error *err)
{
	complaint complaints[KINDS] = {[MISSING] = {.kind = "missing"},
	                               [UNEXPECTED] = {.kind = "unexpected"},
	                               [SHAPED] = {.kind = "of another shape"},
	                               [TYPED] = {.kind = "of no floating-point type"}};
	MU_TRY(check_classes(weights, vit, wish, err));
	MU_TRY(check_heads(weights, vit, err));
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++) {
			const mu_tensor *tensor = &vit->units[u].tensors[i];
			if (is_head(tensor->role) && mu_weights_head_differs(weights, vit))
				continue;
			for (unsigned part = 0; part < mu_naming_parts(weights->naming, tensor->role); part++)
				compare_part(weights, vit, &vit->units[u], tensor, part, wish, complaints);
		}
	complain_of_rest(weights, vit, wish, &complaints[UNEXPECTED]);
	MU_TRY(fail_all(weights, complaints, err));
	if (notes)
		note_adaptations(weights, vit, wish, notes);
	return MURAL_OK;
}

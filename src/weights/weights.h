/* Weights from elsewhere, and how they fill a model of ours.
 *
 *     mural_weights_open                            open.c      naming and geometry from names and shapes; sidecar.c adds what
 *                                                               only configuration files tell
 *     mu_weights_match(weights, &vit, wish, ...)    match.c     compares all names, shapes and types with a model
 *     mu_weights_take(weights, &vit, u, t, to, ...) take.c      one tensor of the model, in its layout, as fp32
 *
 * SPDX-License-Identifier: MIT */
#ifndef MU_WEIGHTS_WEIGHTS_H
#define MU_WEIGHTS_WEIGHTS_H

#include "data/class_names.h"
#include "model/names.h"
#include "model/vit.h"
#include "mural/weights.h"
#include "weights/file.h"

struct mural_weights {
	mu_weights_file *file;
	mural_weights_facts facts;
	mu_naming naming;
	char prefix[16]; /* in front of all names but Hugging Face's head: "vit.", "opt/target/" */
	/* The position table: rows for the class token (0 or 1), then a grid of patches. */
	size_t position_prefix, grid_height, grid_width;
	mu_class_names class_names;
	bool heads_assumed;
	const char **unmatched; /* NULL-terminated */
	const char **set_aside; /* the same: known to be of no use, such as a pooler */
};

/* What may differ between weights and model. */
typedef struct mu_weights_wish {
	bool new_head; /* another number of classes, or no head at all: the model's stays as it is */
	bool new_positions; /* another image size: positions are resized */
	bool ignore_unmatched; /* names without a place */
} mu_weights_wish;

/* Lines for people, cut where the buffer ends. */
__attribute__((format(printf, 2, 3))) void mu_weights_note(char notes[MURAL_WEIGHTS_NOTES], const char *format, ...);

/* MURAL_DATA naming everything that does not fit. notes: what will be adapted or left out. */
mural_status mu_weights_match(const mural_weights *weights, const mu_vit *vit, mu_weights_wish wish,
                              char notes[MURAL_WEIGHTS_NOTES], mural_error *err);

/* Fills tensor->elements numbers, after a match. A head that the weights do not have is left as it is. */
mural_status mu_weights_take(const mural_weights *weights, const mu_vit *vit, const mu_unit *unit,
                             const mu_tensor *tensor, float *to, mural_error *err);

/* The tensor of the file that holds this part of a role, or NULL; its name, looked for, goes to `name`. */
const mu_stored *mu_weights_part(const mural_weights *weights, mu_role role, int block, mural_pool pool, unsigned part,
                                 char name[128]);
/* Is the head of another number of classes, or missing? */
bool mu_weights_head_differs(const mural_weights *weights, const mu_vit *vit);

/* Shape of a part as the file's naming has it; the number of dims. */
size_t mu_weights_part_dims(mu_naming naming, const mu_vit *vit, const mu_tensor *tensor,
                            uint64_t dims[MU_STORED_MAX_DIMS]);

/* sidecar.c: fills facts and class names from the "mural" note, or from config.json and preprocessor_config.json beside the
 * file. Geometry is there already; MURAL_DATA when a file contradicts it or cannot be read. */
mural_status mu_weights_read_sidecars(mural_weights *weights, mural_error *err);

/* preprocess.c: what an origin does with images when no file tells. */
void mu_preprocess_default(mural_preprocess *p, mu_naming naming, const mural_model_config *model);

/* notes.c: what Mural writes into a safetensors file's metadata under the key "mural": all that the tensors do not
 * tell. NULL when there is no memory; the caller frees. names: NULL or model->classes of them. */
#define MU_WEIGHTS_NOTE_KEY "mural"
char *mu_weights_describe(const mural_model_config *model, const mural_preprocess *preprocess,
                          const char *const *class_names);
/* Reads it back. *class_names gets what is there. */
mural_status mu_weights_read_description(mural_weights *weights, const char *text, mural_error *err);

#endif

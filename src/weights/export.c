/* Weights under another project's names: read into a model of ours, written out of it.
 * SPDX-License-Identifier: MIT */
#include "weights/export.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

/* The model's tensors in host memory. */
typedef struct copy {
	mu_vit vit;
	float *spans; /* all units, one behind the other */
	mu_safetensors_item *items;
	char (*names)[128];
	size_t n;
} copy;

static const mu_naming written[] = {[MURAL_NAMING_TORCHVISION] = MU_NAMING_TORCHVISION,
                                    [MURAL_NAMING_TIMM] = MU_NAMING_TIMM,
                                    [MURAL_NAMING_HUGGINGFACE] = MU_NAMING_HUGGINGFACE};

/* ---- What the other library cannot be told. ---- */

static mural_status check_expressible(const mural_weights *w, const mural_weights_conversion *c, mural_error *err)
{
	static const char *const whose[] = {"torchvision", "timm", "Hugging Face"};
	const mural_model_config *m = &w->facts.model;
	if ((unsigned)c->naming > MURAL_NAMING_HUGGINGFACE)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "weights are written under torchvision's, timm's and Hugging Face's "
		               "names only");
	if (c->naming != MURAL_NAMING_TIMM && (m->pool == MURAL_POOL_MEAN || !m->class_token))
		return mu_fail(err, MURAL_USAGE, w->facts.path,
		               "%s has no such model: these weights pool by %s, and its models pool by class token",
		               whose[c->naming], m->pool == MURAL_POOL_MEAN ? "mean" : "token");
	if (c->naming == MURAL_NAMING_TORCHVISION && m->classes == 0)
		return mu_fail(err, MURAL_USAGE, w->facts.path,
		               "torchvision's models have a classifier, and these weights have none");
	if (c->naming == MURAL_NAMING_TORCHVISION && m->image_height != m->image_width)
		return mu_fail(err, MURAL_USAGE, w->facts.path,
		               "torchvision's models take square images, and these weights are for %zu x %zu",
		               m->image_height, m->image_width);
	return MURAL_OK;
}

/* What it computes differently by a little. */
static void note_differences(const mural_weights *w, const mural_weights_conversion *c, char *notes)
{
	const mural_model_config *m = &w->facts.model;
	if (c->naming == MURAL_NAMING_HUGGINGFACE)
		return; /* its config.json tells both */
	if (m->norm_eps < 0.999e-6 || m->norm_eps > 1.001e-6)
		mu_weights_note(
		        notes,
		        "these weights were made with norm_eps %g; models of %s have 1e-06: outputs differ by a "
		        "little",
		        m->norm_eps, c->naming == MURAL_NAMING_TIMM ? "timm" : "torchvision");
	if (m->gelu == MURAL_GELU_TANH && c->naming == MURAL_NAMING_TORCHVISION)
		mu_weights_note(notes,
		                "these weights were made with gelu tanh; models of torchvision have erf: outputs "
		                "differ by a little");
}

/* ---- Into memory. ---- */

static mural_status load(copy *k, const mural_weights *w, mural_error *err)
{
	mural_model_config config = w->facts.model;
	if (config.classes == 0)
		config.classes = 1; /* taken away again below */
	MU_TRY(mu_vit_init(&k->vit, &config, err));
	k->spans = malloc(k->vit.elements * sizeof *k->spans);
	if (!k->spans)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, w->facts.path, "no memory for %s of weights",
		               MU_SIZE(k->vit.elements * sizeof *k->spans));
	float *span = k->spans;
	for (size_t u = 0; u < k->vit.n_units; span += k->vit.units[u].elements, u++)
		for (size_t i = 0; i < k->vit.units[u].n_tensors; i++) {
			const mu_tensor *tensor = &k->vit.units[u].tensors[i];
			MU_TRY(mu_weights_take(w, &k->vit, &k->vit.units[u], tensor, span + tensor->offset, err));
		}
	return MURAL_OK;
}

static void name_part(const copy *k, const mural_weights *w, mural_naming naming, const mu_unit *unit,
                      const mu_tensor *tensor, unsigned part, char name[128])
{
	char bare[96];
	bool head = tensor->role == MU_ROLE_HEAD_W || tensor->role == MU_ROLE_HEAD_B;
	bool inner = naming == MURAL_NAMING_HUGGINGFACE && !head && w->facts.model.classes > 0;
	mu_tensor_name(written[naming], tensor->role, unit->block, k->vit.config.pool, part, bare, sizeof bare);
	snprintf(name, 128, "%s%s", inner ? "vit." : "", bare);
}

/* q, k and v lie one behind the other, so parts need no copy: only their own first dim. */
static mural_status list_items(copy *k, const mural_weights *w, mural_naming naming, mural_error *err)
{
	size_t most = 0;
	for (size_t u = 0; u < k->vit.n_units; u++)
		most += 3 * k->vit.units[u].n_tensors;
	k->items = calloc(most, sizeof *k->items);
	k->names = calloc(most, sizeof *k->names);
	if (!k->items || !k->names)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, w->facts.path, "no memory for the table of weights");
	float *span = k->spans;
	for (size_t u = 0; u < k->vit.n_units; span += k->vit.units[u].elements, u++)
		for (size_t i = 0; i < k->vit.units[u].n_tensors; i++) {
			mu_tensor *tensor = &k->vit.units[u].tensors[i];
			unsigned parts = mu_naming_parts(written[naming], tensor->role);
			bool head = tensor->role == MU_ROLE_HEAD_W || tensor->role == MU_ROLE_HEAD_B;
			if (head && w->facts.model.classes == 0)
				continue;
			tensor->dims[0] /= parts;
			for (unsigned part = 0; part < parts; part++) {
				name_part(k, w, naming, &k->vit.units[u], tensor, part, k->names[k->n]);
				k->items[k->n] = (mu_safetensors_item){.name = k->names[k->n],
				                                       .type = MU_F32,
				                                       .n_dims = (size_t)tensor->n_dims,
				                                       .dims = tensor->dims,
				                                       .data = span + tensor->offset +
				                                               part * (tensor->elements / parts)};
				k->n++;
			}
		}
	return MURAL_OK;
}

static void release(copy *k)
{
	mu_vit_release(&k->vit);
	free(k->spans);
	free(k->items);
	free(k->names);
}

/* ---- Onto the disk. ---- */

static bool ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);
	return n > m && strcmp(path + n - m, end) == 0;
}

/* Our note is for Mural's own names: under others, files beside the weights tell. */
static mural_status write_safetensors(const copy *k, const mural_weights *w, mural_naming naming, const char *path,
                                      mural_error *err)
{
	char *text = naming == MURAL_NAMING_TORCHVISION
	                     ? mu_weights_describe(&w->facts.model, &w->facts.preprocess,
	                                           w->class_names.n ? (const char *const *)w->class_names.names : NULL)
	                     : NULL;
	const mu_safetensors_note note = {MU_WEIGHTS_NOTE_KEY, text};
	if (naming == MURAL_NAMING_TORCHVISION && !text)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to describe the weights");
	mural_status status = mu_safetensors_write_noted(path, k->items, k->n, &note, text ? 1 : 0, err);
	free(text);
	return status;
}

static void remove_folder(const char *folder)
{
	static const char *const names[] = {"model.safetensors", "config.json", "preprocessor_config.json"};
	char path[PATH_MAX];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) < (int)sizeof path)
			unlink(path);
	rmdir(folder);
}

/* Written as NAME.part, which gets its name when all is there. */
static mural_status write_folder(const copy *k, const mural_weights *w, const mural_weights_conversion *c,
                                 mural_error *err)
{
	char part[PATH_MAX], path[PATH_MAX];
	size_t length = strlen(c->to);
	while (length > 1 && c->to[length - 1] == '/')
		length--;
	snprintf(part, sizeof part, "%.*s.part", (int)length, c->to);
	if (snprintf(path, sizeof path, "%s/model.safetensors", part) >= (int)sizeof path)
		return mu_fail(err, MURAL_USAGE, c->to, "the path is too long");
	MU_TRY(mu_make_folders(part, err));
	mural_status status = mu_export_configuration(w, c->naming, part, err);
	if (status == MURAL_OK)
		status = write_safetensors(k, w, c->naming, path, err);
	snprintf(path, sizeof path, "%.*s", (int)length, c->to);
	if (status == MURAL_OK && rename(part, path) != 0)
		status = mu_fail(err, MURAL_FAILED, path, "cannot name the folder: %s", strerror(errno));
	if (status != MURAL_OK)
		remove_folder(part);
	else
		mu_sync_folder_of(path);
	return status;
}

static mural_status write_out(const copy *k, const mural_weights *w, const mural_weights_conversion *c,
                              mural_error *err)
{
	if (ends_with(c->to, ".safetensors"))
		return write_safetensors(k, w, c->naming, c->to, err);
	if (ends_with(c->to, ".pth") || ends_with(c->to, ".pt") || ends_with(c->to, ".bin"))
		return mu_pth_write(c->to, k->items, k->n, err);
	return write_folder(k, w, c, err);
}

/* Before anything is read: a folder that is there already keeps what it has. */
static mural_status check_target(const char *to, mural_error *err)
{
	struct stat facts;
	if (stat(to, &facts) != 0)
		return MURAL_OK;
	if (S_ISDIR(facts.st_mode))
		return mu_fail(err, MURAL_USAGE, to, "the folder is there already: name one that is not");
	if (S_ISREG(facts.st_mode) && !ends_with(to, ".safetensors") && !ends_with(to, ".pth") &&
	    !ends_with(to, ".pt") && !ends_with(to, ".bin"))
		return mu_fail(err, MURAL_USAGE, to,
		               "expected a name that ends in .safetensors or .pth, or a new folder, found a file");
	return MURAL_OK;
}

mural_status mural_weights_convert(const mural_weights_conversion *c, char notes[MURAL_WEIGHTS_NOTES], mural_error *err)
{
	mural_weights *w = NULL;
	copy k = {0};
	notes[0] = '\0';
	MU_TRY(check_target(c->to, err));
	MU_TRY(mural_weights_open(&w, c->from, err));
	mural_status status = check_expressible(w, c, err);
	if (status == MURAL_OK && w->unmatched[0] && !c->ignore_unmatched) {
		size_t n = 0;
		while (w->unmatched[n])
			n++;
		status = mu_fail(err, MURAL_DATA, w->facts.path,
		                 "%zu tensor%s no place in the model, the first is '%.100s': --ignore-unmatched leaves "
		                 "them out",
		                 n, n == 1 ? " has" : "s have", w->unmatched[0]);
	}
	if (status == MURAL_OK)
		status = load(&k, w, err);
	if (status == MURAL_OK)
		status = list_items(&k, w, c->naming, err);
	if (status == MURAL_OK)
		status = write_out(&k, w, c, err);
	if (status == MURAL_OK)
		note_differences(w, c, notes);
	release(&k);
	mural_weights_free(w);
	return status;
}

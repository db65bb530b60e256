/* Reading a whole set once to see what is in it, and a JSON file about that. SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/files.h"
#include "base/json.h"
#include "data/dataset.h"
#include "data/moments.h"

static void count_image(mural_data_survey *survey, const mural_data_facts *facts, const uint8_t *pixels, int32_t label,
                        mu_moments *moments)
{
	size_t plane = facts->height * facts->width;
	survey->readable++;
	survey->images_per_class[label]++;
	for (size_t c = 0; c < facts->channels; c++)
		mu_moments_add(moments, c, pixels + c * plane, plane);
}

/* One image. A format may not know that its label is none. */
static mural_status read_image(const mural_data *data, uint64_t image, uint8_t *pixels, int32_t *label,
                               mural_error *failure)
{
	MU_TRY(mu_data_read(data, image, pixels, label, failure));
	if (*label < 0 || (size_t)*label >= data->facts.classes)
		return mu_bug(failure, "a label that is no class");
	return MURAL_OK;
}

typedef void (*broken_handler)(void *user, uint64_t image, const mural_error *err);

static mural_status read_all(mural_data_survey *survey, const mural_data *data, uint8_t *pixels, mu_moments *moments,
                             broken_handler on_broken, void *user, mural_error *err)
{
	for (uint64_t i = 0; i < data->facts.images; i++) {
		mural_error failure = {0};
		int32_t label = 0;
		mural_status status = read_image(data, i, pixels, &label, &failure);
		if (status == MURAL_OK) {
			count_image(survey, &data->facts, pixels, label, moments);
		} else if (status == MURAL_DATA) {
			survey->broken++;
			if (on_broken)
				on_broken(user, i, &failure);
		} else {
			if (err && err->status == MURAL_OK)
				*err = failure;
			return status;
		}
	}
	return MURAL_OK;
}

mural_status mural_data_survey_take(mural_data_survey *survey, const mural_data *data, broken_handler on_broken,
                                    void *user, mural_error *err)
{
	const mural_data_facts *facts = &data->facts;
	mu_moments moments = {0};
	*survey = (mural_data_survey){0};
	uint64_t *per_class = calloc(facts->classes, sizeof *per_class);
	uint8_t *pixels = malloc(facts->channels * facts->height * facts->width);
	if (!per_class || !pixels) {
		free(per_class);
		free(pixels);
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to look at %zu classes", facts->classes);
	}
	survey->images_per_class = per_class;
	mural_status status = read_all(survey, data, pixels, &moments, on_broken, user, err);
	mu_moments_set(&moments, facts->channels, survey->mean, survey->std);
	free(pixels);
	if (status != MURAL_OK)
		mural_data_survey_release(survey);
	return status;
}

void mural_data_survey_release(mural_data_survey *survey)
{
	free(survey->images_per_class);
	*survey = (mural_data_survey){0};
}

static void write_floats(mu_json *json, const char *key, const float *values, size_t n)
{
	mu_json_array_begin(json, key);
	for (size_t i = 0; i < n; i++)
		mu_json_number(json, NULL, (double)values[i]);
	mu_json_array_end(json);
}

static void write_survey(mu_json *json, const mural_data_facts *facts, const mural_data_survey *survey)
{
	mu_json_unsigned(json, "readable", survey->readable);
	mu_json_unsigned(json, "broken", survey->broken);
	mu_json_array_begin(json, "images_per_class");
	for (size_t c = 0; c < facts->classes; c++)
		mu_json_unsigned(json, NULL, survey->images_per_class[c]);
	mu_json_array_end(json);
	write_floats(json, "measured_mean", survey->mean, facts->channels);
	write_floats(json, "measured_std", survey->std, facts->channels);
}

static void write_split(mu_json *json, const char *key, const mural_data *data, const mural_data_survey *survey)
{
	const mural_data_facts *facts = &data->facts;
	mu_json_object_begin(json, key);
	mu_json_string(json, "name", facts->name);
	mu_json_string(json, "path", facts->path);
	mu_json_unsigned(json, "images", facts->images);
	mu_json_unsigned(json, "channels", facts->channels);
	if (!facts->any_size) {
		mu_json_unsigned(json, "height", facts->height);
		mu_json_unsigned(json, "width", facts->width);
	}
	mu_json_unsigned(json, "classes", facts->classes);
	mu_json_array_begin(json, "class_names");
	for (size_t c = 0; mural_data_class_name(data, c); c++)
		mu_json_string(json, NULL, mural_data_class_name(data, c));
	mu_json_array_end(json);
	write_floats(json, "mean", data->mean, facts->channels);
	write_floats(json, "std", data->std, facts->channels);
	if (survey)
		write_survey(json, facts, survey);
	mu_json_object_end(json);
}

mural_status mural_data_write_json(const char *path, const mural_data *const splits[2],
                                   const mural_data_survey *const surveys[2], mural_error *err)
{
	mu_file file = {0};
	mu_json json;
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	for (int s = 0; s < 2; s++)
		if (splits[s])
			write_split(&json, s == MURAL_SPLIT_TRAIN ? "train" : "test", splits[s], surveys[s]);
	mu_json_object_end(&json);
	if (!mu_json_finished(&json)) {
		mu_file_abandon(&file);
		return mu_bug(err, "a JSON file about data that is not whole");
	}
	return mu_file_commit(&file, err);
}

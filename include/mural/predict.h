/* Classes of pictures: PNG and JPEG files through a trained model.
 *
 * Pictures are prepared as the weights' origin does it (mural_weights_facts.preprocess), so that the same file gives the same
 * answer here and there.
 *
 *     mural_predictor *predictor;
 *     mural_predictor_settings settings = {.weights = "runs/first"};
 *     if (mural_predictor_create(&predictor, &settings, &err) == MURAL_OK) {
 *             size_t classes = mural_predictor_facts(predictor)->model.classes;
 *             float *p = malloc(classes * sizeof *p);
 *             const char *path = "cat.jpg";
 *             mural_predictor_run(predictor, &path, 1, p, &err);
 *     }
 *     mural_predictor_free(predictor);
 *
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_PREDICT_H
#define MURAL_PREDICT_H

#include "mural/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MURAL_PREDICT_BATCH 16 /* pictures that go through the model together */

typedef struct mural_predictor mural_predictor;

typedef struct mural_predictor_settings { /* zero-initialise; borrowed for the call */
	const char *weights; /* a file, a folder (mural_weights_open), a run's folder or one of its checkpoints */
	const char *labels; /* a file with the name of a class per line, or NULL: the weights' own names */
	const char *ops; /* operations table, NULL: the fastest */
	unsigned threads; /* 0: all cores that there are */
} mural_predictor_settings;

/* Loads the model. MURAL_DATA when the weights have no classifier, or there are not as many names as classes. On failure
 * *predictor is NULL. */
MURAL_API mural_status mural_predictor_create(mural_predictor **predictor, const mural_predictor_settings *settings,
                                              mural_error *err);
MURAL_API void mural_predictor_free(mural_predictor *predictor);

/* Live as long as the predictor. A class without a name is NULL. */
MURAL_API const mural_weights_facts *mural_predictor_facts(const mural_predictor *predictor);
MURAL_API const char *mural_predictor_class_name(const mural_predictor *predictor, size_t label);

/* probabilities: [n, classes], each row adds up to 1. Any number of paths. MURAL_DATA names the picture that cannot be
 * decoded; what was written into probabilities before is of no use then. */
MURAL_API mural_status mural_predictor_run(mural_predictor *predictor, const char *const *paths, size_t n,
                                           float *probabilities, mural_error *err);

/* The k most probable of one row, best first; of equals the lower number first. k: at most classes. */
MURAL_API void mural_predictor_best(const float *probabilities, size_t classes, size_t k, size_t *labels);

/* The k best classes of each picture as JSON: to an open stream (MURAL_FAILED if it does not take it), or as a file that appears
 * whole or not at all. */
MURAL_API mural_status mural_predictor_print_json(const mural_predictor *predictor, FILE *out,
                                                  const char *const *pictures, size_t n, const float *probabilities,
                                                  size_t k, mural_error *err);
MURAL_API mural_status mural_predictor_write_json(const mural_predictor *predictor, const char *path,
                                                  const char *const *pictures, size_t n, const float *probabilities,
                                                  size_t k, mural_error *err);

#ifdef __cplusplus
}
#endif
#endif

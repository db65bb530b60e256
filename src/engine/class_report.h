/* How well each class is told, from the labels of a set and what an evaluation took its images for. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_CLASS_REPORT_H
#define MU_ENGINE_CLASS_REPORT_H

#include "base/json.h"
#include "mural/data.h"
#include "mural/engine.h"

/* A cell of the confusion matrix that is not zero: so many images of `label` were taken for `best`. Thousands of classes have
 * millions of cells, and at most as many that are not zero as there are images. */
typedef struct mu_confusion {
	uint32_t label, best;
	uint64_t images;
} mu_confusion;

typedef struct mu_class_report { /* zero-initialise */
	size_t classes; /* of the set */
	uint64_t *images, *right; /* [classes] by label */
	mu_confusion *cells; /* by label, then best */
	size_t n_cells;
} mu_class_report;

/* best: [images of the set], as mural_engine_classify has it. On failure there is nothing to release. */
mural_status mu_class_report_make(mu_class_report *report, const mural_data *data, const int32_t *best,
                                  mural_error *err);
void mu_class_report_release(mu_class_report *report);

/* Members of the object that is open: "classes", an array with a line per class that has images, and
 * "classes_without_images". data: for the names. */
void mu_class_report_write(mu_json *json, const mu_class_report *report, const mural_data *data);

/* The classes that are told worst, the worst first; returns how many. Those without images do not count. */
size_t mu_class_report_worst(const mu_class_report *report, const mural_data *data,
                             mural_class_score worst[MURAL_WORST_CLASSES]);

#endif

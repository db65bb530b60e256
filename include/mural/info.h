/* What this machine offers and what is missing.
 *
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_INFO_H
#define MURAL_INFO_H

#include "mural/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0"; static. */
MURAL_API const char *mural_version(void);

#ifdef __cplusplus
}
#endif
#endif

/* Bytes as a file of weights, for fuzz targets. SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_WEIGHT_BYTES_H
#define TESTS_SUPPORT_WEIGHT_BYTES_H

#include <stddef.h>

/* Opens them and reads every tensor; aborts unless both end well or are refused with words and a place. */
void test_weight_bytes(const void *bytes, size_t n);

#endif

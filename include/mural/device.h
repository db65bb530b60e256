/* What is publicly known of devices: peak rates, memory, rated power. For plans of machines that one does not have.
 *
 * Peaks are the makers' figures for dense matrices with fp32 accumulation, boost clock. What training reaches is a fraction of
 * them that only a measurement tells: MURAL_DEVICE_REACHED is a first guess.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_DEVICE_H
#define MURAL_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "mural/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the peak, in ViT training: the study's T4 and RTX 3070 reached 0.36 in fp32, PyTorch on an H200 0.62 in fp32, 0.37 in bf16. */
#define MURAL_DEVICE_REACHED 0.4

typedef struct mural_device_profile {
	const char *name; /* "T4", "EPYC 9654" */
	double fp32_tflops, tf32_tflops, fp16_tflops, bf16_tflops; /* 0: not faster than fp32 arithmetic */
	uint64_t memory_bytes; /* 0: a processor, it has what is plugged in */
	double memory_bytes_per_second;
	double watts; /* rated */
} mural_device_profile;

/* By name, however it is spelt: "RTX 3070", "rtx3070", "NVIDIA GeForce RTX 3070". NULL if it is not known. */
MURAL_API const mural_device_profile *mural_device_profile_find(const char *name);

/* The table, in order of their age; index >= the table's length gives NULL. */
MURAL_API const mural_device_profile *mural_device_profile_at(size_t index);

#ifdef __cplusplus
}
#endif
#endif

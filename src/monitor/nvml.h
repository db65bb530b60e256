/* Energy and state of one NVIDIA card, through the driver's own library (NVML), which is opened at run time: nothing links it.
 *
 * From the Volta generation on the card counts millijoules since the driver was loaded. Older cards only tell their power;
 * then it is summed up between readings, so those should be less than a second apart.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_NVML_H
#define MU_MONITOR_NVML_H

#include <stdbool.h>

#include "monitor/host_stats.h"

typedef struct mu_nvml_functions mu_nvml_functions;

typedef struct mu_nvml { /* zero-initialise */
	const mu_nvml_functions *functions; /* NULL: nothing can be measured, and `why` says so */
	void *device;
	bool counts; /* has the counter; else power is summed up */
	unsigned long long last; /* millijoules */
	double last_seconds, joules;
	char name[96]; /* "NVIDIA H200" */
	char why[256]; /* "" when it works */
} mu_nvml;

/* bus: the card's PCI address as CUDA tells it, "0000:3B:00.0"; NULL: the first card of the machine. */
void mu_nvml_open(mu_nvml *nvml, const char *bus);

/* Joules since it was opened; NaN when that cannot be measured. */
double mu_nvml_joules(mu_nvml *nvml);
/* Power now; NaN when the card does not tell. */
double mu_nvml_watts(const mu_nvml *nvml);
/* What the card is doing; what it does not tell stays as it was. id: its number in nvidia-smi. */
void mu_nvml_sample(const mu_nvml *nvml, mu_device_sample *sample);

#endif

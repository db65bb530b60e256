/* NVML by dlopen. The few declarations are NVIDIA's documented interface; names with _v2 are those that its header makes of
 * the plain ones. MURAL_NVML names another library, for tests. It stays open: closing it would end the process's other
 * users of it as well. SPDX-License-Identifier: MIT */
#include "monitor/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

struct mu_nvml_functions {
	int (*init)(void);
	int (*by_index)(unsigned index, void **device);
	int (*by_bus)(const char *bus, void **device);
	int (*name)(void *device, char *name, unsigned length);
	int (*energy)(void *device, unsigned long long *millijoules); /* NULL in old drivers */
	int (*power)(void *device, unsigned *milliwatts);
	const char *(*text)(int said);
};

static const char *library_name(void)
{
	const char *other = getenv("MURAL_NVML");
	return other && *other ? other : "libnvidia-ml.so.1";
}

/* All of them, or NULL. Filled once; ranks open their meters before they start threads. */
static const mu_nvml_functions *load(mu_nvml *nvml)
{
	static mu_nvml_functions f;
	void *library = dlopen(library_name(), RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(nvml->why, sizeof nvml->why, "there is no NVIDIA driver (%.100s was not found)",
		         library_name());
		return NULL;
	}
	*(void **)&f.init = dlsym(library, "nvmlInit_v2");
	*(void **)&f.by_index = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&f.by_bus = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&f.name = dlsym(library, "nvmlDeviceGetName");
	*(void **)&f.energy = dlsym(library, "nvmlDeviceGetTotalEnergyConsumption");
	*(void **)&f.power = dlsym(library, "nvmlDeviceGetPowerUsage");
	*(void **)&f.text = dlsym(library, "nvmlErrorString");
	if (f.init && f.by_index && f.by_bus && f.name && f.power && f.text)
		return &f;
	snprintf(nvml->why, sizeof nvml->why, "%.100s lacks functions: the NVIDIA driver is too old", library_name());
	return NULL;
}

void mu_nvml_open(mu_nvml *nvml, const char *bus)
{
	*nvml = (mu_nvml){0};
	const mu_nvml_functions *f = load(nvml);
	if (!f)
		return;
	int said = f->init();
	if (said == 0)
		said = bus ? f->by_bus(bus, &nvml->device) : f->by_index(0, &nvml->device);
	if (said == 0)
		said = f->name(nvml->device, nvml->name, sizeof nvml->name);
	nvml->counts = said == 0 && f->energy && f->energy(nvml->device, &nvml->last) == 0;
	unsigned milliwatts;
	if (said == 0 && !nvml->counts)
		said = f->power(nvml->device, &milliwatts);
	nvml->last_seconds = mu_now();
	if (said == 0)
		nvml->functions = f;
	else
		snprintf(nvml->why, sizeof nvml->why, "the NVIDIA driver said: %.200s", f->text(said));
}

double mu_nvml_watts(const mu_nvml *nvml)
{
	unsigned milliwatts;
	if (!nvml->functions || nvml->functions->power(nvml->device, &milliwatts) != 0)
		return NAN;
	return milliwatts * 1e-3;
}

static bool add_counted(mu_nvml *nvml)
{
	unsigned long long now;
	if (nvml->functions->energy(nvml->device, &now) != 0 || now < nvml->last)
		return false; /* 64 bits of millijoules do not come round: the driver was loaded anew */
	nvml->joules += (double)(now - nvml->last) * 1e-3;
	nvml->last = now;
	return true;
}

static bool add_power(mu_nvml *nvml)
{
	double watts = mu_nvml_watts(nvml), now = mu_now();
	nvml->joules += watts * (now - nvml->last_seconds);
	nvml->last_seconds = now;
	return !isnan(watts);
}

double mu_nvml_joules(mu_nvml *nvml)
{
	if (!nvml->functions)
		return NAN;
	if (nvml->counts ? add_counted(nvml) : add_power(nvml))
		return nvml->joules;
	nvml->functions = NULL;
	snprintf(nvml->why, sizeof nvml->why, "the card's energy could not be read any more");
	return NAN;
}

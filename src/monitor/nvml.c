/* NVML by dlopen. The few declarations are NVIDIA's documented interface; names with _v2 are those that its header makes of
 * the plain ones. MURAL_NVML names another library, for tests. It stays open: closing it would end the process's other
 * users of it as well. SPDX-License-Identifier: MIT */
#include "monitor/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

typedef struct card_memory { /* nvmlMemory_t */
	unsigned long long total, free, used;
} card_memory;

typedef struct card_load { /* nvmlUtilization_t: percent of the driver's last sampling time, up to a second */
	unsigned computing, memory;
} card_load;

#define SENSOR_OF_THE_CHIP 0

struct mu_nvml_functions {
	int (*init)(void);
	int (*by_index)(unsigned index, void **device);
	int (*by_bus)(const char *bus, void **device);
	int (*name)(void *device, char *name, unsigned length);
	int (*energy)(void *device, unsigned long long *millijoules); /* NULL in old drivers */
	int (*power)(void *device, unsigned *milliwatts);
	/* From here to text NULL where a driver lacks them. */
	int (*index)(void *device, unsigned *index);
	int (*memory)(void *device, card_memory *bytes);
	int (*load)(void *device, card_load *percent);
	int (*celsius)(void *device, int sensor, unsigned *degrees);
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
	*(void **)&f.index = dlsym(library, "nvmlDeviceGetIndex");
	*(void **)&f.memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
	*(void **)&f.load = dlsym(library, "nvmlDeviceGetUtilizationRates");
	*(void **)&f.celsius = dlsym(library, "nvmlDeviceGetTemperature");
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

void mu_nvml_sample(const mu_nvml *nvml, mu_device_sample *sample)
{
	const mu_nvml_functions *f = nvml->functions;
	unsigned index, degrees;
	card_memory memory;
	card_load load;
	if (!f)
		return;
	snprintf(sample->name, sizeof sample->name, "%s", nvml->name);
	if (f->index && f->index(nvml->device, &index) == 0)
		snprintf(sample->id, sizeof sample->id, "%u", index);
	if (f->memory && f->memory(nvml->device, &memory) == 0) {
		sample->free_bytes = memory.free;
		sample->used_bytes = memory.used;
		sample->total_bytes = memory.total;
	}
	if (f->load && f->load(nvml->device, &load) == 0)
		sample->load = load.computing;
	if (f->celsius && f->celsius(nvml->device, SENSOR_OF_THE_CHIP, &degrees) == 0)
		sample->celsius = degrees;
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

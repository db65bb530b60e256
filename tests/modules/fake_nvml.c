/* NVIDIA's library with one made-up card, for tests/unit/test_energy.c and tests/cli/test_energy.sh. The environment says what the
 * card shows:
 *     FAKE_NVML_ENERGY   millijoules so far; not set: the card has no such counter
 *     FAKE_NVML_STEP     millijoules more at each reading after the first
 *     FAKE_NVML_POWER    milliwatts
 *     FAKE_NVML_FAILS    every call fails
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN int nvmlInit_v2(void);
SHOWN int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
SHOWN int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
SHOWN int nvmlDeviceGetName(void *device, char *name, unsigned length);
SHOWN int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
SHOWN int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
SHOWN int nvmlDeviceGetIndex(void *device, unsigned *index);
SHOWN int nvmlDeviceGetMemoryInfo(void *device, unsigned long long bytes[3]);
SHOWN int nvmlDeviceGetUtilizationRates(void *device, unsigned percent[2]);
SHOWN int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees);
SHOWN const char *nvmlErrorString(int said);

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, UNKNOWN = 999 };

static int card;

static int answer(void)
{
	return getenv("FAKE_NVML_FAILS") ? UNKNOWN : SUCCESS;
}

int nvmlInit_v2(void)
{
	return answer();
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	*device = &card;
	return index == 0 ? answer() : NOT_FOUND;
}

/* 0000:3B:00.0, in any of the ways in which numbers can be written there. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
	unsigned domain, number, slot, function;
	*device = &card;
	if (sscanf(bus, "%x:%x:%x.%x", &domain, &number, &slot, &function) != 4)
		return NOT_FOUND;
	return domain == 0 && number == 0x3B && slot == 0 && function == 0 ? answer() : NOT_FOUND;
}

int nvmlDeviceGetName(void *device, char *name, unsigned length)
{
	snprintf(name, length, "Card of Paper");
	return device == &card ? answer() : UNKNOWN;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
	static unsigned long long more;
	const char *text = getenv("FAKE_NVML_ENERGY"), *step = getenv("FAKE_NVML_STEP");
	if (!text || device != &card)
		return NOT_SUPPORTED;
	*millijoules = strtoull(text, NULL, 10) + more;
	more += step ? strtoull(step, NULL, 10) : 0;
	return answer();
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
	const char *text = getenv("FAKE_NVML_POWER");
	if (!text || device != &card)
		return NOT_SUPPORTED;
	*milliwatts = (unsigned)strtoul(text, NULL, 10);
	return answer();
}

int nvmlDeviceGetIndex(void *device, unsigned *index)
{
	*index = 3;
	return device == &card ? answer() : UNKNOWN;
}

/* Total, free, used. */
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long bytes[3])
{
	bytes[0] = 80ull << 30;
	bytes[1] = 50ull << 30;
	bytes[2] = 30ull << 30;
	return device == &card ? answer() : UNKNOWN;
}

/* Of its processors, of its memory. */
int nvmlDeviceGetUtilizationRates(void *device, unsigned percent[2])
{
	percent[0] = 87;
	percent[1] = 12;
	return device == &card ? answer() : UNKNOWN;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees)
{
	*degrees = 61;
	return device == &card && sensor == 0 ? answer() : UNKNOWN;
}

const char *nvmlErrorString(int said)
{
	return said == NOT_FOUND ? "Not Found" : said == NOT_SUPPORTED ? "Not Supported" : "Unknown Error";
}

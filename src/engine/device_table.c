/* The table of known devices. Figures are from the makers' public data sheets. SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "mural/device.h"

#define GB 1000000000.0
#define GIB ((uint64_t)1 << 30)

static const mural_device_profile table[] = {
        /* name, fp32, TF32, fp16, bf16 in TFLOP/s, memory, bytes per second, watts */
        {"GTX 1070", 6.5, 0, 0, 0, 8 * GIB, 256 * GB, 150},
        {"P4", 5.5, 0, 0, 0, 8 * GIB, 192 * GB, 75},
        {"P100", 9.3, 0, 18.7, 0, 16 * GIB, 732 * GB, 250},
        {"V100", 15.7, 0, 125, 0, 16 * GIB, 900 * GB, 300},
        {"T4", 8.1, 0, 65, 0, 16 * GIB, 320 * GB, 70},
        {"RTX 2080 Ti", 13.4, 0, 53.8, 0, 11 * GIB, 616 * GB, 250},
        {"Quadro RTX 6000", 16.3, 0, 130.5, 0, 24 * GIB, 672 * GB, 260},
        {"RTX 3070", 20.3, 20.3, 40.6, 40.6, 8 * GIB, 448 * GB, 220},
        {"RTX 3090", 35.6, 35.6, 71, 71, 24 * GIB, 936 * GB, 350},
        {"A10", 31.2, 62.5, 125, 125, 24 * GIB, 600 * GB, 150},
        {"A40", 37.4, 74.8, 149.7, 149.7, 48 * GIB, 696 * GB, 300},
        {"RTX A6000", 38.7, 77.4, 154.8, 154.8, 48 * GIB, 768 * GB, 300},
        {"A100", 19.5, 156, 312, 312, 40 * GIB, 1555 * GB, 400},
        {"A100 80GB", 19.5, 156, 312, 312, 80 * GIB, 2039 * GB, 400},
        {"L4", 30.3, 60, 121, 121, 24 * GIB, 300 * GB, 72},
        {"RTX 4090", 82.6, 82.6, 165.2, 165.2, 24 * GIB, 1008 * GB, 450},
        {"L40S", 91.6, 183, 362, 362, 48 * GIB, 864 * GB, 350},
        {"H100", 66.9, 494.7, 989.4, 989.4, 80 * GIB, 3350 * GB, 700},
        {"H200", 66.9, 494.7, 989.4, 989.4, 141 * GIB, 4800 * GB, 700},
        /* Processors: cores x base clock x operations per cycle (two FMA units; AMX where it is there). */
        {"EPYC 7763", 5.0, 0, 0, 0, 0, 204.8 * GB, 280},
        {"EPYC 9654", 7.4, 0, 0, 14.7, 0, 460.8 * GB, 360},
        {"Xeon Platinum 8380", 5.9, 0, 0, 0, 0, 204.8 * GB, 270},
        {"Xeon Platinum 8480+", 7.2, 0, 0, 229, 0, 307.2 * GB, 350},
        {"Ryzen 9 7950X", 2.3, 0, 0, 4.6, 0, 83.2 * GB, 170},
};
#define DEVICES (sizeof table / sizeof *table)

/* Letters and digits in lower case, without the maker and the brand. */
static void plain(const char *name, char text[64])
{
	static const char *const words[] = {"nvidia", "geforce", "tesla", "amd", "intel"};
	size_t n = 0;
	for (; *name && n < 63; name++)
		if (isalnum((unsigned char)*name))
			text[n++] = (char)tolower((unsigned char)*name);
	text[n] = '\0';
	for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
		char *at = strstr(text, words[w]);
		if (at)
			memmove(at, at + strlen(words[w]), strlen(at + strlen(words[w])) + 1);
	}
}

/* A longer name of a card begins with ours: "T4", "T4-PCIE-16GB"; but "A100 80GB" is not "A100", and "A10" not "A100". */
const mural_device_profile *mural_device_profile_find(const char *name)
{
	char wanted[64], known[64];
	const mural_device_profile *best = NULL;
	size_t best_length = 0;
	plain(name, wanted);
	for (size_t d = 0; d < DEVICES; d++) {
		plain(table[d].name, known);
		size_t length = strlen(known);
		if (strncmp(wanted, known, length) != 0 || isdigit((unsigned char)wanted[length]) ||
		    length <= best_length)
			continue;
		best = &table[d];
		best_length = length;
	}
	return best;
}

const mural_device_profile *mural_device_profile_at(size_t index)
{
	return index < DEVICES ? &table[index] : NULL;
}

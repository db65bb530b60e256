/* Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3").
 *
 * Nothing to seed, nothing to save: a number is a pure function of what it is for.
 *     key     = (seed, purpose)          purpose = MU_PURPOSE_* in the top byte, layer or 0 in the lower 24 bits
 *     counter = (element / 4 as 64 bits, stream as 64 bits);  lane = element % 4
 *     stream  = epoch << 32 | position in the epoch's sequence, for anything drawn per sample
 * The same bits on CPU and GPU, for any number of ranks and threads. This header is also compiled by nvcc.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_PHILOX_H
#define MU_BASE_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define MU_INLINE static __host__ __device__ inline
#else
#define MU_INLINE static inline
#endif

/* What a number is for. Values are part of the reproducibility promise: append, never renumber. */
typedef enum mu_purpose {
	MU_PURPOSE_SHUFFLE = 1, /* stream = epoch, element = index */
	MU_PURPOSE_INIT = 2, /* layer = tensor's number in the model, stream = 0 */
	MU_PURPOSE_CROP = 3, /* element 0 = x, 1 = y */
	MU_PURPOSE_FLIP = 4,
	MU_PURPOSE_SYNTHETIC = 5, /* pixels and labels of made-up images */
	MU_PURPOSE_EMBED_DROPOUT = 6,
	MU_PURPOSE_ATTENTION_DROPOUT = 7, /* layer = block; element = (h * N + query) * N + key */
	MU_PURPOSE_BRANCH_DROPOUT = 8, /* layer = 2 * block + (0 attention, 1 MLP); element = token * D + d */
	MU_PURPOSE_HIDDEN_DROPOUT = 9, /* layer = block; element = token * F + f */
	MU_PURPOSE_DROP_PATH = 10, /* layer = 2 * block + (0 attention, 1 MLP); element 0 */
	MU_PURPOSE_VALIDATION = 11,
	MU_PURPOSE_TEST = 255 /* tests only */
} mu_purpose;

typedef struct mu_random_key {
	uint32_t seed, purpose;
} mu_random_key;

MU_INLINE mu_random_key mu_random_key_make(uint32_t seed, mu_purpose purpose, uint32_t layer)
{
	mu_random_key key;
	key.seed = seed;
	key.purpose = (uint32_t)purpose << 24 | (layer & 0xffffffu);
	return key;
}

MU_INLINE uint64_t mu_stream(uint32_t epoch, uint32_t position)
{
	return (uint64_t)epoch << 32 | position;
}

typedef struct mu_philox_block {
	uint32_t lane[4];
} mu_philox_block;

/* The four numbers with element / 4 == block. */
MU_INLINE mu_philox_block mu_philox(mu_random_key key, uint64_t stream, uint64_t block)
{
	uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32);
	uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
	uint32_t k0 = key.seed, k1 = key.purpose;
	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0;
		uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		c0 = n0;
		c2 = n2;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	mu_philox_block out;
	out.lane[0] = c0;
	out.lane[1] = c1;
	out.lane[2] = c2;
	out.lane[3] = c3;
	return out;
}

/* 32 random bits for one element. */
MU_INLINE uint32_t mu_random_u32(mu_random_key key, uint64_t stream, uint64_t element)
{
	return mu_philox(key, stream, element / 4).lane[element % 4];
}

/* Bits below this keep an element that is dropped with probability p in [0, 1): keep iff u32 >= threshold. */
MU_INLINE uint32_t mu_drop_threshold(double p)
{
	return (uint32_t)(p * 4294967296.0);
}

/* Uniform in [0, 1), 53 bits from elements 2i and 2i + 1. */
MU_INLINE double mu_random_uniform(mu_random_key key, uint64_t stream, uint64_t i)
{
	mu_philox_block b = mu_philox(key, stream, i / 2);
	uint32_t high = b.lane[(i % 2) * 2], low = b.lane[(i % 2) * 2 + 1];
	return (double)((uint64_t)high << 21 | low >> 11) * (1.0 / 9007199254740992.0);
}

/* Uniform integer in [0, n), n > 0: the high word of a 32 x 32 bit product, bias below n / 2^32. */
MU_INLINE uint32_t mu_random_below(mu_random_key key, uint64_t stream, uint64_t element, uint32_t n)
{
	return (uint32_t)((uint64_t)mu_random_u32(key, stream, element) * n >> 32);
}

#endif

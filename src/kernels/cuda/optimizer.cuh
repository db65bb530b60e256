/* One pass over a span for every optimizer: the traversal is here, what happens to an element is a Rule.
 *
 *     struct Rule {
 *             static constexpr int STATES = 2;                            fp32 arrays, at most 3
 *             static constexpr unsigned READ = 3, WRITTEN = 3;            bits of those that are read, written
 *             static constexpr bool GRADIENT = true, WEIGHT = true, NEW_WEIGHT = true;
 *             __device__ void begin(const mu_decision &at);               per-step values become floats
 *             __device__ float element(float p, float g, float (&s)[3]);  changes states, returns the new weight
 *     };
 *
 * Every array is read and written once, in packs of four where all are aligned for them; spans may begin anywhere. The
 * decision lies in device memory and is read by every thread: one access, from the cache. A skipped step writes nothing.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CUDA_OPTIMIZER_CUH
#define MU_KERNELS_CUDA_OPTIMIZER_CUH

#include "kernels/cuda/cuda.cuh"

#define MU_MOST_STATES 3

struct mu_span {
	size_t n;
	const mu_decision *at;
	void *parameter; /* weights: where there is a master, only written */
	float *master;
	const void *gradient;
	float *state[MU_MOST_STATES];
};

template <typename E, int V, bool MASTER, typename Rule>
static __device__ __forceinline__ void mu_span_pack(const mu_span &span, Rule &rule, size_t pack)
{
	mu_pack<float, V> state[MU_MOST_STATES], master;
	mu_pack<E, V> p, g;
#pragma unroll
	for (int k = 0; k < Rule::STATES; k++)
		if (Rule::READ >> k & 1)
			state[k] = mu_read<float, V>(span.state[k], pack);
	if (Rule::GRADIENT)
		g = mu_read<E, V>(span.gradient, pack);
	if (Rule::WEIGHT && MASTER)
		master = mu_read<float, V>(span.master, pack);
	if (Rule::WEIGHT && !MASTER)
		p = mu_read<E, V>(span.parameter, pack);
#pragma unroll
	for (int i = 0; i < V; i++) {
		float s[MU_MOST_STATES] = {0, 0, 0};
#pragma unroll
		for (int k = 0; k < Rule::STATES; k++)
			if (Rule::READ >> k & 1)
				s[k] = state[k].e[i];
		const float old = !Rule::WEIGHT ? 0 : MASTER ? master.e[i] : mu_load(p.e[i]);
		const float now = rule.element(old, Rule::GRADIENT ? mu_load(g.e[i]) : 0, s);
		master.e[i] = now;
		p.e[i] = mu_round<E>(now);
#pragma unroll
		for (int k = 0; k < Rule::STATES; k++)
			state[k].e[i] = s[k];
	}
#pragma unroll
	for (int k = 0; k < Rule::STATES; k++)
		if (Rule::WRITTEN >> k & 1)
			mu_write<float, V>(span.state[k], pack, state[k]);
	if (Rule::NEW_WEIGHT && MASTER)
		mu_write<float, V>(span.master, pack, master);
	if (Rule::NEW_WEIGHT)
		mu_write<E, V>(span.parameter, pack, p);
}

template <typename E, int V, bool MASTER, typename Rule>
static __global__ void mu_span_kernel(const mu_span span, Rule rule)
{
	const size_t packs = span.n / V, pack = mu_thread();
	if (span.at->skip != 0)
		return;
	rule.begin(*span.at);
	if (pack < packs)
		mu_span_pack<E, V, MASTER>(span, rule, pack);
	else if (pack - packs < span.n % V)
		mu_span_pack<E, 1, MASTER>(span, rule, packs * V + pack - packs);
}

template <typename E, bool MASTER, typename Rule>
static void mu_span_launch(mu_ops_context *c, const mu_span &span, const Rule &rule)
{
	bool aligned = mu_aligned(span.parameter, 4 * sizeof(E)) && mu_aligned(span.gradient, 4 * sizeof(E)) &&
	               mu_aligned(span.master, 16);
	for (int k = 0; k < Rule::STATES; k++)
		aligned = aligned && mu_aligned(span.state[k], 16);
	const unsigned blocks = mu_blocks(aligned ? span.n / 4 + span.n % 4 : span.n, MU_CUDA_BLOCK);
	if (aligned)
		mu_span_kernel<E, 4, MASTER><<<blocks, MU_CUDA_BLOCK, 0, c->stream>>>(span, rule);
	else
		mu_span_kernel<E, 1, MASTER><<<blocks, MU_CUDA_BLOCK, 0, c->stream>>>(span, rule);
}

template <typename Rule>
static mural_status mu_span_run(mu_ops_context *c, mu_dtype type, const mu_span &span, const Rule &rule,
                                const char *name, mural_error *err)
{
	if (span.n == 0)
		return MURAL_OK;
	if (span.master) {
		MU_CUDA_BY_TYPE(type, mu_span_launch<E, true>(c, span, rule));
	} else {
		MU_CUDA_BY_TYPE(type, mu_span_launch<E, false>(c, span, rule));
	}
	return mu_cuda_launched(name, err);
}

static inline float *mu_floats(void *p)
{
	return static_cast<float *>(p);
}

#endif

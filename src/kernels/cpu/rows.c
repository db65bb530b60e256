/* The rows of one processor level, for table.c. SPDX-License-Identifier: MIT */
#include "kernels/cpu/cpu.h"

const mu_ops mu_cpu_rows = {
        .patchify = mu_cpu_patchify,
        .embed_forward = mu_cpu_embed_forward,
        .embed_backward = mu_cpu_embed_backward,
        .embed_workspace = mu_cpu_embed_workspace,
        .layernorm_forward = mu_cpu_layernorm_forward,
        .layernorm_backward = mu_cpu_layernorm_backward,
        .layernorm_workspace = mu_cpu_layernorm_workspace,
        .linear_forward = mu_cpu_linear_forward,
        .linear_backward = mu_cpu_linear_backward,
        .linear_workspace = mu_cpu_linear_workspace,
        .attention_forward = mu_cpu_attention_forward,
        .attention_backward = mu_cpu_attention_backward,
        .attention_workspace = mu_cpu_attention_workspace,
        .dropout = mu_cpu_dropout,
        .drop_path = mu_cpu_drop_path,
        .pool_forward = mu_cpu_pool_forward,
        .pool_backward = mu_cpu_pool_backward,
        .cross_entropy = mu_cpu_cross_entropy,
        .adamw = mu_cpu_adamw,
        .sum_squares = mu_cpu_sum_squares,
        .sum_squares_workspace = mu_cpu_sum_squares_workspace,
        .cast = mu_cpu_cast,
};

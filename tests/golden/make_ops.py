#!/usr/bin/env python3
"""Writes tests/golden/ops.h: values of PyTorch in double precision, for tests/golden/test_ops.c.

Inputs are formulas that the test computes again, so only outputs are written down. Needs torch; run by hand:
    python3 tests/golden/make_ops.py > tests/golden/ops.h && clang-format -i tests/golden/ops.h
SPDX-License-Identifier: MIT
"""
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def wave(n, phase):
    """What wave() in the test gives: numbers between -2 and 2 without a pattern."""
    return 2 * torch.sin(1.7 * torch.arange(n) + phase)


def show(name, tensor):
    values = ", ".join(f"{v:.17g}" for v in tensor.detach().flatten().tolist())
    print(f"static const double {name}[] = {{{values}}};")


def layer_norm():
    x = wave(10, 0.1).reshape(2, 5).requires_grad_()
    w, b = wave(5, 0.2).requires_grad_(), wave(5, 0.3).requires_grad_()
    y = F.layer_norm(x, (5,), w, b, eps=1e-5)
    y.backward(wave(10, 0.4).reshape(2, 5))
    for name, t in (("y", y), ("d_x", x.grad), ("d_w", w.grad), ("d_b", b.grad)):
        show(f"torch_layernorm_{name}", t)


def gelu():
    for kind, name in (("none", "erf"), ("tanh", "tanh")):
        x = (4 * wave(9, 0.5)).requires_grad_()
        y = F.gelu(x, approximate=kind)
        y.sum().backward()
        show(f"torch_gelu_{name}", y)
        show(f"torch_gelu_{name}_slope", x.grad)


def attention():
    """One image, 3 tokens, 2 heads of 4: qkv is [N, 3, H, K] as in the operations table."""
    qkv = wave(72, 0.6).reshape(1, 3, 3, 2, 4).requires_grad_()
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    o = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
    o.backward(wave(24, 0.7).reshape(1, 3, 2, 4))
    show("torch_attention_o", o)
    show("torch_attention_d_qkv", qkv.grad)


def cross_entropy():
    logits = wave(12, 0.8).reshape(3, 4).requires_grad_()
    labels = torch.tensor([2, 0, 3])
    loss = F.cross_entropy(logits, labels, label_smoothing=0.1, reduction="none")
    loss.mean().backward()
    show("torch_cross_entropy_loss", loss)
    show("torch_cross_entropy_d_logits", logits.grad)


def adam(kind, name):
    p = torch.nn.Parameter(wave(5, 0.9))
    optimizer = kind([p], lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    for step in range(3):
        p.grad = wave(5, 1.0 + step)
        optimizer.step()
    show(f"torch_{name}", p)


if __name__ == "__main__":
    print("/* Values of PyTorch in double precision, printed by tests/golden/make_ops.py. SPDX-License-Identifier: MIT */")
    print("#ifndef TESTS_GOLDEN_OPS_H\n#define TESTS_GOLDEN_OPS_H\n")
    layer_norm()
    gelu()
    attention()
    cross_entropy()
    adam(torch.optim.AdamW, "adamw")
    adam(torch.optim.Adam, "adam")
    print("\n#endif")

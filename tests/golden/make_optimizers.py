#!/usr/bin/env python3
"""Writes tests/golden/optimizers.safetensors: weights after 100 steps of the optimizers of PyTorch and timm, in double.

Weights and gradients are exact numbers that tests/golden/test_optimizers.c makes again from the same integers, so only
results are written down. Two groups: matrices decay, vectors do not; the second matrix has half the learning rate.
Needs torch, timm and safetensors; run by hand: python3 tests/golden/make_optimizers.py
SPDX-License-Identifier: MIT
"""
import pathlib

import numpy
import torch
from safetensors.torch import save_file
from timm.optim.lamb import Lamb
from timm.optim.lion import Lion

SHAPES = [(24, 8), (24,), (8, 20), (8,)]
STEPS = 100


def mixed(time, index):
    """Numbers in [-1, 1) with 16 bits: a hash of time and index."""
    x = (numpy.uint64(time) * numpy.uint64(0x9E3779B1) + index.astype(numpy.uint64)) & numpy.uint64(0xFFFFFFFF)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        x ^= x >> numpy.uint64(shift)
        x = x * numpy.uint64(factor) & numpy.uint64(0xFFFFFFFF)
    return ((x >> numpy.uint64(16)).astype(numpy.float64) - 32768) / 32768


def tensors(make):
    """make(index) for each shape, index counting over all elements."""
    first = 0
    for shape in SHAPES:
        n = int(numpy.prod(shape))
        yield torch.from_numpy(make(numpy.arange(first, first + n))).reshape(shape)
        first += n


def gradient(step):
    """What stays and what changes from step to step, at five scales."""
    return lambda i: (2 * mixed(0, i) + mixed(step, i)) / 4 * 0.5 ** (i % 5)


def run(optimizers_of):
    parameters = [torch.nn.Parameter(p) for p in tensors(lambda i: mixed(1000, i) / 2)]
    optimizers = optimizers_of(parameters)
    for step in range(1, STEPS + 1):
        for p, g in zip(parameters, tensors(gradient(step))):
            p.grad = g
        for optimizer in optimizers:
            optimizer.step()
    return torch.cat([p.detach().flatten() for p in parameters]).float()


def grouped(kind, lr, decay, **settings):
    def make(p):
        groups = [{"params": [p[0]], "lr": lr, "weight_decay": decay},
                  {"params": [p[2]], "lr": lr / 2, "weight_decay": decay},
                  {"params": [p[1], p[3]], "lr": lr, "weight_decay": 0}]
        return [kind(groups, **settings)]
    return make


def muon(p):
    matrices = [{"params": [p[0]], "lr": 0.02}, {"params": [p[2]], "lr": 0.01}]
    return [torch.optim.Muon(matrices, weight_decay=0.1, momentum=0.95),
            torch.optim.AdamW([p[1], p[3]], lr=0.003, betas=(0.9, 0.95), eps=1e-10, weight_decay=0)]


if __name__ == "__main__":
    optim = torch.optim
    runs = {
        "adamw": grouped(optim.AdamW, 0.003, 0.1, betas=(0.9, 0.99)),
        "adam": grouped(optim.Adam, 0.003, 0.01, betas=(0.9, 0.99)),
        "sgd": grouped(optim.SGD, 0.02, 0.01),
        "sgd_momentum": grouped(optim.SGD, 0.002, 0.01, momentum=0.9, dampening=0.25),
        "sgd_nesterov": grouped(optim.SGD, 0.002, 0.01, momentum=0.9, nesterov=True),
        "lion": grouped(Lion, 0.001, 0.1, betas=(0.9, 0.99)),
        "lamb": grouped(Lamb, 0.005, 0.1, betas=(0.9, 0.99), eps=1e-8, max_grad_norm=None),
        "muon": muon,
    }
    save_file({name: run(make) for name, make in runs.items()},
              pathlib.Path(__file__).parent / "optimizers.safetensors")

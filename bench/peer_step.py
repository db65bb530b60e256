#!/usr/bin/env python3
"""One training step of a Vision Transformer in PyTorch (timm), as the peer of `mural train`: the same model, batch,
precision and optimizer, synthetic images, eager. Prints the median seconds per step.

    python3 bench/peer_step.py --model vit_small_patch16_224 --batch 16 --threads 2 --steps 8
SPDX-License-Identifier: MIT"""
import argparse
import statistics
import time

import timm
import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="vit_small_patch16_224")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8, help="timed steps, after two that are not")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = timm.create_model(args.model, num_classes=1000)
    if args.compile:
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    images = torch.randn(args.batch, 3, 224, 224)
    labels = torch.randint(0, 1000, (args.batch,))
    seconds = []
    for step in range(args.steps + 2):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step >= 2:
            seconds.append(time.perf_counter() - start)
    print(f"{statistics.median(seconds):.6f}")


if __name__ == "__main__":
    main()

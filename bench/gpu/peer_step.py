#!/usr/bin/env python3
"""A training step of a Vision Transformer in PyTorch as fast as PyTorch makes it: timm, bf16 autocast over fp32 weights,
torch.compile, the whole step as a CUDA graph, fused AdamW, synthetic images on the card. The peer of `mural train`.

Compiles, says "ready", then for every line on standard input runs --steps steps and prints their median seconds and the
peak memory in GiB; so a script can take turns with it.

    python3 bench/gpu/peer_step.py --model vit_base_patch16_224 --batch 256
SPDX-License-Identifier: MIT"""
import argparse
import statistics
import sys

import timm
import torch


def make_step(args):
    torch.backends.cuda.matmul.allow_tf32 = args.precision != "fp32"
    torch.backends.cudnn.allow_tf32 = args.precision != "fp32"
    model = timm.create_model(args.model, num_classes=1000).cuda()
    compiled = torch.compile(model) if not args.eager else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True, capturable=True)
    images = torch.randn(args.batch, 3, model.default_cfg["input_size"][1], model.default_cfg["input_size"][2], device="cuda")
    labels = torch.randint(0, 1000, (args.batch,), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            loss = torch.nn.functional.cross_entropy(compiled(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def captured(step):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(4):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="vit_base_patch16_224")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16"), default="bf16")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--eager", action="store_true", help="no torch.compile")
    parser.add_argument("--no-graph", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    step = make_step(args)
    if args.no_graph:
        for _ in range(4):
            step()
    else:
        step = captured(step)
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    print("ready", flush=True)
    for _ in sys.stdin:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(args.steps + 1)]
        events[0].record()
        for event in events[1:]:
            step()
            event.record()
        torch.cuda.synchronize()
        seconds = statistics.median(a.elapsed_time(b) for a, b in zip(events, events[1:])) / 1e3
        print(f"{seconds:.6f} {torch.cuda.max_memory_reserved() / 2**30:.2f}", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes vit_*.safetensors: what PyTorch makes of small Vision Transformers, for test_vit.c.

Needs torch, torchvision and timm; run it from anywhere, it writes beside itself. Each file holds
    weight.NAME     every parameter under torchvision's name, all of them random: torchvision's head starts at zero,
                    which would hide everything
    gradient.NAME   of the mean loss of the batch
    pixels [B, C, H, W] uint8, labels [B] int32, logits [B, K]
    losses [STEPS]  before each of STEPS steps of AdamW on this batch, learning rate 1e-4, no clipping
SPDX-License-Identifier: MIT
"""
import pathlib

import timm.models.vision_transformer
import torch
import torchvision.models.vision_transformer
from safetensors.torch import save_file

STEPS = 20
LEARNING_RATE = 1e-4
WEIGHT_DECAY = 0.01
BATCH = 4
MEAN = (0.5, 0.4, 0.6)
STD = (0.25, 0.3, 0.2)

TIMM_TO_TORCHVISION = {
    "cls_token": "class_token",
    "pos_embed": "encoder.pos_embedding",
    "patch_embed.proj.": "conv_proj.",
    "head.": "heads.head.",
}
TIMM_BLOCK = {
    "norm1.": "ln_1.",
    "attn.qkv.weight": "self_attention.in_proj_weight",
    "attn.qkv.bias": "self_attention.in_proj_bias",
    "attn.proj.": "self_attention.out_proj.",
    "norm2.": "ln_2.",
    "mlp.fc1.": "mlp.0.",
    "mlp.fc2.": "mlp.3.",
}


def replace_prefix(name, table):
    for old, new in table.items():
        if name.startswith(old):
            return new + name[len(old):]
    return name


def torchvision_name(name):
    if name.startswith("blocks."):
        _, number, rest = name.split(".", 2)
        return f"encoder.layers.encoder_layer_{number}." + replace_prefix(rest, TIMM_BLOCK)
    return replace_prefix(name, TIMM_TO_TORCHVISION)


def randomise(model, generator):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.3 if parameter.dim() == 1 else 0.15
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
            if parameter.dim() == 1 and name.endswith("weight"):
                parameter.add_(1)  # norms


def make(name, model, image, classes, smoothing, seed):
    generator = torch.Generator().manual_seed(seed)
    randomise(model, generator)
    model.eval()
    pixels = torch.randint(0, 256, (BATCH, *image), generator=generator, dtype=torch.uint8)
    labels = torch.randint(0, classes, (BATCH,), generator=generator)
    mean = torch.tensor(MEAN[: image[0]]).view(1, -1, 1, 1)
    std = torch.tensor(STD[: image[0]]).view(1, -1, 1, 1)
    images = (pixels.float() / 255 - mean) / std

    tensors = {"pixels": pixels, "labels": labels.int()}
    for key, parameter in model.named_parameters():
        tensors["weight." + torchvision_name(key)] = parameter.detach().clone()

    criterion = torch.nn.CrossEntropyLoss(label_smoothing=smoothing)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            tensors["logits"] = logits.detach().clone()
            for key, parameter in model.named_parameters():
                tensors["gradient." + torchvision_name(key)] = parameter.grad.clone()
        optimizer.step()
    tensors["losses"] = torch.tensor(losses, dtype=torch.float32)
    path = pathlib.Path(__file__).parent / f"vit_{name}.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    print(f"{path.name}: {path.stat().st_size} bytes, losses {losses[0]:.6f} to {losses[-1]:.6f}")


def torchvision_token():
    model = torchvision.models.vision_transformer.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=48, num_classes=10)
    make("torchvision", model, (3, 32, 32), 10, 0.0, 1)


def timm_mean():
    """No class token, one channel, an image that is not square, the tanh approximation of GELU."""
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=(8, 12), patch_size=4, in_chans=1, num_classes=7, global_pool="avg", class_token=False,
        embed_dim=16, depth=3, num_heads=2, mlp_ratio=2, act_layer="gelu_tanh")
    make("timm_mean", model, (1, 8, 12), 7, 0.1, 2)


def timm_mean_with_class_token():
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=(12, 8), patch_size=4, in_chans=3, num_classes=5, global_pool="avg", class_token=True,
        embed_dim=24, depth=2, num_heads=3, mlp_ratio=1.5)
    make("timm_mean_class", model, (3, 12, 8), 5, 0.0, 3)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torchvision_token()
    timm_mean()
    timm_mean_with_class_token()

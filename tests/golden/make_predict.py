"""Writes tests/golden/predict.txt: probabilities that timm, torchvision and transformers give tests/golden/pictures under the tiny
weights of tests/golden/weights, each with its own preprocessing. Run by hand after weights.py --fixtures:

    python3 tests/golden/make_predict.py        (torch, torchvision, timm, transformers; Pillow below 12: see make_resize.py)

Lines: FILE_OF_WEIGHTS PICTURE P0 P1 P2 P3 P4

SPDX-License-Identifier: MIT"""
import pathlib

import safetensors.torch
import timm
import torch
import transformers
from PIL import Image
from torchvision import transforms
from torchvision.models.vision_transformer import VisionTransformer

HERE = pathlib.Path(__file__).parent
PICTURES = ("rgb.png", "rgb420.jpg", "grey.png", "palette.png", "cmyk.jpg", "rgb_alpha.png")


def main():
    weights = HERE / "weights"
    tm = timm.create_model(f"local-dir:{weights / 'timm'}", pretrained=True, img_size=16, patch_size=8, embed_dim=16, depth=2,
                           num_heads=2, mlp_ratio=1.5, num_classes=5).eval()
    tm_transform = timm.data.create_transform(**timm.data.resolve_data_config(tm.pretrained_cfg, model=tm))
    tv = VisionTransformer(image_size=16, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=24, num_classes=5).eval()
    tv.load_state_dict(safetensors.torch.load_file(weights / "torchvision.safetensors"))
    tv_transform = transforms.Compose([transforms.Resize(18), transforms.CenterCrop(16), transforms.ToTensor(),
                                       transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    hf = transformers.ViTForImageClassification.from_pretrained(weights / "huggingface").eval()
    hf_transform = transforms.Compose([transforms.Resize((16, 16)), transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])
    lines = []
    for name, model, transform in (("timm", tm, tm_transform), ("torchvision.safetensors", tv, tv_transform),
                                   ("huggingface", hf, hf_transform)):
        for picture in PICTURES:
            with torch.no_grad():
                y = model(transform(Image.open(HERE / "pictures" / picture).convert("RGB")).unsqueeze(0))
            p = (y if isinstance(y, torch.Tensor) else y.logits).softmax(-1)[0]
            lines.append(" ".join([name, picture] + [f"{v:.8f}" for v in p.tolist()]))
    (HERE / "predict.txt").write_text("\n".join(lines) + "\n")


main()

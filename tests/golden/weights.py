"""Are weights of torchvision, timm, transformers and JAX the same models here? Run by hand; prints a Markdown table.

    python3 tests/golden/weights.py build/release/bin [--large] [WORK_FOLDER]    (torch, torchvision, timm, transformers)
    python3 tests/golden/weights.py --fixtures                             writes tests/golden/weights/, which CI reads

For each model: made by its library, every tensor random, saved in several ways; logits on 32 random images by the library
and by Mural (tests/programs/weights_logits), after import; then exported by `mural weights convert`, loaded by the library
again, and compared once more. Also positions for another image size, by each library's own code.

SPDX-License-Identifier: MIT"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
import safetensors.torch
import timm
import torch
import torchvision
import transformers
from torchvision.models.vision_transformer import VisionTransformer, interpolate_embeddings

HERE = pathlib.Path(__file__).parent / "weights"
LIMIT = 1e-4
IMAGES = 32
LARGE = ((224, 16, 12, 12, 768, 3072, 1000),)


def randomise(model, seed=0):
    """Every tensor random, of a size that keeps activations near 1."""
    generator = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        fan = p[0].numel() if p.dim() > 1 and p.shape[0] > 1 else 64
        p.data = torch.randn(p.shape, generator=generator) / fan**0.5
        if p.dim() == 1 and name.endswith("weight"):
            p.data = 1 + 0.3 * p.data * fan**0.5
    return model.eval()


def tv(size, patch, depth, heads, width, mlp, classes):
    return randomise(VisionTransformer(image_size=size, patch_size=patch, num_layers=depth, num_heads=heads,
                                       hidden_dim=width, mlp_dim=mlp, num_classes=classes))


def tm(size, patch, depth, heads, width, mlp, classes, **more):
    return randomise(timm.models.VisionTransformer(img_size=size, patch_size=patch, depth=depth, num_heads=heads,
                                                   embed_dim=width, mlp_ratio=mlp / width, num_classes=classes, **more))


def hf(size, patch, depth, heads, width, mlp, classes, **more):
    config = transformers.ViTConfig(image_size=size, patch_size=patch, num_hidden_layers=depth, num_attention_heads=heads,
                                    hidden_size=width, intermediate_size=mlp, num_labels=classes, **more)
    return randomise(transformers.ViTForImageClassification(config))


def jax_arrays(state, heads):
    """A timm state_dict under the names and in the layout of google-research/vision_transformer."""
    width = state["cls_token"].shape[-1]
    head = width // heads
    out = {"cls": state["cls_token"], "Transformer/posembed_input/pos_embedding": state["pos_embed"],
           "embedding/kernel": state["patch_embed.proj.weight"].permute(2, 3, 1, 0), "embedding/bias": state["patch_embed.proj.bias"],
           "Transformer/encoder_norm/scale": state["norm.weight"], "Transformer/encoder_norm/bias": state["norm.bias"],
           "head/kernel": state["head.weight"].T, "head/bias": state["head.bias"]}
    for i in range(sum(name.endswith("norm1.bias") for name in state)):
        t, j = f"blocks.{i}.", f"Transformer/encoderblock_{i}/"
        for ours, theirs in (("norm1", "LayerNorm_0"), ("norm2", "LayerNorm_2")):
            out[j + theirs + "/scale"], out[j + theirs + "/bias"] = state[t + ours + ".weight"], state[t + ours + ".bias"]
        for ours, theirs in (("fc1", "Dense_0"), ("fc2", "Dense_1")):
            out[f"{j}MlpBlock_3/{theirs}/kernel"] = state[f"{t}mlp.{ours}.weight"].T
            out[f"{j}MlpBlock_3/{theirs}/bias"] = state[f"{t}mlp.{ours}.bias"]
        a = j + "MultiHeadDotProductAttention_1/"
        for k, name in enumerate(("query", "key", "value")):
            rows = slice(k * width, (k + 1) * width)
            out[f"{a}{name}/kernel"] = state[t + "attn.qkv.weight"][rows].T.reshape(width, heads, head)
            out[f"{a}{name}/bias"] = state[t + "attn.qkv.bias"][rows].reshape(heads, head)
        out[a + "out/kernel"] = state[t + "attn.proj.weight"].T.reshape(heads, head, width)
        out[a + "out/bias"] = state[t + "attn.proj.bias"]
    return {name: value.detach().contiguous().numpy() for name, value in out.items()}


def big_vision_names(arrays):
    """google-research/big_vision's numbers for the layers of a block, and its prefix."""
    changes = (("Transformer/posembed_input/pos_embedding", "pos_embedding"), ("MultiHeadDotProductAttention_1", "MultiHeadDotProductAttention_0"),
               ("LayerNorm_2", "LayerNorm_1"), ("MlpBlock_3", "MlpBlock_0"))
    out = {}
    for name, value in arrays.items():
        for theirs, ours in changes:
            name = name.replace(theirs, ours)
        out["params/" + name] = value
    return out


def hf5_names(state):
    """transformers 5 in memory, whatever the installed version saves."""
    return {name: value.detach().clone().contiguous() for name, value in state.items()}


def run(model, pixels, mean, std):
    x = (pixels.float() / 255 - torch.tensor(mean).view(1, -1, 1, 1)) / torch.tensor(std).view(1, -1, 1, 1)
    with torch.no_grad():
        y = torch.cat([model(part) if not hasattr(model, "config") else model(part).logits for part in x.split(8)])
    return y


class Bench:
    def __init__(self, programs, work, large):
        self.large = large
        self.programs, self.work, self.bad, self.n = pathlib.Path(programs), pathlib.Path(work), 0, 0
        print("| model | file | after import | after export and import there |\n|---|---|---|---|")

    def call(self, *command):
        result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if result.returncode:
            raise SystemExit(f"{command}: {result.stderr}")
        return result.stdout

    def facts(self, path):
        self.call(self.programs / "mural", "weights", "inspect", path, "--result", self.work / "facts.json")
        return json.loads((self.work / "facts.json").read_text())

    def mural(self, path, pixels, *side):
        images, out = self.work / "images.safetensors", self.work / "logits.safetensors"
        safetensors.torch.save_file({"pixels": pixels}, images)
        self.call(self.programs / "programs" / "weights_logits", path, images, out, *side)
        return safetensors.torch.load_file(out)

    def pixels(self, facts):
        m = facts["model"]
        self.n += 1
        generator = torch.Generator().manual_seed(self.n)
        return torch.randint(0, 256, (IMAGES, m["channels"], *m["image_size"]), generator=generator, dtype=torch.uint8)

    def row(self, name, path, model, back):
        """back: (naming, OUT name, function that loads it in the library)."""
        facts = self.facts(path)
        pixels = self.pixels(facts)
        norm = facts["preprocess"]["mean"], facts["preprocess"]["std"]
        wanted = run(model, pixels, *norm)
        logits = self.mural(path, pixels)["logits"]
        error = (wanted - logits).abs().max().item()
        again = None
        cell = "–"
        if back:
            naming, out_name, load = back
            out = self.work / out_name
            shutil.rmtree(out, ignore_errors=True)
            out.unlink(missing_ok=True) if out.is_file() else None
            self.call(self.programs / "mural", "weights", "convert", path, out, "--to", naming)
            again = (run(load(out).eval(), pixels, *norm) - wanted).abs().max().item()
            cell = f"{again:.1e}"
        worst = max(error, again or 0)
        self.bad += not worst < LIMIT
        print(f"| {name} | {facts['format']}, {facts['types']} | {error:.1e} | {cell} |{' TOO MUCH' if not worst < LIMIT else ''}",
              flush=True)
        assert wanted.abs().max() > 0.1, "logits too small to tell anything"


def load_state(model, path):
    state = torch.load(path, weights_only=True) if str(path).endswith(".pth") else safetensors.torch.load_file(path)
    model.load_state_dict(state, strict=True)
    return model


def torchvision_rows(b):
    for shape in LARGE if b.large else ((224, 32, 3, 3, 192, 768, 10), (384, 16, 2, 3, 192, 768, 100), (32, 4, 4, 4, 256, 300, 7)):
        model = tv(*shape)
        plain, pth = b.work / "tv.safetensors", b.work / "tv.pth"
        safetensors.torch.save_file(model.state_dict(), plain)
        torch.save({"model": model.state_dict(), "epoch": 3}, pth)
        title = f"torchvision {shape[4]} wide, {shape[2]} blocks, {shape[1]}@{shape[0]}"
        b.row(title, plain, model, ("torchvision", "out.safetensors", lambda p: load_state(tv(*shape), p)))
        if shape[2] < 12:
            b.row(title, pth, model, ("torchvision", "out.pth", lambda p: load_state(tv(*shape), p)))


def timm_load(path):
    return timm.create_model(f"local-dir:{path}", pretrained=True)


def timm_rows(b):
    shapes = [(LARGE[0], {})] if b.large else [
              ((224, 16, 12, 3, 192, 768, 1000), {}), ((224, 32, 2, 12, 768, 3072, 21), {}),
              ((224, 16, 2, 6, 384, 1536, 10), {"global_pool": "avg"}),
              ((64, 8, 3, 3, 192, 768, 10), {"global_pool": "avg", "class_token": False}),
              ((64, 8, 3, 3, 192, 768, 10), {"no_embed_class": True})]
    for shape, more in shapes:
        model = tm(*shape, **more)
        plain, pth = b.work / "timm.safetensors", b.work / "timm.pth"
        safetensors.torch.save_file(model.state_dict(), plain)
        torch.save({"state_dict": {"module." + k: v for k, v in model.state_dict().items()}}, pth)
        title = f"timm {shape[4]} wide, {shape[2]} blocks, {shape[1]}@{shape[0]}" + "".join(f", {k}={v}" for k, v in more.items())
        b.row(title, plain, model, ("timm", "timm-out", timm_load))
        if not b.large:
            b.row(title, pth, model, ("timm", "timm-out", timm_load))


def huggingface_rows(b):
    shapes = [(LARGE[0], {})] if b.large else [((224, 32, 2, 6, 384, 1536, 10), {"layer_norm_eps": 1e-6}),
              ((64, 8, 3, 4, 192, 500, 10), {"hidden_act": "gelu_pytorch_tanh"})]
    for shape, more in shapes:
        model = hf(*shape, **more)
        title = f"Hugging Face {shape[4]} wide, {shape[2]} blocks, {shape[1]}@{shape[0]}" + "".join(f", {k}={v}" for k, v in more.items())
        load = lambda p: transformers.ViTForImageClassification.from_pretrained(p)
        folder = b.work / "hf"
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder)
        b.row(title, folder, model, ("huggingface", "hf-out", load))
        if shape[2] == 12:
            continue
        shutil.rmtree(folder)
        model.save_pretrained(folder, max_shard_size="200KB" if shape[0] == 64 else "50MB")
        b.row(title + ", shards", folder, model, ("huggingface", "hf-out", load))
        new = b.work / "hf5"
        shutil.rmtree(new, ignore_errors=True)
        model.config.save_pretrained(new)
        safetensors.torch.save_file(hf5_names(model.state_dict()), new / "model.safetensors")
        b.row(title + ", names in memory", new, model, ("huggingface", "hf-out", load))


def jax_rows(b):
    for shape in ((224, 16, 12, 3, 192, 768, 1000), (64, 8, 2, 4, 256, 512, 10)):
        model = tm(*shape, act_layer="gelu_tanh")
        for save, name in ((numpy.savez, "jax.npz"), (numpy.savez_compressed, "packed.npz")):
            save(b.work / name, **jax_arrays(model.state_dict(), shape[3]))
            title = f"JAX {shape[4]} wide, {shape[2]} blocks, {shape[1]}@{shape[0]}{', deflated' if 'packed' in name else ''}"
            b.row(title, b.work / name, model, ("timm", "timm-out", timm_load))
        fp32 = tm(*shape)
    for type_ in (torch.float16, torch.bfloat16, torch.float64):
        rounded = {k: v.to(type_) for k, v in fp32.state_dict().items()}
        fp32.load_state_dict({k: v.float() for k, v in rounded.items()})
        safetensors.torch.save_file(rounded, b.work / "half.safetensors")
        b.row(f"timm 256 wide, 2 blocks, as {type_}", b.work / "half.safetensors", fp32, None)


def positions_rows(b):
    print("\n| positions of | from | to | largest difference |\n|---|---|---|---|")
    for old, new in ((64, 96), (64, 48), (64, 200)):
        t = tm(old, 8, 2, 3, 192, 768, 10)
        v, h = tv(old, 8, 2, 3, 192, 768, 10), hf(old, 8, 2, 3, 192, 768, 10)
        safetensors.torch.save_file(t.state_dict(), b.work / "t.safetensors")
        safetensors.torch.save_file(v.state_dict(), b.work / "v.safetensors")
        numpy.savez(b.work / "j.npz", **jax_arrays(t.state_dict(), 3))
        shutil.rmtree(b.work / "h", ignore_errors=True)
        h.save_pretrained(b.work / "h")
        size, pixels = (new // 8, new // 8), torch.zeros((1, 3, new, new), dtype=torch.uint8)
        grid = t.pos_embed[:, 1:].reshape(1, old // 8, old // 8, -1).permute(0, 3, 1, 2)
        linear = torch.nn.functional.interpolate(grid, size, mode="bilinear", align_corners=True)
        wanted = {
            "torchvision": (interpolate_embeddings(new, 8, {"encoder.pos_embedding": v.encoder.pos_embedding})["encoder.pos_embedding"],
                            "v.safetensors"),
            "timm": (timm.layers.resample_abs_pos_embed(t.pos_embed, size, num_prefix_tokens=1), "t.safetensors"),
            "Hugging Face": (h.vit.embeddings.interpolate_pos_encoding(torch.zeros(1, size[0] ** 2 + 1, 192), new, new), "h"),
            "JAX": (torch.cat([t.pos_embed[:, :1], linear.flatten(2).transpose(1, 2)], 1), "j.npz"),
        }
        for name, (table, path) in wanted.items():
            error = (b.mural(b.work / path, pixels, new)["positions"] - table).abs().max().item()
            b.bad += not error < 1e-5
            print(f"| {name} | {old // 8} x {old // 8} | {new // 8} x {new // 8} | {error:.1e} |{'' if error < 1e-5 else ' TOO MUCH'}")


def fixtures():
    """Tiny models in every kind of file, with pixels and logits beside them."""
    HERE.mkdir(exist_ok=True)
    shape = (16, 8, 2, 2, 16, 24, 5)
    generator = torch.Generator().manual_seed(9)
    pixels = torch.randint(0, 256, (4, 3, 16, 16), generator=generator, dtype=torch.uint8)
    imagenet, half = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), ((0.5,) * 3, (0.5,) * 3)
    models = {"torchvision": (tv(*shape), imagenet), "timm": (tm(*shape), half), "timm_mean": (tm(*shape, global_pool="avg"), half),
              "huggingface": (hf(*shape), half), "jax": (tm(*shape, act_layer="gelu_tanh"), half)}
    logits = {name: run(model, pixels, *norm) for name, (model, norm) in models.items()}
    grid = models["timm"][0].pos_embed
    tables = {f"positions_timm_{n}": timm.layers.resample_abs_pos_embed(grid, (n, n)) for n in (1, 3, 5)}
    for n in (1, 3, 5):
        tables[f"positions_torchvision_{n}"] = interpolate_embeddings(
            8 * n, 8, {"encoder.pos_embedding": models["torchvision"][0].encoder.pos_embedding})["encoder.pos_embedding"]
        tables[f"positions_huggingface_{n}"] = models["huggingface"][0].vit.embeddings.interpolate_pos_encoding(
            torch.zeros(1, n * n + 1, 16), 8 * n, 8 * n)
    state = lambda name: {k: v.detach().clone() for k, v in models[name][0].state_dict().items()}
    expected = {"pixels": pixels, **logits, **{k: v.detach().contiguous() for k, v in tables.items()}}
    safetensors.torch.save_file(expected, HERE / "expected.safetensors")
    heads = {"config.json": {"architecture": "vit_base_patch16_224", "pretrained_cfg": {"input_size": [3, 16, 16], "crop_pct": 0.9,
             "interpolation": "bicubic", "mean": [0.5] * 3, "std": [0.5] * 3}, "model_args": {"num_heads": 2}}}
    for name in ("timm", "timm_mean"):
        (HERE / name).mkdir(exist_ok=True)
        safetensors.torch.save_file(state(name), HERE / name / "model.safetensors")
        torch.save({"state_dict": {"module." + k: v for k, v in state(name).items()}, "epoch": 1}, HERE / name / "wrapped.pth")
        config = {**heads["config.json"], "global_pool": "avg" if name == "timm_mean" else "token"}
        (HERE / name / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    note = {"mural": json.dumps({"version": 1, "image_size": [16, 16], "heads": 2, "norm_eps": 1e-6, "gelu": "erf",
            "resize": "bilinear", "interpolation": "bilinear", "resize_side": 18, "mean": imagenet[0], "std": imagenet[1],
            "class_names": ["ant", "bee", "cat", "dog", "eel"]})}
    safetensors.torch.save_file(state("torchvision"), HERE / "torchvision.safetensors", metadata=note)
    model = models["huggingface"][0]
    model.config.id2label = {i: name for i, name in enumerate(("ant", "bee", "cat", "dog", "eel"))}
    shutil.rmtree(HERE / "huggingface", ignore_errors=True)
    model.save_pretrained(HERE / "huggingface", max_shard_size="10KB")
    (HERE / "huggingface" / "preprocessor_config.json").write_text(json.dumps(
        {"image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 16}, "resample": 2, "do_resize": True,
         "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}) + "\n")
    (HERE / "huggingface5").mkdir(exist_ok=True)
    model.config.save_pretrained(HERE / "huggingface5")
    safetensors.torch.save_file(hf5_names(model.state_dict()), HERE / "huggingface5" / "model.safetensors")
    numpy.savez(HERE / "jax.npz", **jax_arrays(state("jax"), 2))
    numpy.savez_compressed(HERE / "jax_deflated.npz", **jax_arrays(state("jax"), 2))
    numpy.savez(HERE / "big_vision.npz", **big_vision_names(jax_arrays(state("jax"), 2)))
    numpy.savez(HERE / "jax_training.npz", **{"opt/target/" + k: v for k, v in jax_arrays(state("jax"), 2).items()})
    (HERE / "torchvision_old").mkdir(exist_ok=True)
    old = {k.replace("mlp.0", "mlp.linear_1").replace("mlp.3", "mlp.linear_2"): v for k, v in state("torchvision").items()}
    safetensors.torch.save_file(old, HERE / "torchvision_old" / "model.safetensors")
    (HERE / "torchvision_old" / "config.json").write_text('{"num_attention_heads": 2}\n')
    strided = state("timm")
    strided["head.weight"] = strided["head.weight"].t().contiguous().t()
    torch.save(strided, HERE / "timm" / "strided.pth")


def main():
    if sys.argv[1:] == ["--fixtures"]:
        return fixtures()
    arguments = [a for a in sys.argv[1:] if a != "--large"]
    work = pathlib.Path(arguments[1]) if len(arguments) > 1 else pathlib.Path(tempfile.mkdtemp())
    work.mkdir(exist_ok=True)
    b = Bench(arguments[0], work, "--large" in sys.argv)
    torchvision_rows(b)
    timm_rows(b)
    huggingface_rows(b)
    if not b.large:
        jax_rows(b)
        positions_rows(b)
    sys.exit(f"{b.bad} beyond the limit" if b.bad else 0)


main()

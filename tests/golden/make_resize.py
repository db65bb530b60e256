"""Writes tests/golden/resize.txt: what Pillow and torchvision make of images of many sizes, as CRC-32 of their bytes.

Run by hand: python3 tests/golden/make_resize.py (numpy, torchvision, Pillow below 13: from 13 on Pillow resamples columns
before rows where that is cheaper, which moves single bytes by one). tests/golden/test_resize.c makes the same
images and compares. Lines:

    each SEED HEIGHT WIDTH NEW_HEIGHT NEW_WIDTH CRC        Image.resize(..., BILINEAR) of one grey plane
    short SEED HEIGHT WIDTH SHORT CROP_HEIGHT CROP_WIDTH CRC    Resize(SHORT), CenterCrop of an RGB image; planes
    cubic, cubics    the same with BICUBIC

SPDX-License-Identifier: MIT"""
import pathlib
import random
import zlib

import numpy
from PIL import Image
from torchvision import transforms

OUT = pathlib.Path(__file__).parent / "resize.txt"


def plane(seed, height, width):
    """Bytes from a hash of their place; large even areas every few seeds, as in pictures."""
    i = numpy.arange(height * width, dtype=numpy.uint64)
    if seed % 4 == 0:
        i = i // 37
    v = (i * 2654435761 + seed * 40503) & 0xFFFFFFFF
    v ^= v >> 15
    v = (v * 2246822519) & 0xFFFFFFFF
    return (v >> 24).astype(numpy.uint8).reshape(height, width)


def each(seed, height, width, new_height, new_width, word="each"):
    how = Image.Resampling.BICUBIC if word == "cubic" else Image.Resampling.BILINEAR
    resized = Image.fromarray(plane(seed, height, width)).resize((new_width, new_height), how)
    return f"{word} {seed} {height} {width} {new_height} {new_width} {zlib.crc32(numpy.asarray(resized).tobytes())}"


def short(seed, height, width, side, crop_height, crop_width, word="short"):
    planes = [plane(seed + c, height, width) for c in range(3)]
    image = Image.fromarray(numpy.stack(planes, axis=-1))
    how = transforms.InterpolationMode.BICUBIC if word == "cubics" else transforms.InterpolationMode.BILINEAR
    image = transforms.CenterCrop((crop_height, crop_width))(transforms.Resize(side, how)(image))
    data = numpy.asarray(image).transpose(2, 0, 1).tobytes()
    return f"{word} {seed} {height} {width} {side} {crop_height} {crop_width} {zlib.crc32(data)}"


def main():
    draw = random.Random(20)
    side = lambda: draw.choice((draw.randint(1, 12), draw.randint(1, 100), draw.randint(1, 420)))
    lines = [each(n, 32, 32, 224, 224) for n in range(3)]
    lines += [each(3, 28, 28, 224, 224), each(4, 1, 1, 224, 224), each(5, 500, 3, 1, 1), each(6, 2000, 1, 7, 5)]
    lines += [each(7, 64, 64, 64, 64), each(8, 64, 50, 64, 25), each(9, 64, 50, 25, 50)]
    lines += [each(seed, side(), side(), side(), side()) for seed in range(10, 510)]
    lines += [short(1, 32, 32, 224, 224, 224), short(2, 375, 500, 256, 224, 224), short(3, 500, 333, 256, 224, 224)]
    for seed in range(510, 560):
        crop = draw.randint(1, 64)
        lines.append(short(seed, side(), side(), crop + draw.randint(0, 32), crop, draw.randint(1, crop)))
    draw = random.Random(21)
    lines += [each(seed, side(), side(), side(), side(), "cubic") for seed in range(560, 760)]
    for seed in range(760, 780):
        crop = draw.randint(1, 64)
        lines.append(short(seed, side(), side(), crop + draw.randint(0, 32), crop, draw.randint(1, crop), "cubics"))
    OUT.write_text("\n".join(lines) + "\n")


main()

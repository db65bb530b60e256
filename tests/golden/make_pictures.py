"""Writes tests/golden/pictures: small PNG and JPEG files of many kinds, and in pictures.txt what Pillow makes of them.

Run by hand: python3 tests/golden/make_pictures.py (numpy, Pillow). Lines of pictures.txt: NAME HEIGHT WIDTH CRC-32 of the
bytes of Image.open(NAME).convert("RGB"). tests/unit/test_decode.c compares; grey16.png is the one kind where Mural differs
on purpose, so its line holds the upper bytes.
SPDX-License-Identifier: MIT"""
import pathlib
import struct
import zlib

import numpy
from PIL import Image

FOLDER = pathlib.Path(__file__).parent / "pictures"
HEIGHT, WIDTH = 13, 17


def smooth(channels):
    y, x, c = numpy.mgrid[0:HEIGHT, 0:WIDTH, 0:channels]
    return ((x * 13 + y * (7 + 5 * c) + c * 60) % 256).astype(numpy.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(name, bits, colour, rows):
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, colour, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    (FOLDER / name).write_bytes(content)


def main():
    FOLDER.mkdir(exist_ok=True)
    rgb, rgba, grey = smooth(3), smooth(4), smooth(1)[:, :, 0]
    Image.fromarray(grey).save(FOLDER / "grey.png")
    Image.fromarray(grey > 100).save(FOLDER / "grey1.png")
    for bits in (2, 4):
        rows = []
        for y in range(HEIGHT):
            values = "".join(f"{v >> (8 - bits):0{bits}b}" for v in grey[y])
            values += "0" * (-len(values) % 8)
            rows.append(bytes(int(values[i:i + 8], 2) for i in range(0, len(values), 8)))
        write_png(f"grey{bits}.png", bits, 0, rows)
    wide = grey.astype(">u2") * 257 + 77
    write_png("grey16.png", 16, 0, [row.astype(">u2").tobytes() for row in wide])
    deep = rgb.astype(">u2") * 256 + 200
    write_png("rgb16.png", 16, 2, [row.astype(">u2").tobytes() for row in deep])
    Image.merge("LA", (Image.fromarray(grey), Image.fromarray(255 - grey))).save(FOLDER / "grey_alpha.png")
    Image.fromarray(rgb).save(FOLDER / "rgb.png")
    Image.fromarray(rgba).save(FOLDER / "rgb_alpha.png")
    palette = Image.fromarray(rgb).quantize(16)
    palette.save(FOLDER / "palette.png")
    palette.save(FOLDER / "palette_alpha.png", transparency=3)
    Image.fromarray(grey).save(FOLDER / "grey.jpg", quality=90)
    for name, sampling in (("444", 0), ("422", 1), ("420", 2)):
        Image.fromarray(rgb).save(FOLDER / f"rgb{name}.jpg", quality=85, subsampling=sampling)
    Image.fromarray(rgb).save(FOLDER / "progressive.jpeg", quality=85, progressive=True)
    Image.fromarray(rgba, mode="CMYK").save(FOLDER / "cmyk.jpg", quality=90)
    (FOLDER / "jpeg_by_another_name.png").write_bytes((FOLDER / "rgb444.jpg").read_bytes())

    lines = []
    for path in sorted(FOLDER.iterdir()):
        if path.suffix == ".txt":
            continue
        if path.name == "grey16.png":
            pixels = numpy.repeat((wide >> 8).astype(numpy.uint8)[:, :, None], 3, axis=2)
        else:
            pixels = numpy.asarray(Image.open(path).convert("RGB"))
        lines.append(f"{path.name} {pixels.shape[0]} {pixels.shape[1]} {zlib.crc32(pixels.tobytes())}")
    (FOLDER / "pictures.txt").write_text("\n".join(lines) + "\n")


main()

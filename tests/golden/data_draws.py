#!/usr/bin/env python3
"""Prints the golden values of test_sampler.c, test_augment.c, test_synthetic.c and test_validation.c (tests/unit) from the definitions.

A second, independent statement of Philox4x32-10 and of what the data floor draws with it. Needs only Python.
SPDX-License-Identifier: MIT
"""

MASK = 0xFFFFFFFF
SHUFFLE, CROP, FLIP, SYNTHETIC, VALIDATION = 1, 3, 4, 5, 11


def philox(seed, purpose, stream, element, layer=0):
    block, lane = divmod(element, 4)
    c = [block & MASK, block >> 32, stream & MASK, stream >> 32]
    k = [seed, purpose << 24 | layer]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c[lane]


def below(seed, purpose, stream, element, n, layer=0):
    return philox(seed, purpose, stream, element, layer) * n >> 32


def uniform(seed, purpose, stream):
    high, low = philox(seed, purpose, stream, 0), philox(seed, purpose, stream, 1)
    return (high << 21 | low >> 11) / 2**53


def order(images, seed, epoch):
    result = list(range(images))
    for i in reversed(range(1, images)):
        j = below(seed, SHUFFLE, epoch, i, i + 1)
        result[i], result[j] = result[j], result[i]
    return result


def cut(seed, epoch, position, padding, flip):
    stream = epoch << 32 | position
    dx, dy = (below(seed, CROP, stream, e, 2 * padding + 1) - padding for e in (0, 1))
    return dx, dy, int(uniform(seed, FLIP, stream) < flip)


def toward_zero(a, b):
    """Division as C does it."""
    return a // b if a >= 0 else -(-a // b)


def synthetic_image(seed, index, channels, side, classes):
    """A training image as a list of bytes: an 8 x 8 pattern per class and channel, moved, dimmed and under noise."""
    label = index % classes
    draw = lambda e, low, high: low + below(seed, SYNTHETIC, index, e, high - low + 1, layer=1)
    dx, dy = draw(0, -256, 256), draw(1, -256, 256)
    contrast, brightness, noise = draw(2, 128, 256), draw(3, -32, 32), draw(4, 24, 96)
    pixels = []
    for c in range(channels):
        grid = [philox(seed, SYNTHETIC, label, c * 64 + i) >> 24 for i in range(64)]
        for y in range(side):
            for x in range(side):
                place = len(pixels)
                grain = (philox(seed, SYNTHETIC, index, place // 4, layer=2) >> 8 * (place % 4) & 255) - 128
                v, u = (y * 2048 // side + dy) % 2048, (x * 2048 // side + dx) % 2048
                at = lambda j, i: grid[(v // 256 + j) % 8 * 8 + (u // 256 + i) % 8]
                fv, fu = v % 256, u % 256
                top, bottom = (at(j, 0) * (256 - fu) + at(j, 1) * fu for j in (0, 1))
                grey = (top * (256 - fv) + bottom * fv) // 65536
                value = 128 + toward_zero((grey - 128) * contrast, 256) + brightness + toward_zero(grain * noise, 128)
                pixels.append(min(max(value, 0), 255))
    return pixels


def set_aside(seed, labels, fraction):
    """Indexes of the validation images: sorted by class and draw, one is taken whenever the share is due."""
    taken, seen = [], {}
    for i, (label, _, index) in enumerate(sorted((c, philox(seed, VALIDATION, 0, j), j) for j, c in enumerate(labels))):
        due = int((i + 1) * fraction + 0.5) > len(taken)
        if due and seen.get(label, 0) + 1 < labels.count(label):
            taken.append(index)
            seen[label] = seen.get(label, 0) + 1
    return sorted(taken)


def fnv1a(data):
    result = 14695981039346656037
    for byte in data:
        result = (result ^ byte) * 1099511628211 % 2**64
    return result


if __name__ == "__main__":
    # The known answer of the algorithm's authors (Random123) for zeros.
    assert philox(0, 0, 0, 0) == 0x6627E8D5
    print("order(600, seed 42, epoch 7)[:16]:", order(600, 42, 7)[:16])
    print("order(5, seed 0, epoch 0):", order(5, 0, 0))
    for position in range(8):
        print(f"cut(seed 42, epoch 7, position {position}, padding 4, flip 0.5):", cut(42, 7, position, 4, 0.5))
    images = [b for i in range(20) for b in synthetic_image(42, i, channels=3, side=16, classes=10)]
    print("FNV-1a of synthetic images 0..19 (seed 42, 3 x 16 x 16, 10 classes): 0x%016x" % fnv1a(images))
    print("set aside, seed 5:", set_aside(5, [0] * 12 + [1] * 8 + [2] * 20, 0.2))

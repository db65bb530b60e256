"""Writes the small sets of tests/golden/cifar: CIFAR's "python version" as Python 2's cPickle wrote it.

Run by hand: python3 tests/golden/make_cifar.py (needs nothing but Python). The official files hold Python 2 texts, which
no option of Python 3's pickle writes, so the pickler is taught them; everything else is Python's own protocol 2, with
numpy's reduction of an array spelled out. tests/unit/test_cifar.c makes the binary version from the same formulas and
compares. One batch is in Fortran's order, which numpy writes for a transposed array.
SPDX-License-Identifier: MIT"""
import pathlib
import pickle
import struct

FOLDER = pathlib.Path(__file__).parent / "cifar"
PIXELS = 3072
CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck".split()


class Global:
    """A module and a name, written as such."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Array:
    """Rows of bytes, reduced as numpy reduces a uint8 array."""

    def __init__(self, rows, fortran):
        self.rows, self.fortran = rows, fortran


RECONSTRUCT = Global("numpy.core.multiarray", "_reconstruct")
NDARRAY = Global("numpy", "ndarray")
DTYPE = Global("numpy", "dtype")


class Type:
    """numpy's uint8."""


class Pickler(pickle._Pickler):
    dispatch = dict(pickle._Pickler.dispatch)

    def save_text(self, text):
        text = text.encode("latin1") if isinstance(text, str) else text
        short = len(text) < 256
        self.write(b"U" + bytes([len(text)]) if short else b"T" + struct.pack("<i", len(text)))
        self.write(text)
        self.memoize(text)

    def save_name(self, value):
        known = self.memo.get(id(value))
        if known:
            self.write(self.get(known[0]))
            return
        self.write(f"c{value.module}\n{value.name}\n".encode())
        self.memoize(value)

    def save_type(self, value):
        self.save_reduce(DTYPE_CALL, ("u1", 0, 1), (3, "|", None, None, None, -1, -1, 0))

    def save_array(self, array):
        rows = array.rows
        data = b"".join(bytes(column) for column in zip(*rows)) if array.fortran else b"".join(rows)
        state = (1, (len(rows), PIXELS), Type(), array.fortran, data)
        self.save_reduce(RECONSTRUCT_CALL, (NDARRAY, (0,), "b"), state)

    dispatch[str] = save_text
    dispatch[bytes] = save_text
    dispatch[Global] = save_name
    dispatch[Type] = save_type
    dispatch[Array] = save_array


class Callable(Global):
    """save_reduce insists on something callable."""

    def __call__(self):
        raise RuntimeError("only written, never called")


RECONSTRUCT_CALL = Callable(RECONSTRUCT.module, RECONSTRUCT.name)
DTYPE_CALL = Callable(DTYPE.module, DTYPE.name)
Pickler.dispatch[Callable] = Pickler.save_name


def image(number):
    """Image `number` of a set, counted through all its files; the same formula is in the test."""
    return bytes((number * 7 + p * 3 + p // 1024 * 50) % 256 for p in range(PIXELS))


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as out:
        Pickler(out, 2).dump(content)


def names(first, count):
    return [f"picture_s_{number:06}.png" for number in range(first, first + count)]


def make_cifar10():
    folder = FOLDER / "cifar-10-batches-py"
    first = 0
    for batch, count in enumerate((4, 1, 2, 1, 3), 1):
        numbers = range(first, first + count)
        write(folder / f"data_batch_{batch}", {
            "batch_label": f"training batch {batch} of 5",
            "labels": [n % 10 for n in numbers],
            "data": Array([image(n) for n in numbers], fortran=batch == 5),
            "filenames": names(first, count),
        })
        first += count
    numbers = range(first, first + 2)
    write(folder / "test_batch", {
        "batch_label": "testing batch 1 of 1",
        "labels": [n % 10 for n in numbers],
        "data": Array([image(n) for n in numbers], fortran=False),
        "filenames": names(first, 2),
    })
    write(folder / "batches.meta", {"num_cases_per_batch": 10000, "label_names": CIFAR10, "num_vis": 3072})


def make_cifar100():
    folder = FOLDER / "cifar-100-python"
    for name, numbers in (("train", range(3)), ("test", range(3, 5))):
        write(folder / name, {
            "filenames": names(numbers[0], len(numbers)),
            "batch_label": f"{name} batch 1 of 1",
            "fine_labels": [n * 20 % 100 + 19 for n in numbers],
            "coarse_labels": [n % 20 for n in numbers],
            "data": Array([image(n) for n in numbers], fortran=False),
        })
    write(folder / "meta", {
        "fine_label_names": [f"fine_{c}" for c in range(100)],
        "coarse_label_names": [f"coarse_{c}" for c in range(20)],
    })


make_cifar10()
make_cifar100()

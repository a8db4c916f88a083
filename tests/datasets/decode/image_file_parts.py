"""What make_image_files.py and more_tiff_files.py make files of: pixels, and pieces of a TIFF."""
import io
import os
import struct
import subprocess
import tempfile

import numpy as np
from PIL import Image

H, W = 9, 13
Y, X, C = np.meshgrid(np.arange(H), np.arange(W), np.arange(4), indexing="ij")
PIXELS = ((Y * 37 + X * 23 + C * 71 + X * Y * 5) % 256).astype(np.uint8)
RGB, RGBA = Image.fromarray(PIXELS[..., :3]), Image.fromarray(PIXELS, "RGBA")
GREY, INKS = Image.fromarray(PIXELS[..., 0]), Image.fromarray(PIXELS, "CMYK")
BILEVEL = Image.fromarray(np.where(PIXELS[..., 0] < 128, 0, 255).astype(np.uint8)).convert("1")
INDEX = (X[..., 0] * 3 + Y[..., 0] * 5).astype(np.uint8)
files = []


def add(name, data, status="ok", pixels=None, tolerance=0, strict=None):
    """Pixels are Pillow's unless they are given. `strict`: the status where the library's own check comes first."""
    entry = {"name": name, "status": status, "file": data.hex()}
    if strict:
        entry["strict"] = strict
    if status == "ok":
        if pixels is None:
            pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        height, width, _ = pixels.shape
        entry.update(width=width, height=height, tolerance=tolerance, pixels=pixels.astype(int).ravel().tolist())
    files.append(entry)


def saved(image, form, **how):
    file = io.BytesIO()
    image.save(file, form, **how)
    return file.getvalue()


def palette_image(colours):
    image = Image.fromarray(INDEX % colours, "P")
    image.putpalette([(i * k + 17 * k) % 256 for i in range(colours) for k in (37, 91, 53)])
    return image


# TIFF: header, the pixels, one directory of tag, type (3 short, 4 long), count, value or its place.
def tiff(data, tags):
    at = 8 + len(data) + len(data) % 2
    entries, behind = b"", b""
    room = at + 2 + 12 * len(tags) + 4
    for tag in sorted(tags):
        kind, values = tags[tag]
        packed = struct.pack("<" + {1: "B", 3: "H", 4: "I"}[kind] * len(values), *values)
        if len(packed) > 4:
            place, behind = room + len(behind), behind + packed
            packed = struct.pack("<I", place)
        entries += struct.pack("<HHI", tag, kind, len(values)) + packed.ljust(4, b"\0")
    head = b"II*\0" + struct.pack("<I", at) + data + bytes(len(data) % 2)
    return head + struct.pack("<H", len(tags)) + entries + bytes(4) + behind


def tags(**changed):
    names = {"width": 256, "height": 257, "bits": 258, "compression": 259, "photometric": 262, "offsets": 273,
             "samples": 277, "rows": 278, "counts": 279, "planes": 284, "tile_width": 322, "tile_height": 323,
             "tile_offsets": 324, "tile_counts": 325}
    base = {"width": (4, [W]), "height": (4, [H]), "bits": (3, [8, 8, 8]), "compression": (3, [1]),
            "photometric": (3, [2]), "offsets": (4, [8]), "samples": (3, [3]), "rows": (4, [H]), "counts": (4, [W * H * 3])}
    base.update(changed)
    return {names[key]: value for key, value in base.items() if value is not None}


def copied(data, *flags):
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "a.tif"), os.path.join(folder, "b.tif")
        with open(source, "wb") as file:
            file.write(data)
        subprocess.run(["tiffcp", *flags, source, target], check=True)
        with open(target, "rb") as file:
            return file.read()


LARGE_H, LARGE_W = 21, 26


def large_image():
    y, x, c = np.meshgrid(np.arange(LARGE_H), np.arange(LARGE_W), np.arange(3), indexing="ij")
    return Image.fromarray((128 + 100 * np.sin(0.2 * y + 0.3 * c) * np.cos(0.17 * x - c)).astype(np.uint8))

#!/usr/bin/python3
"""Writes filters.json: what Pillow makes of small images in other sizes.

Made with Pillow 12.0.0 (PyPI) and NumPy. Pillow to version 12 resizes rows first.
"""
import json
import os
import sys

import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "scripts", "pixels"))
from pillow_fits import WAYS, fitted


def image(height, width):
    """That of make_images.py: slopes with hard edges, which a cubic overshoots."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return Image.fromarray(((y * 37 + x * 23 + c * 71 + x * y * 5) % 256).astype(np.uint8))


def cases():
    for size in [(1, 1), (1, 7), (9, 1), (2, 3), (40, 30), (11, 640), (64, 64), (900, 17), (299, 333), (1100, 1500)]:
        for new in [(4, 5), (8, 8), (1, 1)]:
            yield from ((size, new, way, "stretch") for way in WAYS if way != "nearest")
    for size in [(3, 2), (40, 30), (299, 334), (30, 41), (7, 7)]:
        yield from ((size, (7, 7), way, fit) for way in WAYS for fit in ("crop", "crop:0.875", "pad"))
    yield from (((20, 31), (6, 9), way, "pad") for way in WAYS)


golden = []
for (height, width), (new_height, new_width), way, fit in cases():
    pixels = np.asarray(fitted(image(height, width), new_height, new_width, WAYS[way], fit))
    golden.append({"height": height, "width": width, "new_height": new_height, "new_width": new_width, "resize": way,
                   "fit": fit, "pixels": pixels.tobytes().hex()})
with open(os.path.join(HERE, "filters.json"), "w") as file:
    file.write("[" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in golden) + "]\n")

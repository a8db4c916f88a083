#!/usr/bin/python3
"""Writes images.json: what other people's programs make of small images.

Needs Debian's python3-pil and python3-scipy (made with Pillow 9.4.0 and, for tones, 13.0.0; SciPy 1.10.1). The warp is put together as
Keras' ImageDataGenerator does (keras_preprocessing, affine_transformations.py: apply_affine_transform, with the
centre at side / 2 - 0.5) and drawn by SciPy, which is what Keras calls.
"""
import json
import os

import numpy as np
from PIL import Image, ImageEnhance, ImageOps
from scipy import ndimage


def image(height, width):
    """Smooth enough for interpolation to be told from a wrong place, and no symmetry."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return ((y * 37 + x * 23 + c * 71 + x * y * 5) % 256).astype(np.uint8)


def nearest():
    """Which pixel of `side` each of `new` shows."""
    cases = []
    for side, new in [(1, 4), (2, 5), (5, 3), (7, 64), (32, 128), (499, 256), (500, 299), (1050, 299), (1023, 61),
                      (333, 299), (640, 224), (4000, 277)]:
        row = Image.fromarray(np.arange(side, dtype=np.int32)[None])
        cases.append({"side": side, "new": new, "shows": np.asarray(row.resize((new, 1), Image.NEAREST))[0].tolist()})
    return cases


def nearest_image():
    small = np.asarray(Image.fromarray(image(7, 5)).resize((8, 3), Image.NEAREST))
    return {"height": 7, "width": 5, "new_height": 3, "new_width": 8, "pixels": small.ravel().tolist()}


def keras_warp(image, theta, shear, tx, ty, zx, zy):
    matrix = np.eye(3)
    theta, shear = np.deg2rad(theta), np.deg2rad(shear)
    matrix = matrix @ [[np.cos(theta), -np.sin(theta), 0], [np.sin(theta), np.cos(theta), 0], [0, 0, 1]]
    matrix = matrix @ [[1, 0, tx], [0, 1, ty], [0, 0, 1]]
    matrix = matrix @ [[1, -np.sin(shear), 0], [0, np.cos(shear), 0], [0, 0, 1]]
    matrix = matrix @ [[zx, 0, 0], [0, zy, 0], [0, 0, 1]]
    height, width, _ = image.shape
    centre, back = np.eye(3), np.eye(3)
    centre[:2, 2] = height / 2 - 0.5, width / 2 - 0.5
    back[:2, 2] = -centre[:2, 2]
    matrix = centre @ matrix @ back
    planes = [ndimage.affine_transform(image[..., c].astype(float), matrix[:2, :2], matrix[:2, 2], order=1,
                                       mode="nearest") for c in range(3)]
    return np.stack(planes, -1)


def warps():
    cases = []
    for height, width, *warp in [(8, 8, 17, 0, 0, 0, 1, 1), (7, 9, 0, 12, 0, 0, 1, 1), (8, 6, 0, 0, 1.3, -2.25, 1, 1),
                                 (6, 9, 0, 0, 0, 0, 0.8, 1.17), (9, 8, -31, 8, 0.6, 1.4, 1.2, 0.85)]:
        drawn = keras_warp(image(height, width), *warp)
        cases.append({"height": height, "width": width, "warp": warp, "pixels": np.round(drawn, 3).ravel().tolist()})
    return cases


def colours():
    cases = []
    for kind in ("Brightness", "Contrast", "Color"):
        for factor in (0.0, 0.4, 0.93, 1.35, 2.0):
            changed = getattr(ImageEnhance, kind)(Image.fromarray(image(5, 6))).enhance(factor)
            cases.append({"kind": kind, "factor": factor, "pixels": np.asarray(changed).ravel().tolist()})
    return cases


def tones():
    """ImageOps and sharpness, of an image whose channels lack black and white and have many bytes alike."""
    small = (image(9, 40) // 2 + np.array([30, 60, 90])).astype(np.uint8)
    small[:, 20:] //= 16
    cases = []
    for kind, amount, change in [("solarize", 100, lambda i: ImageOps.solarize(i, 100)),
                                 ("posterize", 4, lambda i: ImageOps.posterize(i, 4)),
                                 ("posterize", 7, lambda i: ImageOps.posterize(i, 7)),
                                 ("stretch", 0, ImageOps.autocontrast), ("equalize", 0, ImageOps.equalize),
                                 *[("sharpness", f, lambda i, f=f: ImageEnhance.Sharpness(i).enhance(f))
                                   for f in (0.1, 0.64, 1.9)]]:
        drawn = np.asarray(change(Image.fromarray(small)))
        cases.append({"kind": kind, "amount": amount, "before": small.ravel().tolist(), "pixels": drawn.ravel().tolist()})
    return cases


golden = {"nearest": nearest(), "nearest_image": nearest_image(), "warps": warps(), "colours": colours(), "tones": tones()}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "images.json"), "w") as file:
    parts = []
    for key, value in golden.items():
        rows = value if isinstance(value, list) else [value]
        text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        parts.append(f'"{key}":[\n{text}]' if isinstance(value, list) else f'"{key}":{text}')
    file.write("{" + ",\n".join(parts) + "}\n")

#!/usr/bin/python3
"""Writes orientations.json: an image with each EXIF orientation in each format that has one, and how Pillow turns it.

Needs Pillow with libwebp and libtiff (made with Pillow 13.0.0). ImageOps.exif_transpose is what shows images upright.
"""
import io
import json
import os

from PIL import Image, ImageOps

W, H = 5, 3
ORIENTATION = 274
FORMATS = {"JPEG": {"quality": 95, "subsampling": 0}, "PNG": {}, "WEBP": {"lossless": True}, "TIFF": {}}


def stored():
    image = Image.new("RGB", (W, H))
    for y in range(H):
        for x in range(W):
            image.putpixel((x, y), (40 * x + 10, 70 * y + 20, 15 * (x + y)))
    return image


def entry(form, how, orientation, endian):
    exif = Image.Exif()
    exif.endian = endian
    exif[ORIENTATION] = orientation
    file = io.BytesIO()
    if form == "TIFF":
        stored().save(file, form, tiffinfo={ORIENTATION: orientation})
    else:
        stored().save(file, form, exif=exif.tobytes(), **how)
    shown = ImageOps.exif_transpose(Image.open(io.BytesIO(file.getvalue()))).convert("RGB")
    return {"name": f"{form.lower()} {orientation} {'little' if endian == '<' else 'big'}", "orientation": orientation,
            "file": file.getvalue().hex(), "width": shown.width, "height": shown.height,
            "pixels": list(shown.tobytes())}


def main():
    entries = [entry(form, how, orientation, "<" if form == "TIFF" else "<>"[orientation % 2])
               for form, how in FORMATS.items() for orientation in range(1, 9)]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "orientations.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in entries) + "\n]\n")


if __name__ == "__main__":
    main()

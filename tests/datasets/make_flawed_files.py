#!/usr/bin/python3
"""Writes flawed_files.json: small files of every format that show little once they are read, and others that do not.

Needs Pillow with libwebp and libtiff (made with Pillow 13.0.0). PNG of three channels of 16 bits is put together here.
"""
import io
import json
import os
import struct
import zlib

from PIL import Image

SIDE = 6
files = []


def saved(image, form, **how):
    file = io.BytesIO()
    image.save(file, form, **how)
    return file.getvalue()


def add(name, flaw, data):
    files.append({"name": name, "flaw": flaw, "file": data.hex()})


def filled(mode, value):
    """An image whose pixel (x, y) is value(x, y)."""
    image = Image.new(mode, (SIDE, SIDE))
    for y in range(SIDE):
        for x in range(SIDE):
            image.putpixel((x, y), value(x, y))
    return image


def ring(x, y):
    return 255 if 1 <= x <= 4 and 1 <= y <= 4 else 0


def palette(colours, indices):
    image = filled("P", indices)
    image.putpalette(colours)
    return image


def png_48(value):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + b"".join(struct.pack(">3H", *(value(x, y),) * 3) for x in range(SIDE)) for y in range(SIDE))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 16, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main():
    white, black = Image.new("RGB", (SIDE, SIDE), "white"), Image.new("RGB", (SIDE, SIDE))
    dim = filled("RGB", lambda x, y: (x + y, x, 2 * y))
    colours = filled("RGB", lambda x, y: (40 * x, 40 * y, 90))
    for form, how in (("PNG", {}), ("BMP", {}), ("GIF", {}), ("JPEG", {}), ("WEBP", {"lossless": True}), ("TIFF", {})):
        low = form.lower()
        add(f"{low} white", "one colour", saved(white, form, **how))
        add(f"{low} black", "one colour", saved(black, form, **how))
        add(f"{low} colours", "none", saved(colours, form, **how))
        if form != "GIF":
            add(f"{low} dim", "nearly black", saved(dim, form, **how))
    add("png one grey", "one colour", saved(Image.new("L", (SIDE, SIDE), 90), "PNG"))
    add("png black and white", "none", saved(filled("1", ring), "PNG"))
    add("jpeg dim grey", "nearly black", saved(filled("L", lambda x, y: x + y), "JPEG"))

    add("png palette of one colour", "one colour", saved(palette([9, 90, 9] * 4, lambda x, y: x % 4), "PNG"))
    add("png palette", "none", saved(palette([0, 0, 0, 255, 0, 0], lambda x, y: x % 2), "PNG"))

    shape = filled("RGBA", lambda x, y: (0, 0, 0, ring(x, y)))
    drawn = filled("RGBA", lambda x, y: (40 * x, 9, 9, ring(x, y)))
    for form, how in (("PNG", {}), ("WEBP", {"lossless": True, "exact": True}), ("TIFF", {}), ("BMP", {})):
        add(f"{form.lower()} shape in alpha", "one colour without alpha", saved(shape, form, **how))
        add(f"{form.lower()} colours with alpha", "none", saved(drawn, form, **how))
    add("webp lossy shape in alpha", "one colour without alpha", saved(shape, "WEBP", quality=80))
    add("png grey shape in alpha", "one colour without alpha",
        saved(filled("LA", lambda x, y: (70, ring(x, y))), "PNG"))
    add("png palette shape in alpha", "one colour without alpha",
        saved(palette([0, 0, 0] * 2, lambda x, y: ring(x, y) // 255), "PNG", transparency=b"\0\xff"))
    add("gif shape in alpha", "one colour without alpha",
        saved(palette([255, 255, 255, 0, 0, 0], lambda x, y: ring(x, y) // 255), "GIF", transparency=0))

    for form in ("PNG", "TIFF"):
        for bits, flaw in ((16, "none"), (12, "low bits of 16"), (10, "low bits of 16"), (8, "low bits of 16")):
            image = filled("I;16", lambda x, y: (6 * y + x) * (2 ** bits - 1) // 35)
            add(f"{form.lower()} {bits} bits in 16", flaw, saved(image, form))
    add("png 12 bits in 16, three channels", "low bits of 16", png_48(lambda x, y: 4095 * (6 * y + x) // 35))
    add("png 16 bits, three channels", "none", png_48(lambda x, y: 65535 * (6 * y + x) // 35))

    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "flawed_files.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in files) + "\n]\n")


if __name__ == "__main__":
    main()

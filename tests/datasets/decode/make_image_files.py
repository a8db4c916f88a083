#!/usr/bin/python3
"""Writes image_files.json: small image files of every format, good and damaged, and what Pillow sees in them.

Needs Debian's python3-pil, python3-numpy and libtiff-tools (made with Pillow 9.4.0, libtiff 4.5.0, libwebp 1.2.4). What
Pillow cannot write is put together here from the formats' specifications; where Pillow and the specification differ,
pixels are given by hand, and a comment says why.
"""
import json
import os
import struct
import zlib

import numpy as np
from PIL import Image

from image_file_parts import (BILEVEL, GREY, H, INDEX, INKS, PIXELS, RGB, RGBA, W, X, Y, add, copied, files,
                              large_image, palette_image, saved, tags, tiff)
from more_tiff_files import tiff_kind_files, tiff_of_jpeg_files


# PNG: chunks of length, type, data, CRC.
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, bits, colour, rows, interlaced=0, more=b"", cut=None):
    packed = zlib.compress(rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0,
                                                              interlaced)) + more
            + chunk(b"IDAT", packed[:cut]) + chunk(b"IEND", b""))


def plain_rows(image):
    return b"".join(b"\0" + row.tobytes() for row in image)


def adam7(image):
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    return b"".join(plain_rows(image[y::dy, x::dx]) for y, x, dy, dx in passes if x < W)


def png_files():
    for name, image in (("rgb", RGB), ("rgba", RGBA), ("grey", GREY), ("1 bit", BILEVEL)):
        add("png " + name, saved(image, "PNG"))
    for colours in (2, 4, 16, 200):
        add(f"png palette of {colours}", saved(palette_image(colours), "PNG"))
    add("png palette with transparency", saved(palette_image(16), "PNG", transparency=3))
    wide = (PIXELS[..., :3].astype(">u2") << 8) + 77
    add("png 16 bits", png(W, H, 16, 2, plain_rows(wide.astype(">u2"))), pixels=PIXELS[..., :3])
    add("png interlaced", png(W, H, 8, 2, adam7(PIXELS[..., :3].copy()), 1))
    palette = bytes((i * k) % 256 for i in range(70) for k in (7, 11, 13))
    add("png interlaced palette", png(W, H, 8, 3, adam7(INDEX % 70), 1, chunk(b"PLTE", palette)))
    short = chunk(b"PLTE", palette[:30])
    add("png index behind its palette", png(W, H, 8, 3, plain_rows(INDEX % 70), 0, short), "not an image")
    add("png interlaced index behind its palette", png(W, H, 8, 3, adam7(INDEX % 70), 1, short), "not an image")
    packed = np.packbits(np.unpackbits((INDEX % 16)[..., None] << 4, axis=2)[..., :4].reshape(H, -1), axis=1)
    add("png 4-bit index behind its palette", png(W, H, 4, 3, plain_rows(packed), 0, short), "not an image")
    add("png without its palette", png(W, H, 8, 3, plain_rows(INDEX % 70)), "not an image")
    add("png of too few rows", png(W, H, 8, 2, plain_rows(PIXELS[:5, :, :3])), "not an image")
    add("png interlaced that ends early", png(W, H, 8, 2, adam7(PIXELS[..., :3].copy())[:150], 1), "not an image")
    text = bytearray(chunk(b"tEXt", b"a\0b"))
    text[-1] ^= 1
    add("png with a wrong checksum of a text", png(W, H, 8, 2, plain_rows(PIXELS[..., :3]), more=bytes(text)),
        "not an image")
    add("png whose stream is cut", png(W, H, 8, 2, plain_rows(PIXELS[..., :3]), cut=-40), "not an image")
    add("png that does not begin with IHDR",
        b"\x89PNG\r\n\x1a\n" + chunk(b"tEXt", b"a\0" + struct.pack(">II", W, H) + bytes(9)) + chunk(b"IEND", b""),
        "not an image")


# BMP: file header, information header, masks or palette, rows from below.
def bmp(bits, rows, between=b"", compression=0, header=40, used=0, top_down=False, offset=None):
    rows = rows if top_down else rows[::-1]
    data = b"".join(row + bytes(-len(row) % 4) for row in rows)
    at = 14 + header + len(between) if offset is None else offset
    if header == 12:
        info = struct.pack("<IHHHH", 12, W, H, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, W, -H if top_down else H, 1, bits, compression, len(data), 0, 0,
                           used, 0)
    if header > 40:
        info, between = info + between[:16] + bytes(header - 40 - len(between[:16])), between[16:]
        at = 14 + header + len(between)
    return struct.pack("<2sIHHI", b"BM", at + len(data), 0, 0, at) + info + between + data


def words(values, kind):
    return [row.astype(kind).tobytes() for row in values]


def bmp_files():
    add("bmp 24 bits", saved(RGB, "BMP"))
    add("bmp 32 bits", saved(RGBA, "BMP"))
    add("bmp grey", saved(GREY, "BMP"))
    add("bmp 1 bit", saved(BILEVEL, "BMP"))
    add("bmp palette of 200", saved(palette_image(200), "BMP"))
    blue_first = [row.tobytes() for row in PIXELS[..., 2::-1]]
    add("bmp from the top", bmp(24, blue_first, top_down=True))
    add("bmp of OS/2", bmp(24, blue_first, header=12))
    colours = np.array([[(i * k + 9) % 256 for k in (37, 91, 53)] for i in range(16)])
    nibbles = INDEX % 16
    packed = [bytes(int(a) << 4 | int(b) for a, b in zip(row[::2], list(row[1::2]) + [0])) for row in nibbles]
    palette = b"".join(bytes([*colour[::-1], 0]) for colour in colours.tolist())
    add("bmp 4 bits", bmp(4, packed, palette, used=16), pixels=colours[nibbles])
    three = b"".join(bytes(colour[::-1]) for colour in colours.tolist())
    add("bmp 4 bits of OS/2", bmp(4, packed, three, header=12), pixels=colours[nibbles])
    red, green, blue = (PIXELS[..., c].astype(int) for c in range(3))

    def grown(value, bits):  # the bits again and again until there are eight
        return int(f"{value:0{bits}b}" * 8, 2) >> (8 * bits - 8)

    def shown(*parts):
        return np.stack([np.vectorize(lambda v, b=bits: grown(v, b))(part) for part, bits in parts], -1)

    fives = shown((red >> 3, 5), (green >> 3, 5), (blue >> 3, 5))
    add("bmp 16 bits", bmp(16, words(red >> 3 << 10 | green >> 3 << 5 | blue >> 3, "<u2")), pixels=fives)
    rows = words(red >> 3 << 11 | green >> 2 << 5 | blue >> 3, "<u2")
    six = shown((red >> 3, 5), (green >> 2, 6), (blue >> 3, 5))
    masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F)
    add("bmp 16 bits with masks", bmp(16, rows, masks, 3), pixels=six)
    add("bmp 16 bits with masks in its header", bmp(16, rows, masks + bytes(4), 3, 108), pixels=six)
    ten = struct.pack("<III", 0x3FF00000, 0x000FFC00, 0x000003FF)
    rows = words((red << 2 | 1) << 20 | (green << 2 | 2) << 10 | blue << 2, "<u4")
    add("bmp of 10 bits a colour", bmp(32, rows, ten, 3), pixels=PIXELS[..., :3])
    add("bmp 32 bits, red last", bmp(32, words(red | green << 8 | blue << 16, "<u4"),
                                     struct.pack("<III", 0xFF, 0xFF00, 0xFF0000), 3),
        pixels=PIXELS[..., :3])
    bytes_of_index = [row.tobytes() for row in nibbles]
    add("bmp 8-bit index behind its palette", bmp(8, bytes_of_index, palette[:40], used=10), "not an image")
    add("bmp 4-bit index behind its palette", bmp(4, packed, palette[:40], used=10), "not an image")
    ones = [np.packbits(row & 1).tobytes() for row in nibbles]
    add("bmp 1-bit index behind its palette", bmp(1, ones, palette[:4], used=1), "not an image")
    add("bmp that claims colours it does not have", bmp(8, bytes_of_index, palette[:40], used=256), "not an image")
    add("bmp of OS/2 without its palette", bmp(8, bytes_of_index, b"", header=12), "not an image")
    add("bmp with a hole in a mask", bmp(32, rows, struct.pack("<III", 0x3FF00000, 0x000F0C00, 0x3FF), 3),
        "not an image")
    add("bmp without a mask", bmp(32, rows, struct.pack("<III", 0x3FF00000, 0, 0x3FF), 3), "not an image")
    add("bmp whose pixels begin inside its header", bmp(24, blue_first, offset=30), "not an image")
    add("bmp with run lengths", bmp(8, [b"\x0d\x01\0\0"] * H, palette + bytes(960), 1, used=256), "unsupported")
    add("bmp of 2 bits", bmp(2, [bytes(4)] * H, palette[:16]), "unsupported")
    add("bmp of a JPEG", bmp(24, blue_first, compression=4), "unsupported")


# GIF: codes that never grow, since a clear code comes before they would.
def gif_codes(indices, literal_bits=7):
    width, clear = literal_bits + 1, 1 << literal_bits
    codes, room = [clear], (1 << literal_bits) - 2
    for i, index in enumerate(indices):
        if i and i % room == 0:
            codes.append(clear)
        codes.append(int(index))
    codes.append(clear + 1)
    bits = sum(code << (width * i) for i, code in enumerate(codes))
    data = bits.to_bytes((width * len(codes) + 7) // 8, "little")
    blocks = [data[i:i + 200] for i in range(0, len(data), 200)]
    return bytes([literal_bits]) + b"".join(bytes([len(b)]) + b for b in blocks) + b"\0"


def gif(indices, palette, left=0, top=0, screen=(W, H), background=0, control=b"", size=None, codes=None, local=False):
    height, width = indices.shape if size is None else size
    power = max(1, (len(palette) - 1).bit_length())
    table = bytes(palette.astype(np.uint8).ravel()) + bytes(3 * (2 ** power - len(palette)))
    flags = 0x80 | (power - 1)
    head = b"GIF89a" + struct.pack("<HHBBB", *screen, 0 if local else flags, background, 0) + (b"" if local else table)
    image = b"\x2c" + struct.pack("<HHHHB", left, top, width, height, flags if local else 0) + (table if local else b"")
    return head + control + image + (gif_codes(indices.ravel()) if codes is None else codes) + b";"


def gif_files():
    colours = np.array([[(i * k + 5) % 256 for k in (37, 91, 53)] for i in range(64)])
    index = INDEX % 64
    add("gif", saved(palette_image(60), "GIF", interlace=0))
    add("gif interlaced", saved(palette_image(60), "GIF", interlace=1))
    add("gif 1 bit", saved(BILEVEL, "GIF"))
    grey = Image.fromarray(((Y * 31 + X * X * 7) % 251)[..., 0].astype(np.uint8))
    add("gif of long codes", saved(grey.resize((90, 80)), "GIF"))
    add("gif with a palette of its image", gif(index, colours, local=True), pixels=colours[index])
    control = b"\x21\xf9\x04\x01\0\0\x07\0"
    see_through = colours[index]
    see_through[index == 7] = 0  # Pillow shows the colour that the palette has there
    add("gif with transparency", gif(index, colours, control=control), pixels=see_through)
    add("gif whose transparent index has no colour",
        gif(np.where(index == 7, 100, index), colours, control=b"\x21\xf9\x04\x01\0\0\x64\0"), pixels=see_through)
    part = np.broadcast_to(colours[9], (H, W, 3)).copy()  # Pillow ignores the background
    part[2:7, 3:11] = colours[index[2:7, 3:11]]
    add("gif of a part of its screen", gif(index[2:7, 3:11], colours, 3, 2, background=9), pixels=part)
    add("gif of two images", gif(index, colours)[:-1] + gif(index[::-1], colours)[13 + 192:], pixels=colours[index])
    add("gif whose codes end early", gif(index, colours, codes=gif_codes(index.ravel()[:50])), "truncated")
    add("gif without codes", gif(index, colours, codes=b"\x07\0"), "truncated")
    add("gif of a large screen and few codes",
        gif(index, colours, screen=(9459, 9459), size=(9459, 9459), codes=gif_codes(index.ravel())), "truncated")
    add("gif index behind its palette", gif(index + 60, colours), "not an image")
    grown = np.broadcast_to(colours[9], (H + 2, W + 1, 3)).copy()
    grown[2:, 1:] = colours[index]
    add("gif whose screen is too small", gif(index, colours, left=1, top=2, screen=(4, 3), background=9), pixels=grown)
    add("gif image far beside its screen", gif(index, colours, left=16380), "too large")
    add("gif image of no size", gif(index, colours, size=(0, 0)), "not an image")
    add("gif without a palette", gif(index, colours)[:10] + b"\0\0\0" + gif(index, colours)[13 + 192:], "not an image")
    add("gif without an image", gif(index, colours)[:13 + 192] + b";", "not an image")
    wrong = bytearray(gif_codes(index.ravel()))
    wrong[3] = 0xFF  # a code far above those that the table has
    add("gif of a wrong code", gif(index, colours, codes=bytes(wrong)), "not an image")
    wrong[3], wrong[60] = index[0, 0], 0xFF
    add("gif of a wrong code behind others", gif(index, colours, codes=bytes(wrong)), "not an image")
    add("gif of 12-bit literals", gif(index, colours, codes=b"\x0c" + gif_codes(index.ravel())[1:]), "not an image")


def webp_files():
    still, other = saved(RGB, "WEBP", lossless=True), Image.fromarray(255 - PIXELS[..., :3])
    add("webp lossless", still)
    add("webp lossless with alpha", saved(RGBA, "WEBP", lossless=True, exact=True), pixels=PIXELS[..., :3])
    lossy = saved(RGB, "WEBP", quality=80)
    add("webp", lossy)
    add("webp with alpha", saved(RGBA, "WEBP", quality=80))
    add("webp animated", saved(RGB, "WEBP", save_all=True, append_images=[other], lossless=True))
    vp8l = still[still.index(b"VP8L"):]
    frame = b"".join(struct.pack("<I", value)[:3] for value in (1, 2, W - 1, H - 1)) + bytes(4)
    canvas = b"\x02\0\0\0" + struct.pack("<I", W + 5)[:3] + struct.pack("<I", H + 6)[:3]
    body = b"WEBPVP8X" + struct.pack("<I", 10) + canvas + b"ANIM" + struct.pack("<I", 6) + bytes(6)
    anmf = b"ANMF" + struct.pack("<I", 16 + len(vp8l)) + frame + vp8l
    black = np.zeros((H + 7, W + 6, 3), np.uint8)
    black[4:4 + H, 2:2 + W] = PIXELS[..., :3]
    add("webp animated, first frame smaller", b"RIFF" + struct.pack("<I", len(body + anmf)) + body + anmf, pixels=black)
    far = anmf[:8] + b"\x40\0\0" + anmf[11:]
    add("webp whose frame lies beside its canvas", b"RIFF" + struct.pack("<I", len(body + far)) + body + far,
        "not an image")
    add("webp of another size than its canvas",
        b"RIFF" + struct.pack("<I", 22 + len(vp8l)) + body[:22].replace(b"\x02\0\0\0", bytes(4), 1) + vp8l,
        "not an image")
    add("webp without an image", b"RIFF\x0c\0\0\0WEBPEXIF\0\0\0\0", "not an image")
    add("webp of zeros", b"RIFF" + struct.pack("<I", 44) + b"WEBPVP8 " + struct.pack("<I", 32) + bytes(32),
        "not an image")
    for cut in (13, len(still) // 2, len(still) - 2):
        add(f"webp cut at {cut}", still[:cut], "truncated")
    add("webp whose chunk is cut", b"RIFF" + struct.pack("<I", len(lossy) - 30) + lossy[8:-22], "truncated")
    add("webp whose data end early", b"RIFF" + struct.pack("<I", 12 + 60) + lossy[8:16] + struct.pack("<I", 60)
        + lossy[20:80], "truncated")
    smooth = large_image()
    noise = Image.fromarray((np.arange(40 * 40 * 3) ** 3 % 251).astype(np.uint8).reshape(40, 40, 3))
    add("webp, larger", saved(smooth, "WEBP", quality=60))
    add("webp lossless of noise", saved(noise, "WEBP", lossless=True))
    narrow = struct.pack("<I", W - 2)[:3]
    lying = anmf[:14] + narrow + anmf[17:]  # the width that the frame claims
    add("webp whose frame claims another size", b"RIFF" + struct.pack("<I", len(body + lying)) + body + lying,
        "not an image")
    early = anmf[:4] + struct.pack("<I", 16 + len(vp8l) - 10) + anmf[8:]  # the frame ends before its image
    add("webp whose frame ends early", b"RIFF" + struct.pack("<I", len(body + early)) + body + early, "truncated")
    empty = anmf[:4] + struct.pack("<I", 16) + anmf[8:24]
    add("webp whose frame is empty", b"RIFF" + struct.pack("<I", len(body + empty)) + body + empty, "not an image")
    again = anmf + anmf[:24] + b"VP8L\4\0\0\0\0\0\0\0"
    add("webp whose second frame is damaged", b"RIFF" + struct.pack("<I", len(body + again)) + body + again,
        pixels=black)
    # Flags and canvas of VP8X: animation and alpha, which are not there.
    sides = struct.pack("<I", W - 1)[:3] + struct.pack("<I", H - 1)[:3]
    claims = b"WEBPVP8X" + struct.pack("<I", 10) + b"\x12\0\0\0" + sides + vp8l
    add("webp whose flags claim an animation", b"RIFF" + struct.pack("<I", len(claims)) + claims,
        pixels=PIXELS[..., :3])
    add("webp with bytes behind its end", still + b"more", pixels=PIXELS[..., :3])


def tiff_files():
    plain, pixels = saved(RGB, "TIFF"), PIXELS[..., :3].tobytes()
    for how in ("tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "packbits", "jpeg"):
        add("tiff " + how, saved(RGB, "TIFF", compression=how))
    add("tiff", plain)
    add("tiff grey", saved(GREY, "TIFF"))
    add("tiff palette", saved(palette_image(200), "TIFF", compression="tiff_lzw"))
    add("tiff inks", saved(INKS, "TIFF"), tolerance=1)
    add("tiff with alpha", saved(RGBA, "TIFF"), pixels=PIXELS[..., :3])
    for how in ("group3", "group4", "tiff_ccitt"):
        add("tiff " + how, saved(BILEVEL, "TIFF", compression=how))
    add("tiff of two pages", saved(RGB, "TIFF", save_all=True, append_images=[GREY]))
    # Pillow turns a TIFF, and no other format, as its tag says.
    add("tiff with an orientation", saved(RGB, "TIFF", tiffinfo={274: 3}), pixels=PIXELS[..., :3])
    for name, flags in (("in tiles", ["-t", "-w", "16", "-l", "16", "-c", "lzw"]), ("in planes", ["-p", "separate"]),
                        ("of the other byte order", ["-B", "-c", "lzw"]), ("of 64 bits", ["-8"]),
                        ("in strips", ["-r", "2"])):
        add("tiff " + name, copied(plain, *flags))
    add("tiff by hand", tiff(pixels, tags()))
    good = tiff(pixels, tags())
    for cut in (6, 60, len(good) - 30):
        add(f"tiff cut at {cut}", good[:cut], "truncated")
    add("tiff whose strip lies behind its end", tiff(pixels, tags(offsets=(4, [100000]))), "truncated")
    two = dict(rows=(4, [5]), offsets=(4, [8, 8 + 5 * W * 3]))
    add("tiff of two strips", tiff(pixels, tags(**two, counts=(4, [5 * W * 3, 4 * W * 3]))))
    add("tiff whose strip is longer than the file", tiff(pixels, tags(**two, counts=(4, [5 * W * 3, 100000]))),
        "truncated")
    add("tiff whose strip is too short", tiff(pixels, tags(**two, counts=(4, [5 * W * 3, 50]))), "truncated")
    # There is no doubt how long the only strip is, so libtiff corrects it.
    add("tiff whose only strip claims another length", tiff(pixels, tags(counts=(4, [100]))), pixels=PIXELS[..., :3])
    palette = (3, [(i * k + 17) * 100 % 65536 for k in (37, 91, 53) for i in range(256)])
    indexed = tiff(pixels[:W * H], {**tags(bits=(3, [8]), samples=(3, [1]), photometric=(3, [3]), counts=(4, [W * H])),
                                    320: palette})
    add("tiff palette behind the pixels", indexed)
    add("tiff whose palette is cut", indexed[:-700], "truncated")
    add("tiff without strips", tiff(pixels, tags(offsets=None, counts=None)), "not an image")
    add("tiff without a width", tiff(pixels, tags(width=None)), "not an image")
    add("tiff of a wrong LZW stream", tiff(pixels, tags(compression=(3, [5]))), "not an image")
    add("tiff of a wrong deflate stream", tiff(pixels, tags(compression=(3, [8]))), "not an image")
    add("tiff of a deflate stream that ends early",
        tiff(zlib.compress(pixels[:90]), tags(compression=(3, [8]), counts=(4, [len(zlib.compress(pixels[:90]))]))),
        "truncated")
    add("tiff of Zstandard", tiff(pixels, tags(compression=(3, [50000]))), "unsupported")
    add("tiff of 32 bits", tiff(pixels, tags(bits=(3, [32, 32, 32]))), "unsupported")
    add("tiff of 60000 samples", tiff(pixels, tags(samples=(3, [60000]), bits=(3, [8]))), "unsupported")
    add("tiff beyond the sides", tiff(pixels, tags(width=(4, [20000]))), "too large")
    # The libtiff of Ubuntu 24.04 refuses directories that speak of more strips or tiles than the file has room for.
    add("tiff beyond the pixels", tiff(pixels, tags(width=(4, [16000]), height=(4, [16000]))), "too large",
        strict="not an image")
    tile = dict(offsets=None, counts=None, rows=None, tile_offsets=(4, [8]), tile_counts=(4, [len(pixels)]))
    add("tiff of one huge tile", tiff(pixels, tags(**tile, tile_width=(4, [32768]), tile_height=(4, [32768]))),
        "too large")
    few = dict(tile, tile_offsets=(4, [8] * 10), tile_counts=(4, [10] * 10))
    add("tiff of 78125 tiles and ten offsets",
        tiff(pixels, tags(**few, width=(4, [4000]), height=(4, [5000]), tile_width=(4, [16]), tile_height=(4, [16]))),
        "truncated", strict="not an image")
    add("tiff of 80 million tiles",
        tiff(pixels, tags(**few, width=(4, [16000]), height=(4, [5000]), tile_width=(4, [1]), tile_height=(4, [1]))),
        "not an image")
    add("tiff of strips that lie on each other",
        tiff(pixels, tags(rows=(4, [1]), offsets=(4, [8] * H), counts=(4, [len(pixels)] * H), compression=(3, [8]))),
        "not an image")


for make in (png_files, bmp_files, gif_files, webp_files, tiff_files, tiff_of_jpeg_files, tiff_kind_files):
    make()
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "image_files.json"), "w") as out:
    out.write("[\n" + ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in files) + "\n]\n")

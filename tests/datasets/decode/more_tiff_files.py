"""TIFF files of JPEG streams, of many kinds of samples and of data that end too early, for make_image_files.py."""
import io
import struct

import numpy as np
from PIL import Image

from image_file_parts import H, LARGE_H, LARGE_W, PIXELS, RGB, W, add, copied, large_image, saved, tags, tiff


def jpeg_of_scans(width, height, scans, frame=0xC2):
    """One component; all scans but the first hold nothing (ITU T.81). Frames: 0xC2 progressive, 0xC9 arithmetic
    coding."""
    jpeg = b"\xff\xd8\xff\xdb\0\x43\0" + bytes([1] * 64) + struct.pack(">BBHBHHBBBB", 255, frame, 11, 8, height, width,
                                                                       1, 1, 0x11, 0)
    for table in (0x00, 0x10):  # one code of one bit, which means 0
        jpeg += b"\xff\xc4\0\x14" + bytes([table, 1] + [0] * 16)
    for scan in range(scans):
        jpeg += b"\xff\xda\0\x08\1\1\0" + bytes([1 if scan else 0, 63 if scan else 0, 0])
    return jpeg + b"\xff\xd9"


def strips_of(data):
    """The coded strips of a file that Pillow wrote, and the tags that say how."""
    image = Image.open(io.BytesIO(data))
    kept = {tag: image.tag_v2[tag] for tag in (258, 262, 277, 278, 292, 347, 530) if tag in image.tag_v2}
    kinds = {347: 1, 278: 4, 292: 4}
    listed = {tag: (kinds.get(tag, 3), list(value) if isinstance(value, (tuple, bytes)) else [value])
              for tag, value in kept.items()}
    pieces = [data[at:at + size] for at, size in zip(image.tag_v2[273], image.tag_v2[279])]
    return pieces, {**listed, 256: (4, [image.width]), 257: (4, [image.height]),
                    259: (3, [image.tag_v2[259] if 259 in image.tag_v2 else 1])}


def with_pieces(pieces, page, tiled=False):
    """A TIFF of these strips or tiles."""
    places = [8 + sum(map(len, pieces[:i])) for i in range(len(pieces))]
    where, size = (324, 325) if tiled else (273, 279)
    return tiff(b"".join(pieces), {**page, where: (4, places), size: (4, [len(piece) for piece in pieces])})


def tiff_of_jpeg_files():
    large = large_image()
    plain, grey = saved(large, "TIFF"), saved(large.convert("L"), "TIFF")
    tiles = ["-t", "-w", "16", "-l", "16"]
    for name, source, flags in (("in tiles", plain, ["-c", "jpeg", *tiles]),
                                ("in strips", plain, ["-c", "jpeg", "-r", "16"]),
                                ("of RGB", plain, ["-c", "jpeg:r", "-r", "8"]),
                                ("in planes", plain, ["-c", "jpeg:r", "-p", "separate"]),
                                ("in planes and tiles", plain, ["-c", "jpeg:r", "-p", "separate", *tiles]),
                                ("of grey in tiles", grey, ["-c", "jpeg", *tiles]),
                                ("of 64 bits", plain, ["-8", "-c", "jpeg", *tiles])):
        add("tiff of JPEG " + name, copied(source, *flags))
    add("tiff of JPEG in inks", saved(large.convert("CMYK"), "TIFF", compression="jpeg"), tolerance=1)
    whole = {"bits": (3, [8, 8, 8]), "photometric": (3, [6]), "compression": (3, [7]), "width": (4, [LARGE_W]),
             "height": (4, [LARGE_H]), "rows": (4, [LARGE_H])}
    for name, how in (("plain", {}), ("progressive", {"progressive": True}), ("of full colour", {"subsampling": 0})):
        jpeg = saved(large, "JPEG", quality=90, **how)
        page = tags(**whole, offsets=None, counts=None)
        shown = np.asarray(Image.open(io.BytesIO(jpeg)))
        add(f"tiff of a JPEG, {name}", with_pieces([jpeg], page), pixels=shown)
        for cut in (len(jpeg) * 3 // 4, len(jpeg) - 20):
            add(f"tiff of a JPEG, {name}, cut at {cut}", with_pieces([jpeg[:cut]], page), "truncated")
        small = tags(**{**whole, "width": (4, [LARGE_W - 9])}, offsets=None, counts=None)
        add(f"tiff of a JPEG, {name}, wider than the image", with_pieces([jpeg], small), "not an image")
        high = tags(**{**whole, "height": (4, [LARGE_H + 1]), "rows": (4, [LARGE_H + 1])}, offsets=None, counts=None)
        add(f"tiff of a JPEG, {name}, of fewer rows than the image", with_pieces([jpeg], high), "not an image")
        in_tile = {**tags(**{**whole, "rows": None}, offsets=None, counts=None), 322: (4, [48]), 323: (4, [32])}
        add(f"tiff of a JPEG, {name}, in a tile larger than the image", with_pieces([jpeg], in_tile, True),
            pixels=shown)
    grey_jpeg = saved(large.convert("L"), "JPEG")
    page = tags(**{**whole, "bits": (3, [8]), "samples": (3, [1]), "photometric": (3, [0])}, offsets=None, counts=None)
    shown = np.asarray(Image.open(io.BytesIO(grey_jpeg)).convert("RGB"))
    add("tiff of a JPEG whose white is zero", with_pieces([grey_jpeg], page), pixels=255 - shown)
    add("tiff of a JPEG of one colour for three", with_pieces([grey_jpeg], tags(**whole, offsets=None, counts=None)),
        "not an image")
    pieces, page = strips_of(copied(plain, "-c", "jpeg", "-r", "16"))
    for i in range(len(pieces)):
        add(f"tiff of JPEG whose strip {i} is cut",
            with_pieces([p[:-9] if i == k else p for k, p in enumerate(pieces)], page), "truncated")
    add("tiff of JPEG without its tables", with_pieces(pieces, {k: v for k, v in page.items() if k != 347}),
        "not an image")
    add("tiff of JPEG with an empty strip", with_pieces([pieces[0], b""], page), "truncated")
    for name, side, scans, frame, status in (("257 scans", 16, 257, 0xC2, "too large"),
                                             ("250 scans and many pixels", 3300, 250, 0xC2, "too large"),
                                             ("arithmetic coding and many pixels", 6300, 1, 0xC9, "too large"),
                                             ("120 empty scans", 16, 120, 0xC2, "truncated")):
        jpeg = jpeg_of_scans(side, side, scans, frame)
        sides = {"width": (4, [side]), "height": (4, [side]), "rows": (4, [side])}
        page = tags(**{**whole, **sides, "bits": (3, [8]), "samples": (3, [1]), "photometric": (3, [1])}, offsets=None,
                    counts=None)
        add(f"tiff of a JPEG of {name}", with_pieces([jpeg], page), status)
        add(f"jpeg of {name}", jpeg, status)


def tiff_kind_files():
    for how in ("tiff_lzw", "packbits", "tiff_adobe_deflate", "group3", "group4", "tiff_ccitt"):
        fax = how.startswith(("group", "tiff_ccitt"))
        image = large_image().convert("1") if fax else large_image()
        pieces, page = strips_of(saved(image, "TIFF", compression=how))
        add(f"tiff {how}, larger", with_pieces(pieces, page), pixels=np.asarray(image.convert("RGB")))
        for cut in (3, len(pieces[0]) // 2, len(pieces[0]) - 6):
            add(f"tiff {how} whose data end at {cut}", with_pieces([pieces[0][:cut]], page), "truncated")
    bilevel = saved(large_image().convert("1"), "TIFF")
    for flags in ("g3:1d:fill", "g3:2d", "g3:2d:fill", "g4"):
        add(f"tiff {flags}", copied(bilevel, "-c", flags, "-r", "7"))
        add(f"tiff {flags} in tiles", copied(bilevel, "-c", flags, "-t", "-w", "16", "-l", "16"))
    pixels = PIXELS[..., :3].tobytes()
    for name, form, bits in (("signed 8 bits", 2, 8), ("signed 16 bits", 2, 16), ("signed 32 bits", 2, 32),
                             ("floats of 16 bits", 3, 16),
                             ("floats of 32 bits", 3, 32), ("unsigned 32 bits", 1, 32), ("complex integers", 5, 16)):
        data = pixels[:W * H] * (bits // 8)
        page = tags(bits=(3, [bits]), samples=(3, [1]), photometric=(3, [1]), counts=(4, [len(data)]))
        add(f"tiff of {name}", tiff(data, {**page, 339: (3, [form])}), "unsupported")
    grey = np.repeat(PIXELS[..., :1], 3, 2)
    one = tags(bits=(3, [8]), samples=(3, [1]), photometric=(3, [1]), counts=(4, [W * H]))
    add("tiff of samples of no stated kind", tiff(PIXELS[..., 0].tobytes(), {**one, 339: (3, [4])}), pixels=grey)
    add("tiff of three signed samples", tiff(pixels, {**tags(), 339: (3, [2, 2, 2])}), "unsupported")
    add("tiff of samples of two kinds", tiff(pixels, {**tags(), 339: (3, [1, 2, 1])}), "not an image")
    add("tiff whose white is zero", tiff(PIXELS[..., 0].tobytes(), {**one, 262: (3, [0])}), pixels=255 - grey)
    wide = (PIXELS[..., :3].astype("<u2") * 257).tobytes()
    add("tiff of 16 bits", tiff(wide, tags(bits=(3, [16] * 3), counts=(4, [len(wide)]))), pixels=PIXELS[..., :3])
    for bits in (2, 4):
        values = PIXELS[..., 0] >> (8 - bits)
        padded = np.pad(values, ((0, 0), (0, -W % (8 // bits))))
        packed = np.packbits(np.unpackbits(padded[..., None] << (8 - bits), axis=2)[..., :bits].reshape(H, -1),
                             axis=1).tobytes()
        page = tags(bits=(3, [bits]), samples=(3, [1]), photometric=(3, [1]), counts=(4, [len(packed)]))
        add(f"tiff of {bits} bits", tiff(packed, page),
            pixels=np.repeat((values * (255 // (2 ** bits - 1)))[..., None], 3, 2))
    # Without colour, YCbCr is grey: blocks of four brightnesses, and 128 twice. 12x8 pixels.
    y = PIXELS[:8, :12, 0]
    blocks = b"".join(y[r:r + 2, c:c + 2].tobytes() + b"\x80\x80" for r in range(0, 8, 2) for c in range(0, 12, 2))
    sides = dict(width=(4, [12]), height=(4, [8]), rows=(4, [8]), photometric=(3, [6]))
    page = {**tags(**sides, counts=(4, [len(blocks)])), 530: (3, [2, 2])}
    add("tiff of subsampled colours", tiff(blocks, page), pixels=np.repeat(y[..., None], 3, 2))
    two = {**tags(**{**sides, "rows": (4, [4])}, offsets=(4, [8, 8 + 72]), counts=(4, [72, 60])), 530: (3, [2, 2])}
    add("tiff of subsampled colours, the last strip short", tiff(blocks, two), "truncated")
    add("tiff in a tile larger than the image", copied(saved(RGB, "TIFF"), "-t", "-w", "64", "-l", "48", "-c", "zip"))
    for name, kind in (("old-style JPEG", 6), ("LZMA", 34925), ("WebP", 50001), ("LERC", 34887), ("JPEG 2000", 34712),
                       ("ThunderScan", 32809), ("SGI logarithms", 34676), ("no known compression", 12345)):
        add(f"tiff of {name}", tiff(pixels, tags(compression=(3, [kind]))), "unsupported")
    inks = np.zeros((H, W, 4), "<u2").tobytes()
    add("tiff of 16-bit inks", tiff(inks, tags(bits=(3, [16] * 4), samples=(3, [4]), photometric=(3, [5]),
                                               counts=(4, [len(inks)]))),
        "unsupported")
    add("tiff with an empty strip", tiff(pixels, tags(rows=(4, [5]), offsets=(4, [8, 8]),
                                                      counts=(4, [len(pixels) * 5 // 9, 0]))), "truncated")
    good = saved(RGB, "TIFF")
    page = struct.unpack("<I", good[4:8])[0]
    at = good.index(struct.pack("<I", 0), page + 2 + 12 * good[page])
    add("tiff whose second page is not there", good[:at] + struct.pack("<I", 99999) + good[at + 4:],
        pixels=PIXELS[..., :3])

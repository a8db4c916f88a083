#!/usr/bin/python3
"""Writes heif_files.json: small HEIC and AVIF files, good and damaged, and the pixels that they were made of.

Needs Debian's libheif1 with its encoders, x265 and aom (made with libheif 1.15.1). Coded pictures are libheif's; boxes
around them are put together here from ISO/IEC 14496-12 and 23008-12, so that tiles, turns and bursts are those of the
standard. Lines have the form of image_files.json.
"""
import ctypes
import json
import os
import struct
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEVC, AV1 = 1, 4
GREY, RGB = 2, 1
CHROMA_GREY, CHROMA_RGB, CHROMA_RGBA, CHROMA_DEEP = 0, 10, 11, 14
CHANNEL_Y, CHANNEL_INTERLEAVED = 0, 10
W, H = 14, 10


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("subcode", ctypes.c_int), ("message", ctypes.c_char_p)]


library = ctypes.CDLL("libheif.so.1")
library.heif_context_alloc.restype = ctypes.c_void_p
library.heif_image_get_plane.restype = ctypes.c_void_p


def call(name, *words):
    function = getattr(library, name)
    function.restype = Error
    error = function(*words)
    if error.code:
        raise ValueError(f"{name}: {error.message}")


def colour(x, y, width, height):
    """Smooth, so that little is lost, and different at every place."""
    return (40 + 180 * x // width, 30 + 190 * y // height, 20 + 100 * (x + y) // (width + height))


def pixels_of(width, height, left=0, top=0, all_width=None, all_height=None):
    return [[colour(left + x, top + y, all_width or width, all_height or height) for x in range(width)]
            for y in range(height)]


def encoded(rows, codec, bits=8, grey=False, alpha=False, chroma="444", quality=100):
    """A file of libheif's."""
    width, height = len(rows[0]), len(rows)
    context = ctypes.c_void_p(library.heif_context_alloc())
    encoder, image, handle = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("heif_context_get_encoder_for_format", context, codec, ctypes.byref(encoder))
    call("heif_encoder_set_lossy_quality", encoder, quality)
    if not grey:
        call("heif_encoder_set_parameter_string", encoder, b"chroma", chroma.encode())
    form = CHROMA_GREY if grey else CHROMA_DEEP if bits > 8 else CHROMA_RGBA if alpha else CHROMA_RGB
    channel = CHANNEL_Y if grey else CHANNEL_INTERLEAVED
    call("heif_image_create", width, height, GREY if grey else RGB, form, ctypes.byref(image))
    call("heif_image_add_plane", image, channel, width, height, bits)
    stride = ctypes.c_int()
    plane = library.heif_image_get_plane(image, channel, ctypes.byref(stride))
    for y, row in enumerate(rows):
        if grey:
            data = bytes(pixel[0] for pixel in row)
        elif bits > 8:  # the upper bits are the eight of the pixel
            data = b"".join(struct.pack("<H", value << (bits - 8)) for pixel in row for value in pixel)
        else:
            data = bytes(v for x, pixel in enumerate(row) for v in (*pixel, *((200 - x,) if alpha else ())))
        ctypes.memmove(plane + y * stride.value, data, len(data))
    call("heif_context_encode_image", context, image, encoder, None, ctypes.byref(handle))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "image")
        call("heif_context_write_to_file", context, path.encode())
        with open(path, "rb") as file:
            return file.read()


def box(kind, *parts):
    data = b"".join(parts)
    return struct.pack(">I", 8 + len(data)) + kind + data


def full_box(kind, version, flags, *parts):
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


def boxes(data):
    at = 0
    while at + 8 <= len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        size = size or len(data) - at
        yield kind, data[at + 8:at + size]
        at += size


def inner(data, *path):
    for kind in path:
        data = next(body for k, body in boxes(data) if k == kind)
        if kind == b"meta":
            data = data[4:]
    return data


class Coded:
    """A coded picture of one item, as a file of libheif's holds it. That has HEVC of multiples of 64 alone, of which a
    clean aperture (clap) leaves the picture."""

    def __init__(self, rows, codec, **words):
        file = encoded(rows, codec, **words)
        self.kind, setup = (b"hvc1", b"hvcC") if codec == HEVC else (b"av01", b"av1C")
        properties = list(boxes(inner(file, b"meta", b"iprp", b"ipco")))
        width, height = len(rows[0]), len(rows)
        stored = next(struct.unpack(">II", body[4:12]) for k, body in properties if k == b"ispe")
        self.properties = [box(k, body) for k, body in properties if k in (setup, b"pixi", b"colr")]
        self.properties.append(full_box(b"ispe", 0, 0, struct.pack(">II", *stored)))
        if stored != (width, height):
            self.properties.append(box(b"clap", struct.pack(">IIIIiIiI", width, 1, height, 1, width - stored[0], 2,
                                                            height - stored[1], 2)))
        self.data = inner(file, b"mdat")
        self.rows = rows


def heif(brands, items, primary, references=(), more=b""):
    """`items`: (kind, properties, data). Items are numbered from 1."""
    shared, owned = [], []
    for _, properties, _ in items:
        numbers = []
        for one in properties:
            if one not in shared:
                shared.append(one)
            numbers.append(shared.index(one) + 1)
        owned.append(numbers)
    entries = [full_box(b"infe", 2, 0, struct.pack(">HH4s", i + 1, 0, kind), b"\0") for i, (kind, _, _)
               in enumerate(items)]
    essential = (b"hvcC", b"av1C", b"irot", b"imir", b"clap")
    ipma = full_box(b"ipma", 0, 0, struct.pack(">I", len(items)), *(
        struct.pack(">HB", i + 1, len(numbers)) + bytes(
            n | (0x80 if shared[n - 1][4:8] in essential else 0) for n in numbers) for i, numbers in enumerate(owned)))

    def meta(begin):
        places, at = [], begin
        for i, (_, _, data) in enumerate(items):
            places.append(struct.pack(">HHHII", i + 1, 0, 1, at, len(data)))
            at += len(data)
        return full_box(
            b"meta", 0, 0, full_box(b"hdlr", 0, 0, bytes(4), b"pict", bytes(13)),
            full_box(b"pitm", 0, 0, struct.pack(">H", primary)),
            full_box(b"iinf", 0, 0, struct.pack(">H", len(items)), *entries),
            *([full_box(b"iref", 0, 0, *(box(kind, struct.pack(f">HH{len(to)}H", who, len(to), *to))
                                         for kind, who, to in references))] if references else []),
            box(b"iprp", box(b"ipco", *shared), ipma),
            full_box(b"iloc", 0, 0, b"\x44\x00", struct.pack(">H", len(items)), *places))

    head = box(b"ftyp", brands[0], bytes(4), *brands)
    begin = len(head) + len(meta(0)) + 8
    return head + meta(begin) + box(b"mdat", *(data for _, _, data in items)) + more


HEIC, AVIF = (b"heic", b"mif1", b"heic"), (b"avif", b"mif1", b"miaf", b"avif")
lines = []


def add(name, file, rows=None, status="ok", tolerance=4, strict=None):
    line = {"name": name, "status": status, "file": file.hex()} | ({"strict": strict} if strict else {})
    if status == "ok":
        line |= {"width": len(rows[0]), "height": len(rows), "tolerance": tolerance,
                 "pixels": [v for row in rows for pixel in row for v in pixel]}
    lines.append(line)


def turned(rows, quarters):
    """Against the clock, as irot has it (23008-12, 6.5.10)."""
    for _ in range(quarters):
        rows = [list(column) for column in zip(*rows)][::-1]
    return rows


def plain_files(kind, codec, brands):
    rows = pixels_of(W, H)
    add(kind, encoded(rows, codec), rows)
    add(f"{kind} of 4:2:0", encoded(rows, codec, chroma="420"), rows, tolerance=16)
    add(f"{kind} of 10 bits", encoded(rows, codec, bits=10, chroma="422"), rows, tolerance=10)
    grey = [[(pixel[0],) * 3 for pixel in row] for row in rows]
    add(f"{kind} grey", encoded(grey, codec, grey=True), grey)
    add(f"{kind} with alpha", encoded(rows, codec, alpha=True), rows)
    large = pixels_of(68, 66)
    add(f"{kind}, larger", encoded(large, codec, chroma="420", quality=60), large, tolerance=14)
    one = Coded(rows, codec)
    for quarters in (1, 2, 3):
        irot = box(b"irot", bytes([quarters]))
        add(f"{kind} turned by {90 * quarters}", heif(brands, [(one.kind, one.properties + [irot], one.data)], 1),
            turned(rows, quarters))
    for axis, shown in ((0, rows[::-1]), (1, [row[::-1] for row in rows])):  # top and bottom; left and right
        imir = box(b"imir", bytes([axis]))
        add(f"{kind} mirrored, axis {axis}", heif(brands, [(one.kind, one.properties + [imir], one.data)], 1), shown)
    both = [box(b"irot", b"\1"), box(b"imir", b"\1")]
    add(f"{kind} turned and mirrored", heif(brands, [(one.kind, one.properties + both, one.data)], 1),
        [row[::-1] for row in turned(rows, 1)])
    # The property has turned the picture; what EXIF says of it does not count.
    exif = bytes(4) + b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    for name, properties, shown in (("and a turn", [box(b"irot", b"\3")], turned(rows, 3)), ("alone", [], rows)):
        add(f"{kind} with EXIF {name}", heif(brands, [(one.kind, one.properties + properties, one.data),
                                                       (b"Exif", [], exif)], 1, [(b"cdsc", 2, (1,))]), shown)
    add(f"{kind} with what is no box behind it", encoded(rows, codec) + b"\x12\x34\x56\x78camera data", rows)


def tiled_files(kind, codec, brands):
    """Two tiles, of which the image has a part, as phones store photographs."""
    width, height, side = 70, 20, 64
    tiles = [Coded(pixels_of(side, side, left, 0, 2 * side, side), codec) for left in (0, side)]
    ispe = full_box(b"ispe", 0, 0, struct.pack(">II", width, height))
    grid = (b"grid", [ispe], struct.pack(">BBBBHH", 0, 0, 0, 1, width, height))
    items = [grid] + [(tile.kind, tile.properties, tile.data) for tile in tiles]
    shown = [row[:width] for row in pixels_of(2 * side, side)[:height]]
    add(f"{kind} in tiles", heif(brands, items, 1, [(b"dimg", 1, (2, 3))]), shown)
    turned_grid = (b"grid", [ispe, box(b"irot", b"\3")], grid[2])
    add(f"{kind} in tiles, turned", heif(brands, [turned_grid] + items[1:], 1, [(b"dimg", 1, (2, 3))]),
        turned(shown, 3))
    wide = full_box(b"ispe", 0, 0, struct.pack(">II", 200, height))
    add(f"{kind} whose tiles do not cover it", heif(brands, [(
        b"grid", [wide], struct.pack(">BBBBHH", 0, 0, 0, 1, 200, height))] + items[1:], 1, [(b"dimg", 1, (2, 3))]),
        status="not an image")
    add(f"{kind} without one of its tiles", heif(brands, items, 1, [(b"dimg", 1, (2,))]), status="not an image")


def burst_files(kind, codec, brands):
    """Two pictures, the second of which is the primary one."""
    first, second = Coded(pixels_of(16, 16), codec), Coded(pixels_of(W, H), codec)
    items = [(one.kind, one.properties, one.data) for one in (first, second)]
    add(f"{kind} of two pictures", heif(brands, items, 2), second.rows)
    sequence = (b"msf1" if codec == HEVC else b"avis",) + brands
    add(f"{kind} beside a sequence", heif(sequence, items, 1, more=box(b"free", bytes(20))), first.rows)
    add(f"{kind} without a primary picture", heif(brands, items, 7), status="unsupported", strict="not an image")


def damaged_files(kind, codec, brands):
    one = Coded(pixels_of(W, H), codec)
    item = [(one.kind, one.properties, one.data)]
    whole = heif(brands, item, 1)
    add(f"{kind} that is cut", whole[:-20], status="truncated")
    add(f"{kind} of half of its data", heif(brands, [(one.kind, one.properties, one.data[:len(one.data) // 2])], 1),
        status="not an image" if codec == AV1 else "truncated")
    wrong = [p if p[4:8] != b"ispe" else full_box(b"ispe", 0, 0, struct.pack(">II", W + 60, H)) for p in one.properties
             if p[4:8] != b"clap"]
    add(f"{kind} that says another size", heif(brands, [(one.kind, wrong, one.data)], 1), status="not an image")
    flat = Coded([[(90, 120, 60)] * 2560] * 1728, codec, chroma="420", quality=20)  # 4.4 million pixels
    small = [p for p in flat.properties if p[4:8] not in (b"ispe", b"clap")]
    small.append(full_box(b"ispe", 0, 0, struct.pack(">II", W, H)))
    add(f"{kind} of far more pixels than it says", heif(brands, [(flat.kind, small, flat.data)], 1), status="too large")
    vast = [p if p[4:8] != b"ispe" else full_box(b"ispe", 0, 0, struct.pack(">II", 16000, 16000))
            for p in one.properties]
    add(f"{kind} that says a vast size", heif(brands, [(one.kind, vast, one.data)], 1), status="too large")


def main():
    for kind, codec, brands in (("heic", HEVC, HEIC), ("avif", AV1, AVIF)):
        plain_files(kind, codec, brands)
        tiled_files(kind, codec, brands)
        burst_files(kind, codec, brands)
        damaged_files(kind, codec, brands)
    rows = pixels_of(W, H)
    add("avif of 12 bits", encoded(rows, AV1, bits=12, chroma="422"), rows, tolerance=10)
    other = Coded(rows, HEVC)
    add("heif of JPEG", heif((b"mif1", b"mif1"), [(b"jpeg", [p for p in other.properties if p[4:8] == b"ispe"],
                                                   b"\xff\xd8\xff\xd9")], 1), status="unsupported", strict="not an image")
    with open(os.path.join(HERE, "heif_files.json"), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + "\n]\n")


if __name__ == "__main__":
    main()

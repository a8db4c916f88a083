"""Images for tests, made without a library."""
import random
import struct
import zlib


def made_pixels(seed, size):
    """size x size RGB triples: a few smooth stripes of random colours, and noise."""
    dice = random.Random(seed)
    colours = [[dice.randrange(256) for _ in range(3)] for _ in range(4)]
    return [[[min(255, max(0, c + dice.randrange(-20, 21))) for c in colours[4 * (x + y * seed) // size % 4]]
             for x in range(size)] for y in range(size)]


def write_bmp(path, pixels):
    """24-bit BMP: rows from below, blue first, each padded to 4 bytes."""
    height, width = len(pixels), len(pixels[0])
    rows = b""
    for row in reversed(pixels):
        line = b"".join(bytes(reversed(pixel)) for pixel in row)
        rows += line + b"\0" * (-len(line) % 4)
    header = struct.pack("<2sIHHI", b"BM", 54 + len(rows), 0, 0, 54)
    header += struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(rows), 0, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(header + rows)


def stored(pixels, orientation):
    """Pixels as a camera stores them that an EXIF orientation from 1 to 8 turns to these."""
    rows = [list(row) for row in pixels]
    across = [list(column) for column in zip(*rows)]
    return {1: rows,
            2: [row[::-1] for row in rows],
            3: [row[::-1] for row in reversed(rows)],
            4: rows[::-1],
            5: across,
            6: across[::-1],
            7: [column[::-1] for column in reversed(across)],
            8: [column[::-1] for column in across]}[orientation]


def write_png(path, pixels, orientation=0):
    """8 bits per channel, with EXIF data where there is an orientation."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in pixels)
    head = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    exif = struct.pack("<2sHIHHHIHHI", b"II", 42, 8, 1, 274, 3, 1, orientation, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + (chunk(b"eXIf", exif) if orientation else b"")
                + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

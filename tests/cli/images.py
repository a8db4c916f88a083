"""Images for tests, made without a library."""
import random
import struct


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

"""Packed files of `data pack`, as datasets/formats/packed_format.h has them."""
import struct


def read_packed(path):
    """(names of files, side, bytes of all images)"""
    with open(path, "rb") as file:
        data = file.read()
    height, width = struct.unpack_from("<II", data, 16)
    images, classes, name_bytes, pixels_at = struct.unpack_from("<QQQQ", data, 32)
    begin = 80 + 12 * images
    names = data[begin:begin + name_bytes].split(b"\0")[classes:classes + images]
    return [name.decode() for name in names], (height, width), data[pixels_at:]

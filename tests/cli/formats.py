"""Readers of what the program writes, made from the formats' descriptions alone: safetensors and
TensorBoard's event files. Python's standard library only, and numpy for tensors."""
import json
import os
import struct


def read_safetensors(path):
    """(metadata, name -> array); every rule of the format holds, or AssertionError."""
    import numpy
    with open(path, "rb") as f:
        data = f.read()
    length = struct.unpack_from("<Q", data)[0]
    assert length % 8 == 0 and 8 + length <= len(data), "header length"
    text = data[8:8 + length].decode("utf-8")
    assert text.startswith("{") and text.rstrip(" ").endswith("}"), "header text"
    header = json.loads(text)
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(v, str) for v in metadata.values()), "metadata"
    assert list(header) == sorted(header), "one type of number: sorted by name"
    tensors, end = {}, 0
    for name, entry in header.items():
        begin, after = entry["data_offsets"]
        assert entry["dtype"] == "F32" and begin == end, name
        values = numpy.frombuffer(data[8 + length + begin:8 + length + after], "<f4")
        tensors[name], end = values.reshape(entry["shape"]), after
    assert 8 + length + end == len(data), "bytes that no tensor has"
    return metadata, tensors


def read_arrays(path):
    """(metadata, name -> (dtype, shape, bytes)) of a safetensors file, as other programs may have written it, too."""
    with open(path, "rb") as f:
        data = f.read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    return header.pop("__metadata__", {}), {
        name: (t["dtype"], t["shape"], data[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
        for name, t in header.items()}


def write_arrays(path, arrays, metadata=None):
    header, body = {"__metadata__": metadata} if metadata is not None else {}, b""
    for name, (dtype, shape, data) in arrays.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + body)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def write_state(checkpoint, state):
    """Puts another state.json into a checkpoint, which stays whole."""
    text, manifest = json.dumps(state), os.path.join(checkpoint, "MANIFEST")
    with open(os.path.join(checkpoint, "state.json"), "w") as f:
        f.write(text)
    with open(manifest) as f:
        lines = f.read().splitlines()[:-1]
    lines = [f"{crc32c(text.encode()):08x} {len(text)} state.json" if line.endswith(" state.json") else line
             for line in lines]
    body = "".join(line + "\n" for line in lines)
    with open(manifest, "w") as f:
        f.write(body + f"checksum {crc32c(body.encode()):08x}\n")


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def fields(message):
    """(number, value) of a protobuf message, in order."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        yield key >> 3, message[at:at + size]
        at += size


def read_events(path):
    """(step, tag, value) of an event file, after checking every length and checksum."""
    with open(path, "rb") as f:
        data = f.read()
    at, events = 0, []
    while at < len(data):
        size, length_crc = struct.unpack_from("<QI", data, at)
        event = data[at + 12:at + 12 + size]
        assert length_crc == masked(data[at:at + 8]) and len(event) == size
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(event)
        events.append(dict(fields(event)))
        at += 16 + size
    assert events[0][3] == b"brain.Event:2" and all(1 in e for e in events)
    scalars = []
    for event in events[1:]:
        for number, value in fields(event[5]):
            assert number == 1
            value = dict(fields(value))
            scalars.append((event.get(2, 0), value[1].decode(), struct.unpack("<f", value[2])[0]))
    return scalars

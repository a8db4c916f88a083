"""What compare_peers hands to another framework, and what it wants back.

A job is a JSON file: `weights`, a weights.safetensors of cputrain, which holds the network itself too;
`images`, a packed file of cputrain, so that all frameworks see the same bytes; `optimizer`, the recipe of
the network; `batch`, `threads`, `warm_up` and `steps`; `check`: say whether it is the same network (its
parameters, its loss before training) and with which `settings` it is trained, instead of training. Needs
numpy, which the frameworks bring.
"""
import json
import resource
import struct
import sys
import time

import numpy


def read_job():
    with open(sys.argv[1]) as f:
        return json.load(f)


def read_network(path):
    """(graph, {name: array}): layers as cputrain's model files have them, weights in Keras' names and layout."""
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(size)), f.read()
    graph = json.loads(header.pop("__metadata__")["graph"])
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        arrays[name] = numpy.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return graph, arrays


def read_images(path, count):
    """(uint8 of count x height x width x 3, labels); the layout is that of datasets/formats/packed_format.h."""
    with open(path, "rb") as f:
        header = f.read(80)
    height, width, channels = struct.unpack_from("<III", header, 16)
    images, = struct.unpack_from("<Q", header, 32)
    pixels_at, = struct.unpack_from("<Q", header, 56)
    if images < count:
        sys.exit(f"{path} has {images} images, a batch of {count} is wanted")
    entries = numpy.fromfile(path, "<u4", count=3 * count, offset=80).reshape(-1, 3)
    pixels = numpy.fromfile(path, "u1", count=count * height * width * channels, offset=pixels_at)
    return pixels.reshape(count, height, width, channels), entries[:, 0].astype("i8")


def timed_steps(job, step):
    """Images/s of each measured step; `step` ends when the weights have changed and returns the loss."""
    rates = []
    for i in range(job["warm_up"] + job["steps"]):
        start = time.perf_counter()
        step()
        if i >= job["warm_up"]:
            rates.append(job["batch"] / (time.perf_counter() - start))
    return rates


def peak_bytes():
    """The most memory that was resident so far: what the framework takes before there is a network."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def answer(**result):
    """The last line of standard output is the result; frameworks may have said things before it."""
    print("\n" + json.dumps(result))

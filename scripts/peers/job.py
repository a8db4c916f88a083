"""What compare_peers hands to another framework, and what it wants back.

A job is a JSON file: `weights`, a weights.safetensors of cputrain, which holds the network itself too;
`images`, a packed file of cputrain, so that all frameworks see the same bytes; `optimizer`, the recipe of
the network; `precision`, float or bf16; `batch`, `threads`, `warm_up` and `steps`; `trial`: no dropout, so that
losses can be compared; and the options of a setting (settings.py). Needs numpy, which the frameworks bring.
"""
import json
import os
import resource
import struct
import sys
import time

import numpy


def read_job():
    with open(sys.argv[1]) as f:
        return json.load(f)


def read_network(job):
    """(graph, {name: array}): layers as cputrain's model files have them, weights in Keras' names and layout."""
    with open(job["weights"], "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(size)), f.read()
    graph = json.loads(header.pop("__metadata__")["graph"])
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        arrays[name] = numpy.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    if job["trial"]:
        for layer in graph["layers"]:
            if layer["type"] == "dropout":
                layer["rate"] = 0.0
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


def seconds_of_threads():
    """{thread: seconds on a CPU}; Linux has them in ns."""
    found = {}
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/schedstat") as f:
                found[thread] = 1e-9 * int(f.read().split()[0])
        except OSError:
            pass  # it has just ended
    return found


def busy_threads(before, after, elapsed):
    """Threads that worked for a twentieth of the time."""
    return sum(seconds - before.get(thread, 0) > elapsed / 20 for thread, seconds in after.items())


def measured(job, step):
    """What every measured step took; `step` ends when the weights have changed, and returns the loss before that."""
    losses, rates, cpu = [], [], []
    for i in range(job["warm_up"] + job["steps"]):
        if i == job["warm_up"]:
            threads, begin = seconds_of_threads(), time.perf_counter()
        start, cpu_start = time.perf_counter(), time.process_time()
        losses.append(step())
        if i >= job["warm_up"]:
            rates.append(job["batch"] / (time.perf_counter() - start))
            cpu.append((time.process_time() - cpu_start) / job["batch"])
    return {"images_per_second": rates, "cpu_seconds_per_image": cpu, "losses": losses,
            "busy_threads": busy_threads(threads, seconds_of_threads(), time.perf_counter() - begin)}


def peak_bytes():
    """The most memory that was resident so far: what the framework takes before there is a network."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def answer(**result):
    """The last line of standard output is the result; frameworks may have said things before it."""
    print("\n" + json.dumps(result))

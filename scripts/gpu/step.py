"""A training step on a GPU: layers by direction, the update, and what the host does meanwhile the GPU waits for."""
from collections import Counter

from launches import Network, pieces


MOST_AT_ONCE = 128  # images of a micro-batch on a device (src/training/session/session.cpp)


def micro_batches(batch, asked=None):
    """Their images: as asked, the last one with what is left; else pieces that are alike."""
    most = asked or pieces(batch, pieces(batch, MOST_AT_ONCE))
    return [min(most, batch - begin) for begin in range(0, batch, most)]


def host_work():
    """What a micro-batch asks of the host besides launches; a test compares with counts of the emulated device. All of
    it is done by the thread that makes micro-batches ahead."""
    return {"copies": 1,        # images with labels, samples and moves
            "timed_events": 0,  # --profile and benchmarks take times
            "event_waits": 1}   # for memory of the copy before


def host_work_of_step(network):
    """Besides that of micro-batches: sums of losses, and of squares of penalised kernels, are fetched. The host waits
    for them when the next step is in the stream, and so the GPU does not wait for the host."""
    fetched = 1 + any(operation.penalised for operation in network.operations)
    return {"copies": fetched, "late_waits": fetched}


def layers_of(gpu, networks, precision):
    """Seconds of all micro-batches together by layer and direction; the bound is that of the longest launch."""
    found = {}
    for network in networks:
        for operation in network.operations:
            for direction, launches in operation.directions():
                times = [gpu.time(launch, precision) for launch in launches]
                row = found.setdefault((operation.name, direction), {"name": operation.name, "direction": direction,
                                                                     "seconds": 0.0, "bound": max(times)[1]})
                row["seconds"] += sum(seconds for seconds, _ in times)
    return list(found.values())


def host_of(gpu, networks, image_bytes, updates):
    of = gpu.of
    counts = Counter(host_work_of_step(networks[0]))
    for _ in networks:
        counts.update(host_work())
    images = sum(network.images for network in networks) * image_bytes
    # Made and sent while the GPU computes, unless they lie there.
    beside = {"copy_images": images / of["host_copy"], "send_images": images / of["pcie"]}
    seconds = {"copies": counts["copies"] * of["launch"], "timed_events": counts["timed_events"] * of["timed_event"]}
    launches = updates + sum(len(launches) for network in networks for operation in network.operations
                   for _, launches in operation.directions())
    return {"launches": launches, **counts, "seconds": seconds, "beside": beside}


def networks_of(gpu, model, precision, batch, micro_batch=None):
    return [Network(model["layers"], images, precision, gpu.of["multiprocessors"])
            for images in micro_batches(batch, micro_batch)]


def predict(gpu, model, precision, batch, micro_batch=None):
    """`model`: that of `cputrain info --json -`."""
    networks = networks_of(gpu, model, precision, batch, micro_batch)
    height, width, colours = model["layers"][0]["output"]
    layers = layers_of(gpu, networks, precision)
    updates = [gpu.time(launch, precision) for launch in networks[0].update(model["recipe"]["state_arrays"])]
    update = sum(seconds for seconds, _ in updates)
    host = host_of(gpu, networks, height * width * colours, len(updates))
    kernels = sum(layer["seconds"] for layer in layers) + update
    seconds = max(kernels + sum(host["seconds"].values()), *host["beside"].values())
    return {"gpu": gpu.name, "model": model["name"], "image": [height, width], "precision": precision, "batch": batch,
            "micro_batch": networks[0].images, "images_per_second": batch / seconds,
            "images_per_second_of_kernels": batch / kernels, "seconds": seconds, "layers": layers,
            "update": {"seconds": update, "bound": max(updates)[1]}, "host": host}

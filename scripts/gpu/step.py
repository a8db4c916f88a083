"""A training step on a GPU: layers by direction, the update, and what the host does meanwhile the GPU waits for."""
import dataclasses
from collections import Counter

import speed
from launches import Network, pieces


MOST_AT_ONCE = 256  # images of a micro-batch on a device (src/training/plan/training_plan.cpp)


def micro_batches(batch, layers, asked=None):
    """Their images: as asked, the last one with what is left; else all of them where a batch norm's statistics are
    theirs, or pieces that are alike."""
    norms = any(layer["type"] == "batch_norm" for layer in layers)
    most = asked or (batch if norms else pieces(batch, pieces(batch, MOST_AT_ONCE)))
    return [min(most, batch - begin) for begin in range(0, batch, most)]


def host_work():
    """What a micro-batch asks of the host besides launches; a test compares with counts of the emulated device. All of
    it is done by the thread that makes micro-batches ahead."""
    return {"copies": 1,        # labels, samples and moves, with the images where these come from the host
            "timed_events": 0,  # --profile and benchmarks take times
            "event_waits": 1}   # for memory of the copy before


def host_work_of_step(network):
    """Besides that of micro-batches: sums of losses, and of squares of penalised kernels, are fetched. The host waits
    for them when the next step is in the stream, and so the GPU does not wait for the host."""
    fetched = 1 + any(operation.penalised for operation in network.operations)
    return {"copies": fetched, "late_waits": fetched}


@dataclasses.dataclass(frozen=True)
class Part:
    """A launch of a layer in a direction ("update" in the layer's place), of all micro-batches."""
    layer: str
    direction: str
    work: speed.Work


def parts_of(gpu, networks, precision, state_arrays):
    made = [Part(operation.name, direction, gpu.work(launch, precision)) for network in networks
            for operation in network.operations for direction, launches in operation.directions()
            for launch in launches]
    return made + [Part("update", "", gpu.work(launch, precision)) for launch in networks[0].update(state_arrays)]


def rows_of(gpu, parts, rule=speed.EXPECTED, gap="launch"):
    """{(layer, direction): {seconds, bound}}; the bound is that of the longest launch."""
    found = {}
    for part in parts:
        seconds, bound = gpu.time(part.work, rule, gap)
        row = found.setdefault((part.layer, part.direction), {"seconds": 0.0, "longest": 0.0, "bound": bound})
        if seconds > row["longest"]:
            row.update(longest=seconds, bound=bound)
        row["seconds"] += seconds
    return {key: {"seconds": row["seconds"], "bound": row["bound"]} for key, row in found.items()}


def host_of(gpu, networks, parts, image_bytes):
    of = gpu.of
    counts = Counter(host_work_of_step(networks[0]))
    for _ in networks:
        counts.update(host_work())
    images = sum(network.images for network in networks) * image_bytes
    # Made and sent while the GPU computes, unless they lie there.
    beside = {"copy_images": images / of["host_copy"], "send_images": images / of["pcie"]}
    seconds = {"copies": counts["copies"] * of["launch"], "timed_events": counts["timed_events"] * of["timed_event"]}
    return {"launches": len(parts), **counts, "seconds": seconds, "beside": beside}


def networks_of(gpu, model, precision, batch, micro_batch=None):
    return [Network(model["layers"], images, precision, gpu.of["multiprocessors"], accumulates=number > 0)
            for number, images in enumerate(micro_batches(batch, model["layers"], micro_batch))]


def seconds_of(gpu, parts, host, images, rule):
    """(of the step, of its kernels). `images`: "host" where they come from there, else "device"."""
    kernels = sum(row["seconds"] for row in rows_of(gpu, parts, rule).values())
    waited = list(host["beside"].values()) if images == "host" else []
    return max(kernels + sum(host["seconds"].values()), *waited, 0), kernels


def predict(gpu, model, precision, batch, micro_batch=None, images="device"):
    """`model`: that of `cputrain info --json -`."""
    networks = networks_of(gpu, model, precision, batch, micro_batch)
    height, width, colours = model["layers"][0]["output"]
    parts = parts_of(gpu, networks, precision, model["recipe"]["state_arrays"])
    host = host_of(gpu, networks, parts, height * width * colours)
    (fastest, _), (seconds, kernels), (slowest, _) = (
        seconds_of(gpu, parts, host, images, rule) for rule in speed.RULES)
    rows = rows_of(gpu, parts)
    update = rows.pop(("update", ""))
    layers = [{"name": name, "direction": direction, **row} for (name, direction), row in rows.items()]
    return {"gpu": gpu.name, "model": model["name"], "image": [height, width], "precision": precision, "batch": batch,
            "micro_batch": networks[0].images, "images": images, "images_per_second": batch / seconds,
            "images_per_second_range": [batch / slowest, batch / fastest],
            "images_per_second_of_kernels": batch / kernels, "seconds": seconds,
            "seconds_range": [fastest, slowest], "layers": layers, "update": update, "host": host}


def launches_of(gpu, model, precision, images):
    """What a micro-batch launches, layer by layer, as days with a GPU keep it: {images, launches}."""
    network = Network(model["layers"], images, precision, gpu.of["multiprocessors"])
    return {"images": images, "launches": [
        {"layer": operation.name, "direction": direction, **dataclasses.asdict(gpu.work(launch, precision))}
        for operation in network.operations for direction, launches in operation.directions() for launch in launches]}

"""How fast is it? Steps and kernels beside what was predicted, PyTorch, and the CPUs of the same machine."""
import json
import os
import shlex

import cells
import predictions
from context import expect, listed
from predictions import DOGCAT
from results import Skipped

PRECISIONS = {"exact": "exact", "float": "tf32", "bf16": "bf16"}  # of --precision, as tables call them
STEPS = ((256, "on"), (128, "on"), (512, "on"), (1024, "on"), (32, "on"), (256, "off"))  # batch, --data-on-device
QUICK_STEPS = ((256, "on"), (256, "off"))
RESNET, RESNET_SIZES, RESNET_BATCH = "resnet50v2", (224, 128), 128
MOST_LAYERS = 12  # of a ResNet that become figures
CPU_BATCHES = {False: (128, 1024), True: (32,)}  # by `quick`
LONG_STEP = 5  # seconds: one of them says enough


def keep(day, name, result):
    """Whole results go into a file of their own."""
    kept = day.results.facts.setdefault("benchmarks", {})
    kept[name] = result.get("images_per_second") or result.get("limit")
    path = day.results.path("benchmarks.json")
    whole = {}
    if os.path.exists(path):
        with open(path) as file:
            whole = json.load(file)
    whole[name] = result
    day.results.write_json("benchmarks.json", whole)
    cells.write(day.results, whole)


def bench(day, name, *words, ranks=0, seconds=None):
    path = day.file(name + ".json")
    done = day.cputrain("bench", *words, "--json", path, ranks=ranks, seconds=seconds)
    if done.code == 2 and "device is emulated" in done.last_line():
        raise Skipped(done.last_line())
    expect(done, "cputrain bench")
    with open(path) as file:
        result = json.load(file)
    result["command"] = shlex.join([*(["mpirun", "-np", str(ranks)] if ranks else []), "cputrain", "bench", *words])
    keep(day, name, result)
    return result


def bench_step(precision):
    """Images stay on the device, but for the last measurement."""
    def run(day):
        rates = []
        for batch, where in QUICK_STEPS if day.quick else STEPS:
            rate = bench_of(day, DOGCAT, precision, batch, where)
            rates.append(f"{rate:,.0f} at batch {batch}" + (" from the host" if where == "off" else ""))
        return "images/s: " + ", ".join(rates)
    return run


def bench_resnet(precision):
    def run(day):
        sizes = RESNET_SIZES[-1:] if day.quick else RESNET_SIZES
        rates = [(size, bench_of(day, (RESNET, size), precision, RESNET_BATCH, "on")) for size in sizes]
        return "images/s: " + ", ".join(f"{rate:,.0f} at {size} x {size}" for size, rate in rates)
    return run


def bench_of(day, network, precision, batch, where):
    """Images/s. `where`: as of --data-on-device."""
    model, size = network
    name, host = PRECISIONS[precision], where == "off"
    key = f"step_{name}_{batch}" if network == DOGCAT else f"step_{model}_{size}_{name}_{batch}"
    result = bench(day, key + ("_host" if host else ""), "step", "--backend", "cuda", *predictions.words_of(network),
                   "--precision", precision, "--batch", str(batch), "--data-on-device", where)
    rate = result["images_per_second"]["median"]
    what = f"{model} {name}, batch {batch}" if network == DOGCAT else f"{model} {size}x{size} {name}, batch {batch}"
    foreseen = predictions.images_per_second(day.predictions, day.device, name, batch, network)
    day.results.figure(what + (", images from the host" if host else ""), "images/s", rate, None if host else foreseen)
    return rate


def bench_kernels(precision, network=DOGCAT):
    """All layers of `dogcat` become figures, and those of a ResNet that take longest."""
    def run(day):
        model, size = network
        name, batch = PRECISIONS[precision], str(RESNET_BATCH)
        key = f"kernels_{name}" if network == DOGCAT else f"kernels_{model}_{size}_{name}"
        result = bench(day, key, "kernels", "--backend", "cuda", *predictions.words_of(network), "--precision", precision,
                       "--micro-batch", batch, "--batch", batch, "--repeat", "2" if day.quick else "5")
        noted = predictions.launches(day.predictions, day.device, name, int(batch), network)
        day.results.facts.setdefault("launches", {})[key] = noted
        found = [(direction["seconds_per_image"]["median"] * 1e6, layer, direction["direction"])
                 for layer in result["micro_batches"][0]["given"]["layers"] for direction in layer["directions"]]
        found.sort(key=lambda row: row[0], reverse=True)
        shown = [row for row in found if row[1]["macs_per_image"]] if network == DOGCAT else found[:MOST_LAYERS]
        for us, layer, direction in shown:
            day.results.figure(f"{name} {layer['name']} {direction}", "us/image", us, predictions.microseconds(
                day.predictions, day.device, name, int(batch), layer["name"], direction, network))
        return "us per image: " + listed([f"{layer['name']} {direction} {us:.2f}" for us, layer, direction in found], 3)
    return run


def cpu_columns(count, large=False):
    """One rank with so many threads."""
    def run(day):
        if count > len(os.sched_getaffinity(0)):
            raise Skipped(f"the machine lets this process have {len(os.sched_getaffinity(0))} CPUs")
        if large and day.quick:
            raise Skipped("a rehearsal measures CPUs at one batch")
        return cpu_step(day, f"{count} CPU" + ("s" if count > 1 else ""), ["--threads", str(count)], large=large)
    return run


def cpu_ranks(day):
    """Ranks of one thread, which may be the quicker way to use the same CPUs."""
    ranks = min(16, len(os.sched_getaffinity(0)))
    return cpu_step(day, f"{ranks} ranks", ["--threads", "1"], ranks)


def cpu_step(day, name, words, ranks=0, large=False):
    batch = CPU_BATCHES[day.quick][large]
    size = ["--batch", str(batch), *(["--image-size", "64"] if day.emulated else [])]
    result = bench(day, cpu_key(name, batch), "step", "--backend", "cpu", *size, "--repeat",
                   "1" if large and is_long(day, name, batch) else "2", *words, ranks=ranks)
    rate = result["images_per_second"]["median"]
    day.results.figure(f"dogcat {result['image_size']}x{result['image_size']} on {name}, batch {result['batch']}",
                       "images/s", rate)
    return f"{rate:,.1f} images/s at batch {result['batch']} of {result['image_size']}x{result['image_size']}"


def cpu_key(name, batch):
    return f"cpu_{name}_{batch}".replace(" ", "_")


def is_long(day, name, batch):
    """Whether a step is, by the rate of the smaller batch where that was measured."""
    measured = day.results.facts.get("benchmarks", {}).get(cpu_key(name, CPU_BATCHES[day.quick][0]))
    return measured is not None and batch / measured["median"] > LONG_STEP

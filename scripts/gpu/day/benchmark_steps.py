"""How fast is it? Steps and kernels beside what was predicted, PyTorch, and the CPUs of the same machine."""
import json
import os
import shlex

import cells
import predictions
from context import expect, listed
from results import Skipped

PRECISIONS = {"exact": "exact", "float": "tf32", "bf16": "bf16"}  # of --precision, as tables call them
BATCHES = (256, 128, 32)
QUICK_BATCHES = (256, 32)
CPU_BATCHES = {False: (128, 1024), True: (32, 256)}  # by `quick`
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
    def run(day):
        rates = []
        for batch in QUICK_BATCHES if day.quick else BATCHES:
            name = f"step_{PRECISIONS[precision]}_{batch}"
            result = bench(day, name, "step", "--backend", "cuda", "--precision", precision, "--batch", str(batch))
            rate = result["images_per_second"]["median"]
            day.results.figure(f"dogcat {PRECISIONS[precision]}, batch {batch}", "images/s", rate,
                               predictions.images_per_second(day.predictions, day.device, PRECISIONS[precision], batch))
            rates.append(f"{rate:,.0f} at batch {batch}")
        return "images/s: " + ", ".join(rates)
    return run


def bench_kernels(precision):
    def run(day):
        micro_batch = "128"
        result = bench(day, f"kernels_{PRECISIONS[precision]}", "kernels", "--backend", "cuda", "--precision",
                       precision, "--micro-batch", micro_batch, "--batch", micro_batch, "--repeat",
                       "2" if day.quick else "5")
        noted = predictions.launches(day.predictions, day.device, PRECISIONS[precision], int(micro_batch))
        day.results.facts.setdefault("launches", {})[PRECISIONS[precision]] = noted
        found = []
        for layer in result["micro_batches"][0]["given"]["layers"]:
            for direction in layer["directions"]:
                us = direction["seconds_per_image"]["median"] * 1e6
                what = f"{layer['name']} {direction['direction']}"
                found.append((us, what))
                if layer["macs_per_image"]:
                    day.results.figure(f"{PRECISIONS[precision]} {what}", "us/image", us, predictions.microseconds(
                        day.predictions, day.device, PRECISIONS[precision], int(micro_batch), layer["name"],
                        direction["direction"]))
        found.sort(reverse=True)
        return "us an image: " + listed([f"{what} {us:.2f}" for us, what in found], 3)
    return run


def cpu_columns(count, large=False):
    """One rank with so many threads."""
    def run(day):
        if count > len(os.sched_getaffinity(0)):
            raise Skipped(f"the machine lets this process have {len(os.sched_getaffinity(0))} CPUs")
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

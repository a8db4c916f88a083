"""The model of speed held against days with a GPU: layers that `bench kernels` measured there, beside what speed.py
makes of the launches that the day noted. Instructions of products are those that ncu counted, where no other
has as many blocks."""
import json
import os
import re
import statistics

import speed

LEAST = 0.3  # microseconds per image: below, launches and events are most of what was measured
PROBLEM = re.compile(r"gemm<(\w+?)(?:Numbers)?,.*?\b(?:Backward)?(Forward|Data|Weights)(?:Problem<\w+>)?>")
LAUNCHES = {"Forward": "convolution_forward", "Data": "convolution_backward_data",
            "Weights": "convolution_backward_weights"}
REMEDY = "name a folder that scripts/gpu_day collect made"


def read(folder, name):
    path = os.path.join(folder, name)
    try:
        return json.loads(speed.text_of(path, REMEDY))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON ({error}); {REMEDY}") from None


def executed(row, multiprocessors):
    """Instructions of all warps of a kernel, as ncu counted them, or from the warps and cycles that it saw."""
    metrics = row["metrics"]
    if "smsp__inst_executed.sum" in metrics:
        return metrics["smsp__inst_executed.sum"]
    a_cycle = metrics["Achieved Active Warps Per SM"] / metrics["Warp Cycles Per Issued Instruction"]
    return a_cycle * metrics["SM Active Cycles"] * multiprocessors


def profiled(day, model):
    """Kernels that ncu saw: in one list, as the first days had those of dogcat, or by model and precision."""
    found = day["facts"].get("ncu", [])
    if isinstance(found, list):
        return found
    return [row for name, one in found.items() if name.split()[0] == model for row in one["launches"]]


def counted(day, model, multiprocessors):
    """{(precision, launch, blocks): instructions} of products."""
    found = {}
    for row in profiled(day, model):
        product = PROBLEM.search(row["name"])
        if product:
            blocks = 1
            for side in re.findall(r"\d+", row["grid"]):
                blocks *= int(side)
            precision, problem = product.groups()
            found[precision.lower(), LAUNCHES[problem], blocks] = executed(row, multiprocessors)
    return found


def told_apart(noted):
    """{(launch, blocks)} of products that have all as much to do, so that what ncu counted of one holds for each. In a
    ResNet most products share their blocks with others."""
    found = {}
    for launch in noted["launches"]:
        if launch["hmma"]:
            found.setdefault((launch["name"], launch["blocks"]), set()).add(launch["instructions"])
    return {key for key, instructions in found.items() if len(instructions) == 1}


def predicted(gpu, noted, precision, instructions):
    """{(layer, direction): [microseconds per image, one for each of speed.RULES]}"""
    found, apart = {}, told_apart(noted)
    for launch in noted["launches"]:
        layer, direction = launch["layer"], launch["direction"]
        work = {key: value for key, value in launch.items() if key not in ("layer", "direction")}
        key = work["name"], work["blocks"]
        seen = instructions.get((precision, *key)) if key in apart else None
        work = speed.Work(**{**work, "instructions": seen or work["instructions"]})
        row = found.setdefault((layer, direction), [0.0] * len(speed.RULES))
        for i, rule in enumerate(speed.RULES):
            row[i] += gpu.time(work, rule, gap="stream")[0] * 1e6 / noted["images"]
    return found


def measured(benchmark):
    """{(layer, direction): microseconds per image}"""
    layers = benchmark["micro_batches"][0]["given"]["layers"]
    return {(layer["name"], row["direction"].removeprefix("backward_")): row["seconds_per_image"]["median"] * 1e6
            for layer in layers for row in layer["directions"]}


def rows_of(folder, figures):
    """[(GPU, precision, layer and direction, measured, [predicted])] of a day. The input is left out: its measured time
    may hold the copy of the images."""
    day, benchmarks = read(folder, "day.json"), read(folder, "benchmarks.json")
    names = [name for name in figures["gpus"] if name.lower() in day["device"].lower()]
    if not names:
        raise ValueError(f"{folder} is of {day['device']}, and the file of figures has {', '.join(figures['gpus'])}; "
                         "give another by --hardware")
    gpu = speed.Gpu(names[0], figures, speed.INSTRUCTIONS)
    found = []
    for benchmark, noted in day["facts"]["launches"].items():
        if not noted:  # of a GPU that was not foreseen
            continue
        precision, times = benchmark.rpartition("_")[2], measured(benchmarks[benchmark])
        instructions = counted(day, benchmarks[benchmark]["model"], gpu.of["multiprocessors"])
        for (layer, direction), expected in predicted(gpu, noted, precision, instructions).items():
            time = times.get((layer, direction), 0)
            if time >= LEAST and direction and layer != "input":
                found.append((gpu.name, precision, f"{layer} {direction}", time, expected))
    return found


def compared(folder, figures):
    """rows_of(), where the folder has any."""
    try:
        rows = rows_of(folder, figures)
    except KeyError as error:
        raise ValueError(f"{folder} lacks {error.args[0]} (the model is held against what a day noted); "
                         f"{REMEDY}") from None
    except (AttributeError, IndexError, TypeError, ZeroDivisionError) as error:
        raise ValueError(f"{folder} is damaged ({type(error).__name__}: {error}); {REMEDY}") from None
    if not rows:
        raise ValueError(f"{folder} has no layer of {LEAST} us per image with its launches (there is nothing to "
                         f"compare); {REMEDY}")
    return rows


def table(folders, hardware):
    figures = speed.read_hardware(hardware)
    rows = [row for folder in folders for row in compared(folder, figures)]
    lines = ["microseconds per image, and measured by predicted: as expected, at the fastest, at the slowest", "",
             f"{'':<42}{'measured':>9}{'predicted':>11}{'ratio':>8}{'fastest':>9}{'slowest':>9}"]
    ratios = [[time / one for one in expected] for *_, time, expected in rows]
    for (gpu, precision, name, time, (_, expected, _)), (fastest, ratio, slowest) in zip(rows, ratios):
        lines.append(f"{gpu + ' ' + precision + ' ' + name:<42}{time:>9.2f}{expected:>11.2f}{ratio:>8.2f}"
                     f"{fastest:>9.2f}{slowest:>9.2f}")
    for text, of_rows in (("median distance from 1", statistics.median), ("largest", max)):
        errors = [of_rows([abs(ratio[i] - 1) for ratio in ratios]) for i in (1, 0, 2)]
        lines.append(f"{text:<62}{errors[0]:>8.3f}{errors[1]:>9.3f}{errors[2]:>9.3f}")
    return "\n".join(lines) + "\n"

"""The day's steps as a table for `cputrain report`: seconds per epoch by batch, of CPUs and of a GPU by precision."""
import json
import os
import re

NAME = "cells.json"
MODEL, EPOCH_IMAGES = "dogcat", 22_500
# By the name of a benchmark: backend, and what it says of precision.
KEYS = re.compile(r"(?P<gpu>step_(?P<precision>exact|tf32|bf16)_\d+)|cpu_.+")
FLAGS = {"exact": "exact", "tf32": "float", "bf16": "bf16"}  # of --precision
WORDS = {flag: word for word, flag in FLAGS.items()}
FIGURES = ("gflops", "stolen", "cpu_wait", "density", "kernels_version")
LIMITS = ("fma_gflops", "triad_gbs")


def write(results, benchmarks):
    """The table of what was measured so far."""
    table = table_of(benchmarks, results.json())
    if table["cells"]:
        results.write_json(NAME, table)


def read(path, day):
    """The same of a day that is over; None where it measured no steps. Older days wrote no table of their own."""
    if not os.path.exists(path):
        return None
    with open(path) as file:
        table = table_of(json.load(file), day)
    return table if table["cells"] else None


def table_of(benchmarks, day):
    """`benchmarks`: results of `cputrain bench` by name; `day`: day.json."""
    steps = {name: result for name, result in benchmarks.items()
             if KEYS.fullmatch(name) and result.get("model") == MODEL}
    size = next((result["image_size"] for result in steps.values()), 0)
    info = day["facts"].get("info") or {}
    network = info.get("model") or {}
    commit = commit_of(day["packed"]["program"])
    cells = [{**cell_of(name, result, day["device"]), "commit": commit} for name, result in steps.items()
             if result["image_size"] == size]
    return {"version": 1, "model": MODEL, "image_size": size, "images_per_epoch": EPOCH_IMAGES,
            "parameters": network.get("parameters", 0), "macs_per_image": network.get("macs_per_image", 0),
            "data": "synthetic", "machine": machine_of(info, steps, day),
            "command": "scripts/gpu_day pack DIR; DIR/run OUT", "date": day["date"],
            "commit": commit, "weights": "untrained",
            "cells": list({place(cell): cell for cell in cells}.values())}


def add_kernels(table, versions):
    """Older benchmarks do not say the version of their kernels; {backend: version} is that of their commit."""
    for cell in table["cells"]:
        if cell["backend"] in versions:
            cell.setdefault("kernels_version", versions[cell["backend"]])


def place(cell):
    """What a table has once: of one CPU, one rank and one thread are the same."""
    return cell["backend"], cell["ranks"], cell["threads"], cell["batch"], str(cell.get("axes"))


def commit_of(program):
    """What stands in brackets behind the version: "commit abc1234, Release"."""
    found = re.search(r"\((.*)\)", program)
    return found.group(1) if found else ""


def machine_of(info, steps, day):
    """Without the host's name. What was not recorded is left out."""
    machine = info.get("machine") or next(iter(steps.values()), {})
    libraries = info.get("libraries") or []
    found = {"name": f"host of {day['device']}", "cpu": machine.get("cpu"), "cpu_id": machine.get("cpu_id"), "cores": machine.get("allowed_cores"),
             "hardware_threads": machine.get("allowed_hardware_threads"),
             "memory_bytes": 1e9 * machine.get("memory_gb", 0), "os": day["facts"].get("machine", {}).get("system"),
             "mpi": next((name for name in libraries if name.startswith("Open MPI")), None),
             "build": f"cputrain {info['cputrain']}; {', '.join(libraries)}" if info.get("cputrain") else None}
    return {key: value for key, value in found.items() if value}


def cell_of(name, result, device):
    """Some steps, times those of an epoch: "scaled", as of a sweep that measures steps."""
    rate = result["images_per_second"]
    seconds, least, most = (EPOCH_IMAGES / rate[which] for which in ("median", "max", "min"))
    cell = {**place_of(KEYS.fullmatch(name), result, device), "batch": result["batch"], "status": "scaled",
            "seconds_per_epoch": seconds, "spread": [least, most], "repeats": [seconds], "steps": result["repeats"],
            "images_per_second": rate["median"], "command": result.get("command", "")}
    cell.update({key: result[key] for key in FIGURES if result.get(key) is not None})
    cell.update({key: result["limit"][key] for key in LIMITS if key in result["limit"]})
    if result.get("cpu_id"):
        cell["cpu_id"] = result["cpu_id"]
    return cell


def place_of(key, result, device):
    """A GPU has one rank, whose threads feed it."""
    ranks = result["ranks"]
    if not key["gpu"]:
        return {"cpus": ranks * result["threads"], "ranks": ranks, "threads": result["threads"], "backend": "cpu"}
    return {"cpus": ranks, "ranks": ranks, "threads": 1, "backend": "cuda", "gpus": ranks, "device": device,
            "axes": {"precision": FLAGS[key["precision"]]}}

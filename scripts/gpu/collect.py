"""Makes a folder below results/ of what a day with a GPU brought back."""
import json
import os
import re
import shutil
import sys
import textwrap

import cells
import kernel_waits

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "measurements"))
import origin

COPIED = ("day.json", "benchmarks.json", "selftest.json", "probes.json", "pytorch.json", "summary.txt")
COLUMNS = 118
LONG = 20  # seconds of a step whose use is in the table
# What would name a GPU or a place: UUIDs, and what a provider calls its kernel.
NAMING = ((re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "..."),
          (re.compile(r"(Linux-\d+\.\d+)[\w.+-]*-(x86_64|aarch64)"), r"\1-\2"))


def without_names(text):
    for pattern, replacement in NAMING:
        text = pattern.sub(replacement, text)
    return text


def fail(text, code=2):
    print(f"gpu_day: {text}", file=sys.stderr)
    return code


def number(value):
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def cell(text):
    return str(text).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)).rstrip() + " |" for line in lines) + "\n"


def prose(text):
    return textwrap.fill(" ".join(text.split()), COLUMNS, break_on_hyphens=False, break_long_words=False) + "\n"


def link(name):
    return f"[{name}]({name})"


def processor(day):
    """As `cputrain info` has it, without the instruction sets."""
    found = ((day["facts"].get("info") or {}).get("machine") or {}).get("cpu_id")
    if not found:
        return "their family and model are not recorded"
    names = {"family": "family", "model": "model", "cpu_model": "model", "stepping": "stepping"}
    numbers = [f"{name} {found[key]}" for key, name in names.items() if key in found]
    return ", ".join([found["vendor"], *numbers])


def kernels(commit):
    """"kernels 13 of CPUs, 3 of GPUs"; nothing where the commit is not here."""
    versions = origin.versions_of(commit)
    return ", kernels " + ", ".join(f"{versions[backend]} of {name}" for backend, name in (("cpu", "CPUs"), ("cuda", "GPUs"))
                                    if backend in versions) if versions else ""


def about(day, files):
    machine, packed = day["facts"].get("machine", {}), day["packed"]
    kind = "an emulated device, so no time here means anything" if day["emulated"] else "one GPU"
    rehearsal = " It was a rehearsal, which measures less." if day["quick"] else ""
    facts = [("device", day["device"]), ("CPUs", f"{machine.get('cpus')}, {machine.get('cpu')}; {processor(day)}"),
             ("system", machine.get("system")),
             ("program", f"{packed['program']}, commit {packed['commit']}{kernels(packed['commit'])}"), ("date", day["date"]), ("took", f"{day['seconds']:.0f} s")]
    others = ", ".join(link(name) for name in files if name != "day.json")
    text = f"A day of `scripts/gpu_day` with {kind}.{rehearsal} {link('day.json')} has all of it, beside {others}."
    commands = ["scripts/gpu_day pack DIR", f"DIR/run {'--quick ' if day['quick'] else ''}OUT",
                f"scripts/gpu_day collect OUT {place_of(files.folder)}"]
    return (prose(text) + "\n" + table(["", ""], [fact for fact in facts if fact[1]])
            + "\n<!-- not run: needs a GPU -->\n```sh\n" + "\n".join(commands) + "\n```\n")


def place_of(folder):
    """As seen from the repository's folder."""
    return "results/" + os.path.basename(os.path.abspath(folder))


def steps_of(day):
    rows = [[step["name"], step["outcome"], f"{step['seconds']:.1f}", step["text"]] for step in day["steps"]]
    return "## Steps\n\n" + table(["step", "came to", "seconds", "in short"], rows)


def column_of(one):
    """Its place and its head: CPUs by their number, then the GPU by precision."""
    if one["backend"] == "cpu":
        return 0, one["cpus"], f"{one['cpus']} CPU" + ("s" if one["cpus"] > 1 else "")
    precision = one["axes"]["precision"]
    return 1, list(cells.WORDS).index(precision), f"GPU, {cells.WORDS[precision]}"


def seconds_of(grid, folder):
    """By batch, the quickest where ranks and threads were tried."""
    if not grid:
        return ""
    columns = sorted({column_of(one) for one in grid["cells"]})
    quickest = {}
    for one in grid["cells"]:
        at = one["batch"], column_of(one)
        quickest[at] = min(quickest.get(at, one["seconds_per_epoch"]), one["seconds_per_epoch"])
    rows = [[batch, *(number(quickest.get((batch, column))) for column in columns)]
            for batch in sorted({batch for batch, _ in quickest})]
    text = (f"Seconds per epoch of `{grid['model']}` at {grid['image_size']}x{grid['image_size']}, "
            f"{grid['images_per_epoch']:,} images, scaled from some steps of each, with untrained weights. "
            f"{link(cells.NAME)} has them with their spread, and `./cputrain report {place_of(folder)}` sets them "
            "beside each other.")
    return "## Seconds per epoch\n\n" + prose(text) + "\n" + table(["batch", *(c[-1] for c in columns)], rows)


def figures_of(day):
    if not day["figures"]:
        return ""
    rows = [[f["what"], number(f["predicted"]), number(f["measured"]), number(f["ratio"]), f["unit"]]
            for f in day["figures"]]
    text = ("Predictions are those of `scripts/predict_gpu` that were packed for the day, by what was known from days "
            "before it. A ratio is measured by predicted.")
    return ("## Predicted and measured\n\n" + prose(text) + "\n"
            + table(["what", "predicted", "measured", "ratio", "unit"], rows))


def probes_of(day):
    lines = day["facts"].get("probes")
    if not lines:
        return ""
    rows = [re.split(r":\s+", line, maxsplit=1) + [""] for line in lines]
    return "## Probes\n\n" + table(["question", "answer"], [row[:2] for row in rows])


def waits_of(day):
    """Why warps wait, by families of kernels that ncu saw. The first days noted single launches alone, in a list."""
    profiles = day["facts"].get("ncu", {})
    if isinstance(profiles, list):
        return ""
    rows = [[name, row["kernel"], row["launches"], number(row["microseconds"]), number(row["cycles"]),
             kernel_waits.reasons(row, 4), *(number(row["rates"].get(rate)) for rate in kernel_waits.RATES)]
            for name, of_profile in profiles.items() for row in of_profile["families"]]
    if not rows:
        return ""
    text = ("Cycles pass between two instructions of a warp, and it spends most of them as told. Rates are percents of "
            "what the GPU could, and instructions per cycle.")
    head = ["profile", "kernel", "launches", "us", "cycles", "waits for", "shared memory", "tensor", "L2", "DRAM",
            "issue"]
    return "## Why warps wait\n\n" + prose(text) + "\n" + table(head, rows)


def use_of(day):
    """CPUs and GPUs at work in the longer steps; the first days did not look."""
    rows = [[row["step"], number(row["seconds"]), number(row["cpus"]), gpu["gpu"], number(gpu["percent"]),
             number(gpu["mib"]), number(gpu["watts"]), number(gpu["watts"] and gpu["watts"] * row["seconds"] / 1000)]
            for row in day["facts"].get("usage", {}).get("steps", []) if row["seconds"] >= LONG
            for gpu in row["gpus"]]
    if not rows:
        return ""
    text = (f"Steps of {LONG} seconds and more, of which nvidia-smi was asked every "
            f"{day['facts']['usage']['every_seconds']} seconds ({link('day.json')} has what it said): about the share of "
            "the time in which a kernel ran, the most memory, the mean of the power, and the energy by that. CPUs are all "
            "of the machine, whoever used them.")
    head = ["step", "seconds", "CPUs at work", "GPU", "busy, %", "memory, MiB", "watts", "kJ"]
    return "## What was at work\n\n" + prose(text) + "\n" + table(head, rows)


class Files(list):
    """Names of what is copied, and where they go."""

    def __init__(self, out, folder):
        super().__init__(name for name in COPIED if os.path.exists(os.path.join(out, name)))
        self.folder = folder


def copy(files, out, grid, readme):
    for name in files:
        with open(os.path.join(out, name)) as file, open(os.path.join(files.folder, name), "w") as to:
            to.write(without_names(file.read()))
    if grid:
        with open(os.path.join(files.folder, cells.NAME), "w") as file:
            file.write(json.dumps(grid, indent=1) + "\n")
    with open(os.path.join(files.folder, "README.md"), "w") as file:
        file.write(readme)


def grid_of(benchmarks, day):
    """cells.json of a day; None where it measured no steps."""
    grid = cells.read(benchmarks, day)
    if grid:
        cells.add_kernels(grid, origin.versions_of(day["packed"]["commit"]))
    return grid


def collect(out, folder):
    path = os.path.join(out, "day.json")
    if not os.path.exists(path):
        return fail(f"{path} is not there ({out} holds no day's results); name the folder that `run` filled")
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        return fail(f"{folder} is not an empty folder (results of a day shall not be mixed); name another one")
    files = Files(out, folder)
    try:
        with open(path) as file:
            day = json.loads(without_names(file.read()))
        parts = [f"# {day['device']}\n", about(day, files), steps_of(day), waits_of(day), figures_of(day),
                 use_of(day), probes_of(day)]
        path = os.path.join(out, "benchmarks.json")
        grid = grid_of(path, day)
        parts.insert(2, seconds_of(grid, folder))
    except (ValueError, LookupError, TypeError, AttributeError, ZeroDivisionError) as error:
        return fail(f"{path} is damaged or of a day that never began ({type(error).__name__}: {error}); "
                    "copy the folder here again, or make the day again", 65)
    os.makedirs(folder, exist_ok=True)
    try:
        copy(files, out, grid, "\n".join(part for part in parts if part))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    name = os.path.basename(os.path.abspath(folder))
    print(f"{folder}: README.md and {len(files)} files. A row for results/README.md:\n"
          f"| [{name}]({name}/README.md) | a day with a GPU: tests, probes, steps beside predictions and PyTorch | "
          f"{day['device']} | {day['date']} | {day['packed']['commit']} |")
    return 0

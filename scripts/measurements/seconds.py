"""The tables of a sweep for a document: seconds per epoch by batch and CPUs, with the range of the repeats; what a larger
batch saves, beside the figures in print; other programs, where OUT/peers.json has them; whole epochs with their parts.

scripts/tables measured OUT runs it after the sweep. It reads OUT/cells.json, and OUT/whole-epochs/cells.json where that
is, writes OUT/environment.json from one of the sweep's run folders and the tables into OUT/README.md.
"""
import csv
import datetime
import json
import os
import statistics
import sys

sys.dont_write_bytecode = True
import energy
import origin
import runs

PART = "measured"
WHOLE = "whole-epochs"  # a folder in OUT
PAPER = os.path.join(runs.ROOT, "results", "reference", "paper_table3.csv")
DENSITY = " Density is the part of the values between layers that is not zero."
SMALL, LARGE = 128, 1024  # batches that the paper's gain is between
PROGRAMS = {"tensorflow": "TensorFlow", "pytorch": "PyTorch"}


def cell_text(cell):
    if cell is None:
        return ""
    if not cell["seconds_per_epoch"]:
        return f"n/a: {cell['reason']}"
    low, high = cell["spread"]
    whole = "" if cell["status"] == "measured" else " " + cell["status"]
    spread = f" ({low:.0f} to {high:.0f})" if len(cell["repeats"]) > 1 else ""
    return f"{cell['seconds_per_epoch']:.0f}{whole}{spread}"


def speed_up(few, many):
    seconds = [cell and cell["seconds_per_epoch"] for cell in (few, many)]
    return f"{seconds[0] / seconds[1]:.2f}" if all(seconds) else ""


def precision_of(cell):
    return cell.get("axes", {}).get("precision", "float")


def kernels_of(cells):
    """"13"; of cells of several versions all of them."""
    versions = {cell.get("kernels_version", "not recorded") for cell in cells if cell["seconds_per_epoch"]}
    return ", ".join(map(str, sorted(versions, key=str)))


def density_of(cells):
    """"0.27", or "0.26 to 0.27": part of the values between layers that is not zero."""
    found = sorted({f"{cell['density']:.2f}" for cell in cells if cell.get("density") is not None})
    return " to ".join([found[0], found[-1]][:len(found)]) if found else "not recorded"


def commits_text(swept):
    """Where cells are of several commits."""
    commits = sorted({origin.commit_in(cell["commit"]) for cell in swept["cells"] if cell.get("commit")})
    return f" Its cells are of commits {', '.join(commits)}." if len(commits) > 1 else ""


def repeats_text(repeats):
    """What a figure and its range are of, where cells had so many trainings."""
    if repeats == [1]:
        return "Each figure is of one training."
    return f"Each figure is the median (lowest to highest) of {' or '.join(map(str, repeats))} trainings."


def published_table(path):
    """{(batch, CPUs): seconds}, as text; empty where the paper has N/A."""
    with open(path) as f:
        rows = csv.DictReader(line for line in f if not line.startswith("#"))
        return {(int(row["batch"]), int(row["cpus"])): row["seconds_per_epoch"] for row in rows}


def gain(small, large):
    """What the large batch saves of the small one's time: the figure, and least and most by the ranges of both where
    these are of several trainings; in parts of 1."""
    if not (small and large and small["seconds_per_epoch"] and large["seconds_per_epoch"]):
        return None
    figure = [1 - large["seconds_per_epoch"] / small["seconds_per_epoch"]]
    if min(len(small["repeats"]), len(large["repeats"])) < 2:
        return figure
    return figure + [1 - large["spread"][1] / small["spread"][0], 1 - large["spread"][0] / small["spread"][1]]


def verdict(own, printed):
    """Whether our gain is the one in print."""
    if len(own) == 1:
        return "one training each, which shows nothing"
    _, least, most = own
    if least <= 0 <= most:
        return "no gain is shown"
    if most < min(printed):
        return "a loss" if most < 0 else "less than in print"
    return "more than in print" if least > max(printed) else "as in print"


def gain_text(own):
    parts = [f"{100 * part:+.1f}" for part in own or []]
    return "" if not parts else f"{parts[0]} %" + (f" ({parts[1]} to {parts[2]})" if len(parts) > 1 else "")


def gain_section(cells, precisions, cpus, printed):
    """A row of each precision, and the paper's, where both batches are there."""
    def of_print(n):
        both = [printed.get((batch, n)) for batch in (SMALL, LARGE)]
        return 1 - float(both[1]) / float(both[0]) if all(both) else None
    in_print = {n: of_print(n) for _, n in printed}
    known = [value for value in in_print.values() if value is not None]
    own = {(p, n): gain(cells.get((p, SMALL, n)), cells.get((p, LARGE, n))) for p in precisions for n in cpus}
    if not known or not any(own.values()):
        return ""
    rows = [[p, *(gain_text(own[p, n]) for n in cpus),
             "; ".join(f"{n} CPU{'s' if n > 1 else ''}: {verdict(own[p, n], known)}" for n in cpus if own[p, n])]
            for p in precisions]
    with_gain = [n for n, value in in_print.items() if value is not None]
    rows.append(["published", *(gain_text([in_print[n]]) if n in with_gain else "N/A" for n in cpus),
                 f"{100 * min(known):+.1f} to {100 * max(known):+.1f} % on {min(with_gain)} to {max(with_gain)} CPUs"])
    return (f"\nWhat batch {LARGE} saves of the time of batch {SMALL}, with the widest range that the repeats allow. The "
            "paper prints it as a gain of its largest batch.\n\n"
            + runs.table(["precision", *(f"{n} CPU{'s' if n > 1 else ''}" for n in cpus), "beside the paper's"], rows))


def peer_rows(out, swept, cpus):
    """A row of each other program, precision, batch and weights: seconds that its rate makes of an epoch."""
    try:
        with open(os.path.join(out, "peers.json")) as f:
            peers = json.load(f)
    except FileNotFoundError:
        return []
    found = {}
    for cell in peers["summaries"]:
        if cell["model"] != swept["model"]:
            continue
        after = f"{cell['epochs']} epochs" if cell.get("epochs") else "1 step"
        weights = "" if cell.get("epochs") is None else f", weights after {after}"
        for program in PROGRAMS.keys() & cell.keys():
            rate = cell[program]["images_per_second"]
            name = f"{PROGRAMS[program]} {peers['versions'][program].split()[0]}{weights}"
            texts = found.setdefault((name, cell["precision"], cell["batch"]), {})
            least, middle, most = (swept["images_per_epoch"] / rate[key] for key in ("max", "median", "min"))
            texts[cell["threads"]] = f"{middle:.0f} scaled ({least:.0f} to {most:.0f})"
    return [[name, precision, batch, *(texts.get(n, "") for n in cpus)]
            for (name, precision, batch), texts in sorted(found.items())]


def kilojoules(folder, epochs, path):
    """Of an epoch: what all processors used from a training's start to its end, evaluation included. None: not known."""
    if not os.path.exists(path):
        return None
    with open(os.path.join(folder, "environment.json")) as f:
        start = datetime.datetime.strptime(json.load(f)["started"], "%Y-%m-%dT%H:%M:%S%z").timestamp()
    joules = energy.between(path, start, os.path.getmtime(os.path.join(folder, "metrics.jsonl")))
    return joules and joules / 1000 / epochs


def parts_of(path, cells):
    """{run folder: [start-up in seconds, evaluation in seconds, kJ of an epoch; None: not known]}: medians over a cell's
    trainings. What is known is kept beside cells.json, since run folders are not published."""
    kept_in, known = os.path.join(path, "parts.json"), {}
    if os.path.exists(kept_in):
        with open(kept_in) as f:
            known = json.load(f)["parts"]
    for cell in cells:
        parts = []
        for folder in (os.path.join(path, name) for name in cell.get("runs", [])):
            summary = (runs.metrics(folder) or [{}])[-1]
            if summary.get("program"):
                parts.append([summary["program"]["start_up"], summary["program"]["evaluation"],
                              kilojoules(folder, summary["epochs"], os.path.join(path, "energy.txt"))])
        if parts:
            known[cell["runs"][0]] = [None if None in of_all else round(statistics.median(of_all), 1) for of_all in zip(*parts)]
    if known:
        runs.write_json(kept_in, WHOLE, {"parts": known})
    return known


def whole_section(out, scaled):
    """Trainings of whole epochs, with what is before and after the steps of one, beside `scaled`: the cells of some steps,
    {(precision, batch, CPUs): cell}."""
    path = os.path.join(out, WHOLE)
    try:
        with open(os.path.join(path, "cells.json")) as f:
            swept = json.load(f)
    except FileNotFoundError:
        return ""
    parts = parts_of(path, swept["cells"])
    with_energy = any(joules is not None for _, _, joules in parts.values())
    rows = []
    for cell in swept["cells"]:
        known = ["" if part is None else part for part in parts.get((cell.get("runs") or [""])[0], [None] * 3)]
        known = known if with_energy else known[:2]
        key = (precision_of(cell), cell["batch"], cell["cpus"])
        rows.append([*key, cell_text(cell), cell_text(scaled.get(key)), *known, density_of([cell])])
    return (f"\nWhole epochs, with evaluation. {origin.sentence(origin.of_cells(swept))} Start-up is what passes before the "
            "first step: programs start, images are decoded, methods are tried. Density is that of the end."
            + (" Energy is that of all processors of the machine, by RAPL, from a training's start to its end." * with_energy)
            + "\n\n"
            + runs.block(swept["command"], not_run="it takes an hour")
            + runs.table(["precision", "batch", "CPUs", "seconds per epoch", "in the table above", "start-up, s",
                          "evaluation, s", *(["energy, kJ"] if with_energy else []), "density"], rows))


def text_of(swept, out=None):
    cells = {(precision_of(cell), cell["batch"], cell["cpus"]): cell for cell in swept["cells"]}
    batches, cpus = (sorted({key[i] for key in cells}) for i in (1, 2))
    precisions = list(dict.fromkeys(key[0] for key in cells))
    several = len(precisions) > 1
    dense = any(cell.get("density") is not None for cell in swept["cells"])
    told = [(name, of) for name, of, worth_a_column in (("density", density_of, dense),
                                                        ("kernels", kernels_of, "," in kernels_of(swept["cells"])))
            if worth_a_column]
    repeats = sorted({len(cell["repeats"]) for cell in swept["cells"] if cell["repeats"]})
    numbers = [f"{n} CPU{'s' if n > 1 else ''}" for n in cpus]
    head = [*(["precision"] if several else []), "batch", *numbers, f"speed-up, {cpus[-1]} by {cpus[0]}",
            *(name for name, _ in told)]

    def row(p, batch):
        there = [cells[p, batch, n] for n in cpus if (p, batch, n) in cells]
        return [*([p] if several else []), batch, *(cell_text(cells.get((p, batch, n))) for n in cpus),
                speed_up(cells.get((p, batch, cpus[0])), cells.get((p, batch, cpus[-1]))), *(of(there) for _, of in told)]
    rows = [row(p, batch) for p in precisions for batch in batches if any((p, batch, n) in cells for n in cpus)]
    images, data = swept["images_per_epoch"], swept["data"]
    size = f"{swept['image_size']}x{swept['image_size']}"
    text = (f"{origin.sentence(origin.of_cells(swept))}{commits_text(swept)} Seconds per epoch of `{swept['model']}` at "
            f"{size}, {images:,} "
            f"images ({data}), one rank of one thread for each CPU. {repeats_text(repeats)} `scaled` means "
            "some steps, times the steps of an epoch; weights begin untrained and have made about as many steps before."
            f"{DENSITY if dense else ''}\n\n"
            + runs.block(swept["command"], not_run="it takes half an hour") + runs.table(head, rows))
    text += gain_section(cells, precisions, cpus, published_table(PAPER))
    if out is None:
        return text
    others = peer_rows(out, swept, cpus)
    if others:
        text += ("\nOther programs at the same network, from the rates of [peers.json](peers.json), one process with a "
                 "thread for each CPU.\n\n" + runs.table(["program", "precision", "batch", *numbers], others))
    return text + whole_section(out, cells)


def environment(out, swept):
    """That of the run folder with the most ranks, where the sweep's folders are still there."""
    cell = max(swept["cells"], key=lambda c: c["ranks"])
    for folder in cell.get("runs", []):
        path = os.path.join(out, folder)
        if os.path.exists(os.path.join(path, "environment.json")):
            return runs.machine_of(path)
    return None


def main():
    out = sys.argv[1]
    with open(os.path.join(out, "cells.json")) as f:
        swept = json.load(f)
    if not swept["cells"]:
        sys.exit(f"{out}/cells.json has no cells yet")
    facts = environment(out, swept)
    if facts:
        runs.write_json(os.path.join(out, "environment.json"), PART, facts)
    runs.publish(out, PART, text_of(swept, out))


if __name__ == "__main__":
    main()

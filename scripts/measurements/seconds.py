"""The table of a sweep for a document: seconds per epoch by batch and CPUs, with the range of the repeats.

scripts/tables measured OUT runs it after the sweep. It reads OUT/cells.json, writes OUT/environment.json from one of
the sweep's run folders and the table into OUT/README.md.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
import origin
import runs

PART = "measured"


def cell_text(cell):
    if not cell["seconds_per_epoch"]:
        return f"n/a: {cell['reason']}"
    low, high = cell["spread"]
    whole = "" if cell["status"] == "measured" else " " + cell["status"]
    return f"{cell['seconds_per_epoch']:.0f}{whole} ({low:.0f} to {high:.0f})"


def speed_up(few, many):
    seconds = [cell["seconds_per_epoch"] for cell in (few, many)]
    return f"{seconds[0] / seconds[1]:.2f}" if all(seconds) else ""


def precision_of(cell):
    return cell.get("axes", {}).get("precision", "float")


def kernels_of(cells):
    """"13"; of cells of several versions all of them."""
    versions = {cell.get("kernels_version", "not recorded") for cell in cells if cell["seconds_per_epoch"]}
    return ", ".join(map(str, sorted(versions, key=str)))


def commits_text(swept):
    """Where cells are of several commits."""
    commits = sorted({origin.commit_in(cell["commit"]) for cell in swept["cells"] if cell.get("commit")})
    return f" Its cells are of commits {', '.join(commits)}." if len(commits) > 1 else ""


def repeats_text(repeats):
    """What a figure and its range are of, where cells had so many trainings."""
    if repeats == [1]:
        return "Each figure is of one training, so its range is that figure alone."
    return f"Each figure is the median (lowest to highest) of {' or '.join(map(str, repeats))} trainings."


def text_of(swept):
    cells = {(precision_of(cell), cell["batch"], cell["cpus"]): cell for cell in swept["cells"]}
    batches, cpus = (sorted({key[i] for key in cells}) for i in (1, 2))
    precisions = list(dict.fromkeys(key[0] for key in cells))
    several = len(precisions) > 1
    mixed = "," in kernels_of(swept["cells"])  # then each row says its own
    repeats = sorted({len(cell["repeats"]) for cell in swept["cells"] if cell["repeats"]})
    head = [*(["precision"] if several else []), "batch", *(f"{n} CPU{'s' if n > 1 else ''}" for n in cpus),
            f"speed-up, {cpus[-1]} by {cpus[0]}", *(["kernels"] if mixed else [])]
    rows = [[*([p] if several else []), batch, *(cell_text(cells[p, batch, n]) for n in cpus),
             speed_up(cells[p, batch, cpus[0]], cells[p, batch, cpus[-1]]),
             *([kernels_of(cells[p, batch, n] for n in cpus)] if mixed else [])] for p in precisions for batch in batches]
    images, data = swept["images_per_epoch"], swept["data"]
    size = f"{swept['image_size']}x{swept['image_size']}"
    return (f"{origin.sentence(origin.of_cells(swept))}{commits_text(swept)} Seconds per epoch of `{swept['model']}` at {size}, {images:,} "
            f"images ({data}), one rank of one thread for each CPU. {repeats_text(repeats)} `scaled` means "
            "some steps, times the steps of an epoch.\n\n"
            + runs.block(swept["command"], not_run="it takes half an hour") + runs.table(head, rows))


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
    runs.publish(out, PART, text_of(swept))


if __name__ == "__main__":
    main()

"""Seconds per epoch by CPUs of the networks that the sources train, and of weak scaling, from short sweeps.

scripts/tables networks OUT and scripts/tables weak OUT run it after their sweeps. It reads OUT/networks/*/cells.json or
OUT/weak/cells.json and writes the table into OUT/README.md.
"""
import glob
import json
import os
import sys

sys.dont_write_bytecode = True
import origin
import runs
import seconds


def read(path):
    with open(path) as f:
        return json.load(f)


def numbers_of(tables):
    return sorted({cell["cpus"] for table in tables for cell in table["cells"]})


def of_cpus(numbers):
    return [f"{n} CPU{'s' if n > 1 else ''}" for n in numbers]


def networks_text(tables):
    """A row of each network: its epoch is of the images that its source has."""
    numbers = numbers_of(tables)
    rows = []
    for table in tables:
        for batch in sorted({cell["batch"] for cell in table["cells"]}):
            cells = {cell["cpus"]: cell for cell in table["cells"] if cell["batch"] == batch}
            rows.append([f"`{table['model']}`", f"{table['image_size']}x{table['image_size']}",
                         f"{table['images_per_epoch']:,}", batch, *(seconds.cell_text(cells.get(n)) for n in numbers), seconds.density_of(cells.values())])
    made = sorted({origin.sentence(origin.of_cells(table)) for table in tables})
    return (f"{' '.join(made)} Seconds per epoch, one rank of one thread for each CPU, from a few steps.{seconds.DENSITY}\n\n"
            + runs.block(tables[0]["command"], not_run="it takes minutes")
            + runs.table(["network", "image", "images", "batch", *of_cpus(numbers), "density"], rows))


def weak_text(table):
    """Images/s where each rank has as many images, whatever their number, and what part of one CPU's each keeps."""
    cells = {cell["cpus"]: cell for cell in table["cells"]}
    numbers = [n for n in numbers_of([table]) if cells[n]["seconds_per_epoch"]]
    each = table["cells"][0]["batch_per_rank"]
    rates = {n: table["images_per_epoch"] / cells[n]["seconds_per_epoch"] for n in numbers}
    rows = [["seconds per epoch", *(seconds.cell_text(cells[n]) for n in numbers)],
            ["images/s", *(f"{rates[n]:.1f}" for n in numbers)],
            ["density", *(seconds.density_of([cells[n]]) for n in numbers)],
            ["efficiency, %", *(f"{100 * rates[n] * numbers[0] / rates[numbers[0]] / n:.1f}" for n in numbers)]]
    return (f"{origin.sentence(origin.of_cells(table))} `{table['model']}` with {each} images for each rank of one thread. "
            "Efficiency is against the fewest CPUs.\n\n"
            + runs.block(table["command"], not_run="it takes minutes") + runs.table(["", *of_cpus(numbers)], rows))


def main():
    out, part = sys.argv[1:3]
    if part == "weak":
        text = weak_text(read(os.path.join(out, "weak", "cells.json")))
    else:
        text = networks_text([read(path) for path in sorted(glob.glob(os.path.join(out, "networks", "*", "cells.json")))])
    runs.publish(out, part, text)


if __name__ == "__main__":
    main()

"""One table across all machines of results, and one plot: CPUs, GPUs and the published table, from the committed
cells.json alone.

scripts/tables overview results [--prices FILE] puts the table into results/README.md, and makes results/seconds.svg. All
figures are those of `./cputrain report FOLDER --reference TABLE`; a price makes the cost of an epoch from them.
"""
import argparse
import glob
import json
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
import runs

PART = "overview"
REFERENCE = "results/reference/paper_table3.csv"
BATCHES = (128, 256, 512, 1024)
BASE = BATCHES[0]  # of figures that a row has once: every machine was measured at it
CPUS = (1, 2, 8, 16, 96)
PLOTTED = ("epyc-zen4-2-cores", "gpu-h100", "simulated/published")  # folders that it shows beside the published table
WORDS = {"exact": "exact", "float": "TF32", "bf16": "bf16"}  # of --precision on a GPU


def report_of(folder, prices):
    with tempfile.TemporaryDirectory() as out:
        flags = ["--prices", prices] if prices else []
        return json.loads(runs.run(["./cputrain", "report", folder, "--reference", REFERENCE, "--out", out, "--json",
                                    "-", *flags]))


def three(value):
    """Three digits, or nothing."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 99.95 else f"{value:#.3g}".rstrip(".")


def times(seconds):
    return [three(seconds.get(batch)) for batch in BATCHES]


def against_base(up, part):
    return f"{up:.2f} ({100 * part:.0f} %)" if up else ""


def as_quick(against):
    """"20.3"; beyond the CPUs that were measured "more than 16; 98.6 to 242 by extrapolation"."""
    if not against:
        return ""
    equal = against["equal"]
    if equal["place"] == "within":
        return three(equal["cpus"])
    text = f"{'more' if equal['place'] == 'more' else 'fewer'} than {equal['cpus']:.0f}"
    if not against["equal_extrapolated"]:
        return text
    least, most = map(three, against["equal_extrapolated"])
    return f"{text}; {f'{least} to {most}' if most > '' and most != least else f'{least} or more'} by extrapolation"


def published_rows(reference):
    """The paper's own speed-ups, against its own one CPU."""
    seconds = {(cell["cpus"], cell["batch"]): cell["seconds_per_epoch"] for cell in reference["cells"]}
    one = seconds[1, BASE]
    rows = []
    for cpus in CPUS:
        up = one / seconds[cpus, BASE]
        rows.append(["published table", "", cpus, *times({batch: seconds.get((cpus, batch)) for batch in BATCHES}),
                     three(22_500 / seconds[cpus, BASE] / cpus), "", against_base(up, up / cpus), "", "", "TensorFlow"])
    return rows


def rows_of(folder, report, priced):
    """One for each number of CPUs or GPUs of each series."""
    rows = []
    link = f"[{os.path.basename(folder)}]({os.path.basename(folder)}/README.md)"
    for series in report["series"]:
        cells = [cell for cell in report["cells"] if cell["series"] == series["name"] and cell["seconds_per_epoch"]
                 and not cell.get("batch_per_rank") and cell["batch"] in BATCHES]
        precision = series["about"]["options"].get("precision", "float")
        for count in sorted({cell["cpus"] for cell in cells}):
            by_batch = {cell["batch"]: cell for cell in cells if cell["cpus"] == count}
            first = by_batch.get(BASE) or next(iter(by_batch.values()))
            gpu = series["devices"]
            share = first["peak_share"]
            unit = (first["device"].removeprefix("NVIDIA ").split() or ["GPU"])[0] if gpu else "CPU"
            rows.append([
                link, WORDS.get(precision, precision) if gpu else precision,
                f"{count} {unit}" if gpu else count, *times({b: c["seconds_per_epoch"] for b, c in by_batch.items()}),
                "" if gpu else three(first["images_per_second"] / count),
                f"{100 * share:.0f} %" if share else "", against_base(first["speed_up"], first["efficiency"]),
                as_quick(first["against_cpus"]), *([three(first["cost"])] if priced else [""]),
                program_of(series["about"], first)])
    return rows


def program_of(about, cell):
    """"kernels 13, 129e021c; untrained weights, density 0.52"."""
    version = cell.get("kernels_version")
    commit = cell.get("commit", "").removeprefix("commit ").split(",")[0]
    text = f"kernels {'not recorded' if version is None else version}, {commit or 'commit not recorded'}"
    text += f"; {about.get('weights', 'first steps of a training')}"  # those of a sweep
    text += f", density {cell['density']:.2f}" if cell.get("density") is not None else ""
    return text + ("; one run" if len(cell.get("repeats") or []) == 1 else "")


def text_of(reports, prices):
    head = ["machine", "precision", "CPUs or GPUs", *(f"batch {batch}" for batch in BATCHES), "images/s a core",
            "of the multiply-add peak", "speed-up (efficiency)", "CPUs as quick as it", "cost of an epoch",
            "program; weights"]
    rows = published_rows(next(iter(reports.values()))["reference"])
    for folder, report in reports.items():
        rows += rows_of(folder, report, prices)
    used = [i for i in range(len(head)) if any(row[i] != "" for row in rows)]
    table = runs.table([head[i] for i in used], [[row[i] for i in used] for row in rows])
    text = ("Seconds per epoch of `dogcat` at 256x256, 22,500 images, by batch. Figures of ours are scaled from some "
            f"steps. Columns behind the batches are of batch {BASE}, where it was measured. The multiply-add peak was "
            "measured beside it; of a GPU it is that of `mma.sync`. Kernels that skip zeros may pass it, and so "
            "may AMX, whose tiles are no part of that peak. Where a row names no density, none was recorded.\n\n" + table +
            "\nCPUs as quick as a GPU are those of its own host. Beyond the most that were measured, two figures are "
            "extrapolated: all CPUs as good as the first one, and going on as the last two numbers of CPUs. Where a number "
            "of CPUs was measured in several splits into ranks and threads, the quickest stands here. Two measurements of "
            "the peak on all CPUs of a GPU's host differ by up to 1.8 times, so its share there says little. `exact` makes "
            "three products of one, which count once.")
    if prices:
        text += f" Costs are of the prices in [{os.path.basename(prices)}]({os.path.relpath(prices, 'results')})."
    return text


def make_plot(results):
    """RESULTS/seconds.svg: seconds by CPUs, a line for each batch; a GPU is a level line."""
    with tempfile.TemporaryDirectory() as out:
        runs.run(["./cputrain", "report", *(os.path.join(results, name) for name in PLOTTED), "--reference", REFERENCE,
                  "--out", out])
        shutil.copyfile(os.path.join(out, "seconds.svg"), os.path.join(runs.ROOT, results, "seconds.svg"))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("out", help="folder of results")
    p.add_argument("--prices", help="file of prices, as results/reference/prices_example.csv")
    a = p.parse_args()
    if not os.path.exists(os.path.join(runs.ROOT, "cputrain")):
        sys.exit("scripts/tables: there is no ./cputrain; run scripts/build")
    folders = [os.path.dirname(path) for path in sorted(glob.glob(os.path.join(a.out, "*", "cells.json")))]
    make_plot(a.out)
    runs.publish(a.out, PART, text_of({folder: report_of(folder, a.prices) for folder in folders}, a.prices))


if __name__ == "__main__":
    main()

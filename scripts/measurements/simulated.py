"""Tables of simulated cells for a document: the published grid in two readings of a CPU, sensitivity, clusters.

scripts/tables simulated OUT runs it after the simulations. It reads OUT/*/cells.json and OUT/*/*/cells.json and writes
the tables into OUT/README.md. Every figure in them is simulated, and says so in its cell.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
import origin
import runs
import seconds

PART = "simulated"


def cells_of(folder):
    """{(batch, CPUs): cell} of the cells with a whole batch; those with a batch per rank come under (None, CPUs)."""
    with open(os.path.join(folder, "cells.json")) as f:
        swept = json.load(f)
    return {(None if cell.get("batch_per_rank") else cell["batch"], cell["cpus"]): cell for cell in swept["cells"]}


def grid(cells):
    return ([b for b in sorted({batch for batch, _ in cells if batch})], sorted({n for _, n in cells}))


def three_digits(seconds):
    return f"{seconds:#.3g}".rstrip(".")


def text(cell):
    """Three digits, which are the same on every machine, and the range."""
    if cell is None:
        return ""
    if not cell["seconds_per_epoch"]:
        return "n/a"
    low, high = map(three_digits, cell["spread"])
    return f"{three_digits(cell['seconds_per_epoch'])} ({low} to {high}) simulated"


def gain_row(whose, cpus, figures):
    """What the paper's largest batch saves of the time of its smallest, with the same number of CPUs."""
    both = [(figures.get((seconds.SMALL, n)), figures.get((seconds.LARGE, n))) for n in cpus]
    return [f"gain of {seconds.LARGE} by {seconds.SMALL}{whose}",
            *(f"{100 * (1 - large / small):+.1f} %" if small and large else "N/A" for small, large in both)]


def seconds_table(folder, printed=None):
    """Batches down, CPUs across; below each row that of a published table, where there is one."""
    cells = cells_of(folder)
    batches, cpus = grid(cells)
    rows = []
    for batch in batches:
        rows.append([batch, *(text(cells.get((batch, n))) for n in cpus)])
        if printed:
            rows.append([f"{batch}, published", *(printed.get((batch, n)) or "N/A" for n in cpus)])
    gains = [gain_row("", cpus, {key: cell["seconds_per_epoch"] for key, cell in cells.items()}),
             gain_row(", published", cpus, {key: float(value) for key, value in (printed or {}).items() if value})]
    rows += [row for row in gains if set(row[1:]) != {"N/A"}]
    return runs.table(["batch / CPUs", *cpus], rows)


def by_variant(folder, batches):
    """A row for each folder below this one and each of these batches (None: a batch per rank)."""
    names = sorted(name for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, "cells.json")))
    found = {name: cells_of(os.path.join(folder, name)) for name in names}
    cpus = sorted({n for cells in found.values() for _, n in cells})
    rows = [[name, "32 per rank" if batch is None else batch, *(text(cells.get((batch, n))) for n in cpus)]
            for name, cells in found.items() for batch in batches]
    return runs.table(["variant", "batch", *cpus], rows)


RANGE = ("Each figure is of ranks of one thread each, the median of simulations with other random disturbances. Its "
         "range holds these, and the shares of their peak that cores of the platform may reach. It leaves out what is "
         "assumed: clock, memory bandwidth and network of the platform, and what two threads of a core share.")


def origins(out):
    """Date and commit of the cells and of the costs that they were computed with."""
    with open(os.path.join(out, "published", "cells.json")) as f:
        table = json.load(f)
    costs = table.get("costs", "origin not recorded")
    return f"{origin.sentence(origin.of_cells(table))} Costs: {costs.replace('; a core', '. A core')}. {RANGE}"


def main():
    out = sys.argv[1]
    printed = seconds.published_table(seconds.PAPER)
    runs.publish(out, PART, "\n".join([
        origins(out) + "\n",
        "Seconds per epoch, `skylake-vcpus`: n CPUs are a VM of n vCPUs, two of which share a core.\n",
        seconds_table(os.path.join(out, "published"), printed),
        "Seconds per epoch, `skylake-96`: ranks on one VM of 48 cores, first one on each core.\n",
        seconds_table(os.path.join(out, "published-whole-cores")),
        "Sensitivity of `skylake-vcpus`: its clock (`--clock-ghz`), its memory bandwidth (`--memory-gbs`), and the share "
        "of its peak that a core reaches (`--peak-share`).\n",
        by_variant(os.path.join(out, "sensitivity"), [128, 1024]),
        "Clusters: VMs of 8 or 96 vCPUs, joined by 10, 32 or 100 Gbit/s. Two rows have a batch of the whole job, one "
        "has 32 images per rank.\n",
        by_variant(os.path.join(out, "clusters"), [1024, 8192, None])]))


if __name__ == "__main__":
    main()

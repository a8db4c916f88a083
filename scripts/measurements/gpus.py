"""Tables of simulated GPUs for a document: GPUs by batch, nodes of GPUs, and published speed-ups beside ours.

scripts/tables gpus OUT runs it after the simulations. It reads OUT/*/*/cells.json and writes the tables into
OUT/README.md. Every figure of ours is predicted or simulated, and says so in its cell.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
import origin
import runs

PART = "gpus"
PER_RANK = "per GPU"


def cells_of(folder):
    """{(batch, GPUs): cell}; (PER_RANK, GPUs) where the batch grows with the GPUs."""
    with open(os.path.join(folder, "cells.json")) as f:
        table = json.load(f)
    return {(PER_RANK if cell.get("batch_per_rank") else cell["batch"], cell["cpus"]): cell for cell in table["cells"]}


def three(value):
    return f"{value:#.3g}".rstrip(".")


def figure(cell, text):
    """With the kind of figure that it is."""
    if cell is None:
        return ""
    return f"{text(cell)} {cell['status']}" if cell["seconds_per_epoch"] else "n/a"


def speed_up(cells, batch, gpus, base=1):
    """Against one GPU of the same row; None where one of them has no figure."""
    one, more = cells.get((batch, base)), cells.get((batch, gpus))
    if not (one and more and one["seconds_per_epoch"] and more["seconds_per_epoch"]):
        return None
    return one["seconds_per_epoch"] / more["seconds_per_epoch"]


def axes(cells):
    return (sorted({batch for batch, _ in cells}, key=lambda batch: (batch == PER_RANK, str(batch).zfill(9))),
            sorted({gpus for _, gpus in cells}))


def row_name(cells, batch):
    if batch != PER_RANK:
        return str(batch)
    return f"{next(cell['batch_per_rank'] for (of, _), cell in cells.items() if of == PER_RANK)} per GPU"


def seconds_table(cells, node=None):
    """Batches down, GPUs across: seconds per epoch, and below each row its speed-ups."""
    batches, gpus = axes(cells)
    head = [f"{n}" + (f" ({max(1, n // node)} node{'s' if n > node else ''})" if node else "") for n in gpus]
    rows = []
    for batch in batches:
        name = row_name(cells, batch)
        rows.append([name, *(figure(cells.get((batch, n)), lambda c: three(c["seconds_per_epoch"])) for n in gpus)])
        ups = [speed_up(cells, batch, n) for n in gpus]
        rows.append([f"{name}, speed-up", *("" if up is None else three(up) for up in ups)])
    return runs.table(["batch / GPUs", *head], rows)


# What others printed: (source, network, machine, {GPUs: speed-up}), and ours beside it: (folder, batch, in words).
PUBLISHED = [
    ("Keras `multi_gpu_model`, iNaturalist", "7 layers", {2: 1.6, 4: 2.5, 8: 3},
     [("one-node/nature7-pcie", 64, "A100 on PCIe, batch 64"), ("one-node/nature7", 64, "H100, batch 64"),
      ("one-node/nature7", 256, "H100, batch 256"), ("one-node/nature7", PER_RANK, "H100, 64 per GPU")]),
    ("Horovod, potato chips", "5 convolutions", {2: 2, 4: 2},
     [("one-node/chips-pcie", 64, "A100 on PCIe, batch 64"), ("one-node/chips", 64, "H100, batch 64")]),
    ("tf_cnn_benchmarks, GTX 1070 on extenders", "ResNet-50", {2: 1.64, 4: 3.04, 6: 4.77},
     [("others/gtx1070", PER_RANK, "the same machine, 32 per GPU")]),
    ("Keras `make_parallel`, GTX 1070 on extenders", "ResNet-50", {2: 1.15, 4: 1.16, 6: 1.17},
     [("others/gtx1070", PER_RANK, "the same machine, 32 per GPU")]),
    ("tf_cnn_benchmarks, Azure M60", "ResNet-50", {2: 1.95},
     [("others/m60", PER_RANK, "the same machine, 32 per GPU")]),
    ("tf_cnn_benchmarks, DGX-1", "ResNet-50", {2: 1.93, 4: 3.89, 8: 7.92},
     [("others/p100", PER_RANK, "the same machine, 64 per GPU")]),
    ("tf_cnn_benchmarks, DGX-1", "VGG-16", {2: 1.92, 4: 3.79, 8: 7.02},
     [("others/p100-vgg16", PER_RANK, "the same machine, 64 per GPU")]),
    ("tf_cnn_benchmarks, V100", "ResNet-50", {4: 3.47}, [("others/v100", PER_RANK, "CTE-POWER, 64 per GPU")]),
    ("PyTorch, H200", "ResNet-50", {8: 7.95}, [("others/h200", PER_RANK, "the same GPUs, 2,560 per GPU")]),
]
COLUMNS = (2, 4, 6, 8)


def published_table(out):
    rows = []
    for source, network, printed, ours in PUBLISHED:
        rows.append([f"{source}: {network}", *(printed.get(n, "") for n in COLUMNS)])
        for folder, batch, words in ours:
            cells = cells_of(os.path.join(out, folder))
            ups = [(cells.get((batch, n)), speed_up(cells, batch, n)) for n in COLUMNS]
            rows.append([f"ours: {words}", *("" if up is None else f"{three(up)} {cell['status']}" for cell, up in ups)])
    return runs.table(["speed-up on ... GPUs", *COLUMNS], rows)


def feeding_table(out):
    """What one kind of feeding costs: images of a second, and the speed-up on 4 GPUs."""
    rows = []
    for folder, words in (("nature7-pcie", "on the GPU"), ("nature7-host", "from the host, sent ahead"),
                          ("nature7-fed", "from the host, when a step asks for them")):
        cells = cells_of(os.path.join(out, "one-node", folder))
        for batch in (64, 256):
            rows.append([words, batch, *(figure(cells.get((batch, n)), lambda c: f"{c['images_per_second']:,.0f}")
                                         for n in (1, 4)), three(speed_up(cells, batch, 4))])
    return runs.table(["images lie", "batch", "images/s, 1 GPU", "images/s, 4 GPUs", "speed-up"], rows)


def origins(out):
    with open(os.path.join(out, "one-node", "dogcat-float", "cells.json")) as f:
        table = json.load(f)
    return (f"{origin.sentence(origin.of_cells(table, 'cuda'))} `predicted`: what a GPU computes is predicted by "
            "`scripts/predict_gpu`. `simulated`: it is the speed of one GPU that others printed. Sums and images are "
            "those of [the guide](../../../src/scaling/simulation/README.md#gpus), with the figures of the platform files.")


def main():
    out = sys.argv[1]
    one, nodes = (lambda name, part=part: cells_of(os.path.join(out, part, name)) for part in ("one-node", "nodes"))
    runs.publish(out, PART, "\n".join([
        origins(out) + "\n",
        "Published speed-ups, and ours. A source without a batch in its row has the one that is beside ours.\n",
        published_table(out),
        "Seconds per epoch of `dogcat` (22,500 images of 256x256), `h100-sxm-8`, TF32.\n",
        seconds_table(one("dogcat-float")),
        "The same in bf16.\n",
        seconds_table(one("dogcat-bf16")),
        "The same in TF32 without NVLink, `a100-pcie-4`.\n",
        seconds_table(one("dogcat-pcie")),
        "`nature7` (5,000 images of 299x299), `h100-sxm-8`, TF32.\n",
        seconds_table(one("nature7")),
        "ResNet50V2 (50,000 images of 128x128, 10 classes), `h100-sxm-8`, TF32.\n",
        seconds_table(one("cifar")),
        "`dogcat` in `exact` on `h200-sxm-8`, from steps that were [measured on one H200](../../gpu-h200/README.md) with "
        "earlier kernels.\n",
        seconds_table(one("dogcat-measured")),
        "How images come to the GPUs: `nature7`, `a100-pcie-4`.\n",
        feeding_table(out),
        "Nodes of 2 GPUs on 32 Gbit/s, `a100-2x32g`: `dogcat`, TF32.\n",
        seconds_table(nodes("dogcat-2"), 2),
        "Nodes of 4 GPUs on 50 Gbit/s, `a100-4x50g`: `dogcat`, TF32.\n",
        seconds_table(nodes("dogcat-4"), 4),
        "The same nodes of 2 on 400 Gbit/s (`--network-gbps 400`).\n",
        seconds_table(nodes("dogcat-2-fast"), 2),
        "And nodes of 4.\n",
        seconds_table(nodes("dogcat-4-fast"), 4),
        "Nodes of 8 GPUs on 3,200 Gbit/s, `h100-sxm-8`: `dogcat`, TF32.\n",
        seconds_table(nodes("dogcat-8"), 8),
        "ResNet50V2 of 128x128 on nodes of 2 GPUs, `a100-2x32g`, TF32.\n",
        seconds_table(nodes("cifar-2"), 2),
        "On nodes of 4, `a100-4x50g`.\n",
        seconds_table(nodes("cifar-4"), 4),
        "On nodes of 4 V100, `v100-4x100g`, at the 1,190 images/s that a course prints for one GPU (42 s an epoch with "
        "batch 256).\n",
        seconds_table(cells_of(os.path.join(out, "others", "v100-cifar")), 4)]))


if __name__ == "__main__":
    main()

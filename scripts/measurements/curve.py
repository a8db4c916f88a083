"""The one curve that a source prints, beside ours: ResNet50V2 on CIFAR-10 at 128x128, batch 256, plain SGD.

scripts/tables curve OUT --data CIFAR10 [--epochs 1] [--precision float] runs it on all CPUs. CIFAR10 is the folder of
the official binary files. A finished training is kept in OUT/curve and is not run again; one that was ended goes on.
The result is OUT/curve.json and the table in OUT/README.md.
"""
import csv
import os
import sys

sys.dont_write_bytecode = True
import accuracy
import origin
import runs

PART = "curve"
PRINTED = os.path.join(runs.ROOT, "results", "reference", "resnet50v2_cifar10.csv")
EPOCHS = 5  # as the source's


def flags(a):
    """What differs from the network's recipe, which is the source's. The source never shuffled."""
    return {"model": "resnet50v2", "epochs": str(a.epochs), "precision": a.precision, "threads": str(a.threads)}


def command(a):
    given = [word for name, value in flags(a).items() for word in (f"--{name}", value)]
    return ["./cputrain", "--data", f"cifar10:{a.data}", "--no-shuffle", *given]


def printed():
    with open(PRINTED) as f:
        return list(csv.DictReader(line for line in f if not line.startswith("#")))


def train(a, folder):
    """Epochs of the training in the folder, which is run unless it has finished there."""
    lines = runs.metrics(folder)
    if not lines:
        runs.run([*command(a), "--out", folder], told=True)
        lines = runs.metrics(folder)
    accuracy.refuse_other_flags(folder, flags(a))
    return [{key: line[key] for key in ("epoch", "seconds", "loss", "accuracy", "val_loss", "val_accuracy")}
            for line in lines if line["type"] == "epoch"]


def text_of(result, rows_in_print):
    ours = {epoch["epoch"]: epoch for epoch in result["epochs"]}
    rows = [[row["epoch"], *cells] for row in rows_in_print if (epoch := ours.get(int(row["epoch"])))
            for cells in [[row["loss"], f"{epoch['loss']:.4f}", row["accuracy"], f"{epoch['accuracy']:.4f}",
                           f"{epoch['val_accuracy']:.4f}", row["seconds"], f"{epoch['seconds']:.0f}"]]]
    cpus = result["cpus"]
    return (f"{origin.sentence(result['origin'])} ResNet50V2 on CIFAR-10 at 128x128, batch 256, SGD with a rate of 0.01, "
            f"50,000 images in their files' order, in {result['precision']} on {cpus} CPU{'s' if cpus > 1 else ''}. The "
            "post's figures are in [its file](../reference/resnet50v2_cifar10.csv); its seconds are of one GPU. Loss and "
            "accuracy are those of training, as it prints them. Its images may be scaled in another way.\n\n"
            + runs.block(result["command"], not_run="it takes half an hour")
            + runs.table(["epoch", "loss in print", "ours", "accuracy in print", "ours", "validation accuracy, ours",
                          "seconds in print", "ours"], rows))


def main():
    p = runs.arguments(__doc__.splitlines()[0])
    p.add_argument("--epochs", type=int, choices=range(1, EPOCHS + 1), default=1)
    p.add_argument("--precision", choices=["float", "bf16"], default="float")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    a = p.parse_args()
    folder = os.path.abspath(os.path.join(a.out, PART))
    epochs = train(a, folder)
    shown = runs.published([word.replace(a.data, "CIFAR10") for word in command(a)])
    result = {"command": shown, "cpus": a.threads, "precision": a.precision, "origin": runs.origin_of(folder),
              "environment": runs.machine_of(folder), "epochs": epochs}
    runs.write_json(os.path.join(a.out, "curve.json"), PART, result)
    runs.publish(a.out, PART, text_of(result, printed()))


if __name__ == "__main__":
    main()

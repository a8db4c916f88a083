"""The one curve that a source prints, beside ours: ResNet50V2 on CIFAR-10 at 128x128, batch 256, plain SGD.

scripts/tables curve OUT --data CIFAR10 [--epochs 1] [--precision float] runs it on all CPUs. CIFAR10 is a folder of the
official binary files, of all of them or of some: an epoch is then as many passes as make 50,000 images. A finished
training is kept in OUT/curve and is not run again; one that was ended goes on. The result is OUT/curve.json and the
table in OUT/README.md.
"""
import csv
import json
import os
import statistics
import sys

sys.dont_write_bytecode = True
import accuracy
import origin
import runs

PART = "curve"
PRINTED = os.path.join(runs.ROOT, "results", "reference", "resnet50v2_cifar10.csv")
IMAGES = 50_000  # of an epoch in print
EPOCHS = 5


def images_of(data):
    """How many there are to train on. Ends where the source's epoch is no whole number of passes through them."""
    told = json.loads(runs.run(["./cputrain", "train", "--dry-run", *command(data, {}), "--batch", "1", "--json", "-"]))
    images = told["steps_per_epoch"]
    if IMAGES % images:
        sys.exit(f"--data {data}: has {images:,} images, and {IMAGES:,} are no multiple of that; name a folder with one "
                 "training file of CIFAR-10, or with all five")
    return images


def command(data, flags):
    """What differs from the network's recipe, which is the source's. That never shuffled, and prints no validation."""
    given = [word for name, value in flags.items() for word in (f"--{name}", value)]
    return ["--data", f"cifar10:{data}", "--model", "resnet50v2", "--no-shuffle", "--limit-val", "0", *given]


def printed():
    with open(PRINTED) as f:
        return list(csv.DictReader(line for line in f if not line.startswith("#")))


def train(a, images, flags, folder):
    """Lines of the training's epochs, which is run unless it has finished in that folder."""
    if not runs.metrics(folder):
        runs.run(["./cputrain", *command(a.data, flags), "--out", folder, "--resume", "auto"], told=True)
    accuracy.refuse_other_flags(folder, flags)
    lines = [line for line in runs.metrics(folder) if line["type"] == "epoch"]
    if lines[0]["images"] != images:
        sys.exit(f"{folder} holds a training on {lines[0]['images']:,} images, not {images:,}; name another OUT")
    return lines


def epochs_of(lines, passes):
    """Passes as epochs of the source: means, and seconds of as many images as it has."""
    groups = [lines[i:i + passes] for i in range(0, len(lines), passes)]
    return [{"loss": statistics.mean(line["loss"] for line in group),
             "accuracy": statistics.mean(line["accuracy"] for line in group),
             "seconds": sum(line["seconds"] for line in group) * IMAGES / sum(line["images"] for line in group)}
            for group in groups]


def text_of(result, rows_in_print):
    rows = [[row["epoch"], row["loss"], f"{ours['loss']:.4f}", row["accuracy"], f"{ours['accuracy']:.4f}", row["seconds"],
             f"{ours['seconds']:.0f}"] for row, ours in zip(rows_in_print, result["epochs"])]
    cpus, times = result["cpus"], result["passes"]
    images = f"{result['images']:,} images" + (f", {times} times for an epoch of the source's 50,000" if times > 1 else "")
    return (f"{origin.sentence(result['origin'])} ResNet50V2 on CIFAR-10 at 128x128, batch 256, SGD with a rate of 0.01, in "
            f"{result['precision']} on {cpus} CPU{'s' if cpus > 1 else ''}: {images}. The post's figures are in "
            "[its file](../reference/resnet50v2_cifar10.csv); its seconds are of one GPU. Loss and accuracy are means over "
            "the steps of an epoch, as it prints them. It may have scaled its images in another way.\n\n"
            + runs.block(result["command"], not_run="it takes half an hour for each epoch of the source")
            + runs.table(["epoch", "loss in print", "ours", "accuracy in print", "ours", "seconds in print", "ours"], rows))


def main():
    p = runs.arguments(__doc__.splitlines()[0])
    p.add_argument("--epochs", type=int, choices=range(1, EPOCHS + 1), default=1)
    p.add_argument("--precision", choices=["float", "bf16"], default="float")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    a = p.parse_args()
    folder = os.path.abspath(os.path.join(a.out, PART))
    images = images_of(a.data)
    times = IMAGES // images
    flags = {"epochs": str(a.epochs * times), "precision": a.precision, "threads": str(a.threads)}
    lines = train(a, images, flags, folder)
    result = {"command": runs.published(["./cputrain", *command("CIFAR10", flags)]), "cpus": a.threads,
              "precision": a.precision, "images": images, "passes": times, "origin": runs.origin_of(folder),
              "environment": runs.machine_of(folder), "epochs": epochs_of(lines, times)}
    runs.write_json(os.path.join(a.out, "curve.json"), PART, result)
    runs.publish(a.out, PART, text_of(result, printed()))


if __name__ == "__main__":
    main()

"""Accuracy by batch: the same training with batches 128 to 1024 and three seeds, on two ranks of one thread.

scripts/tables accuracy OUT --data DIR [--image-size 64] [--epochs 30] [--at-once 1] runs it. Finished trainings are
kept in OUT/accuracy and are not run again. The result is OUT/accuracy.json and the table in OUT/README.md.
"""
import concurrent.futures
import os
import sys

sys.dont_write_bytecode = True
import runs

PART = "accuracy"
RANKS = 2


def words(text):
    return [int(word) for word in text.split(",")]


def command(a, batch, seed):
    return runs.on_ranks(RANKS, "--data", a.data, "--image-size", str(a.image_size), "--batch", str(batch), "--epochs",
                         str(a.epochs), "--seed", str(seed), "--threads", "1")


def training(a, batch, seed):
    """Figures of one training, which is run unless its folder has it finished."""
    folder = os.path.join(a.out, PART, f"b{batch}-s{seed}")
    if not runs.metrics(folder):
        runs.run([*command(a, batch, seed), "--checkpoint-every", "0", "--verbose", "0", "--overwrite", "--out",
                  os.path.abspath(folder)])
    lines = runs.metrics(folder)
    epochs = [line for line in lines if line["type"] == "epoch"]
    print(f"batch {batch}, seed {seed}: {epochs[-1]['val_accuracy']:.4f} after {len(epochs)} epochs", file=sys.stderr,
          flush=True)
    return {"batch": batch, "seed": seed, "steps_per_epoch": epochs[0]["steps"],
            "training_images": epochs[0]["images"], "weights_hash": lines[-1]["weights_hash"],
            **{key: [epoch[key] for epoch in epochs] for key in ("loss", "accuracy", "val_loss", "val_accuracy")}}


def after_steps(run, steps):
    """Validation accuracy at the end of the first epoch with so many steps in all."""
    return run["val_accuracy"][-(-steps // run["steps_per_epoch"]) - 1]


def row(trainings, steps):
    """One batch: its trainings differ by seed."""
    per_epoch = trainings[0]["steps_per_epoch"]
    return [trainings[0]["batch"], per_epoch * len(trainings[0]["val_accuracy"]),
            runs.spread_text([t["val_accuracy"][-1] for t in trainings], ".3f"),
            runs.spread_text([max(t["val_accuracy"]) for t in trainings], ".3f"),
            runs.spread_text([t["accuracy"][-1] for t in trainings], ".3f"),
            runs.spread_text([after_steps(t, steps) for t in trainings], ".3f")]


def text_of(a, result):
    groups = [[t for t in result["trainings"] if t["batch"] == batch] for batch in a.batches]
    fewest = min(g[0]["steps_per_epoch"] * len(g[0]["val_accuracy"]) for g in groups)
    head = ["batch", "steps", "validation accuracy, last epoch", "best epoch", "training accuracy, last epoch",
            f"validation accuracy after {fewest} steps"]
    text = (f"{a.about}, {a.image_size}x{a.image_size} pixels, {a.epochs} epochs, {RANKS} ranks of one thread. Each "
            f"figure is the median (lowest to highest) of seeds {', '.join(map(str, sorted(a.seeds)))}.")
    text += (f" The command is that of one training, with batch {a.batches[-1]} and seed {max(a.seeds)}.\n\n"
             + runs.block(result["command"], not_run="it takes minutes"))
    return text + runs.table(head, [row(g, fewest) for g in groups])


def main():
    p = runs.arguments(__doc__.splitlines()[0])
    p.add_argument("--batches", type=words, default=[128, 256, 512, 1024])
    p.add_argument("--seeds", type=words, default=[0, 1, 2])
    p.add_argument("--image-size", type=int, default=64)
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--at-once", type=int, default=1, help="trainings beside each other; losses stay the same [1]")
    a = p.parse_args()
    with concurrent.futures.ThreadPoolExecutor(a.at_once) as pool:
        trainings = list(pool.map(lambda of: training(a, *of), [(b, s) for s in a.seeds for b in a.batches]))
    trainings.sort(key=lambda t: (t["batch"], t["seed"]))
    folder = os.path.join(a.out, PART, f"b{a.batches[0]}-s{a.seeds[0]}")
    one = runs.published(command(a, a.batches[-1], max(a.seeds)), DIR=a.data)
    result = {"command": one, "data": a.about, "image_size": a.image_size, "epochs": a.epochs, "ranks": RANKS,
              "environment": runs.machine_of(folder), "trainings": trainings}
    runs.write_json(os.path.join(a.out, "accuracy.json"), PART, result)
    runs.publish(a.out, PART, text_of(a, result))


if __name__ == "__main__":
    main()

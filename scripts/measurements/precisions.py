"""Float beside bf16 on the CPUs of this machine: curves of loss and accuracy by seed, and steps in alternating rounds.

scripts/tables precisions OUT --data DIR [--rounds 7] [--seeds 0,1,2,3,4] runs it. DIR has folders `train` and `val`.
Accuracy does not depend on the machine's speed; steps are best timed where nothing else works. The result is
OUT/precisions.json and the tables in OUT/README.md.
"""
import json
import os
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
import intervals
import origin
import runs

PART = "precisions"
PRECISIONS = ["float", "bf16"]
STEPS = [("dogcat", 256, 128), ("resnet50v2", 128, 64)]  # network, image size, batch
SHOWN_EPOCHS = 6


def training_command(a, precision, seed):
    return ["./cputrain", "--data", a.data, "--image-size", "64", "--augment", "flip", "--optimizer", "adam", "--lr",
            "0.0007", "--batch", "32", "--epochs", str(a.epochs), "--precision", precision, "--seed", str(seed)]


def step_command(model, size, batch, precision):
    return ["./cputrain", "bench", "step", "--model", model, "--image-size", str(size), "--batch", str(batch),
            "--threads", "1", "--repeat", "3", "--precision", precision]


def training(a, precision, seed, folder):
    runs.run([*training_command(a, precision, seed), "--checkpoint-every", "0", "--verbose", "0", "--out", folder])
    lines = runs.metrics(folder)
    epochs = [line for line in lines if line["type"] == "epoch"]
    print(f"{precision}, seed {seed}: {epochs[-1]['val_accuracy']:.4f} after {len(epochs)} epochs", file=sys.stderr,
          flush=True)
    return {"precision": precision, "seed": seed, "validation_images": lines[-1]["training"]["validation images"],
            **{key: [epoch[key] for epoch in epochs] for key in ("loss", "accuracy", "val_loss", "val_accuracy")}}


def rounds_of_steps(a):
    """{network: [{precision: images/s, "density": {precision: part}} per round]}; the order is reversed after every
    round."""
    found = {}
    for network in STEPS:
        found[network[0]] = []
        for number in range(a.rounds):
            order = PRECISIONS if number % 2 == 0 else PRECISIONS[::-1]
            steps = {p: json.loads(runs.run([*step_command(*network, p), "--json", "-"])) for p in order}
            found[network[0]].append({**{p: steps[p]["images_per_second"]["median"] for p in PRECISIONS},
                                      "density": {p: steps[p]["density"] for p in PRECISIONS}})
    return found


def of(trainings, precision):
    """By seed."""
    return sorted((t for t in trainings if t["precision"] == precision), key=lambda t: t["seed"])


def shown(count):
    """Indices of the epochs that a table shows: the first, the last, and some between."""
    return sorted({round(i * (count - 1) / (SHOWN_EPOCHS - 1)) for i in range(SHOWN_EPOCHS)})


def curve_rows(trainings):
    def mean(precision, key, epoch):
        return statistics.mean(t[key][epoch] for t in of(trainings, precision))
    epochs = len(trainings[0]["loss"])
    return [[epoch + 1, *(f"{mean(p, key, epoch):.3f}" for key in ("loss", "val_loss", "val_accuracy")
                          for p in PRECISIONS)] for epoch in shown(epochs)]


def accuracy_sentence(trainings):
    """Accuracy after the last epoch: both precisions, and what they differ by at the same seed."""
    last = {p: [t["val_accuracy"][-1] for t in of(trainings, p)] for p in PRECISIONS}
    mean, low, high = intervals.over_seeds([b - f for f, b in zip(last["float"], last["bf16"], strict=True)])
    told = "; ".join(f"{p} {statistics.mean(last[p]):.4f} ({min(last[p]):.4f} to {max(last[p]):.4f})"
                     for p in PRECISIONS)
    holds = "holds 0: no difference is shown" if low <= 0 <= high else "does not hold 0: a difference is shown"
    return (f"Validation accuracy after the last epoch, mean (lowest to highest): {told}. At the same seed, bf16 less "
            f"float is {mean:+.4f}. Its interval of 95 % over seeds, {low:+.4f} to {high:+.4f}, {holds}.")


def step_rows(steps):
    rows = []
    for model, size, batch in STEPS:
        rounds = steps[model]
        rows.append([model, f"{size}x{size}", batch,
                     *(runs.spread_text([r[p] for r in rounds], ".1f") for p in PRECISIONS),
                     runs.spread_text([r["bf16"] / r["float"] for r in rounds], ".2f")])
    return rows


def density_text(steps):
    """How many values between layers are not zero, which is what kernels' speed depends on; empty where not known."""
    found = {model: rounds[0].get("density", {}).get("float") for model, rounds in steps.items()}
    told = [f"{density:.2f} ({model})" for model, density in found.items() if density is not None]
    return f"; the part of the values between layers that is not zero is {', '.join(told)}" if told else ""


def text_of(a, result):
    trainings = result["trainings"]
    text = (f"{origin.sentence(result['origin'])} {runs.sentence_start(a.about)}: `dogcat` at 64x64, seeds "
            f"{', '.join(map(str, sorted({t['seed'] for t in trainings})))}, "
            f"{trainings[0]['validation_images']:,} images validate. Each figure is the mean over seeds. The command "
            "is that of one training.\n\n" + runs.block(result["commands"]["training"], not_run="it takes minutes"))
    text += runs.table(["epoch", *(f"{what}, {p}" for what in ("loss", "validation loss", "validation accuracy")
                                   for p in PRECISIONS)], curve_rows(trainings))
    text += f"\n{accuracy_sentence(trainings)}\n\n"
    text += (f"Training steps on one thread, images/s, median (lowest to highest) of {len(result['steps'][STEPS[0][0]])} "
             "rounds in which the two precisions take turns. The ratio is taken within a round. Weights are untrained"
             f"{density_text(result['steps'])}.\n\n")
    text += runs.block(result["commands"]["step"], not_run="needs a CPU with 16-bit brain floats")
    return text + runs.table(["network", "images", "batch", *PRECISIONS, "bf16 by float"], step_rows(result["steps"]))


def main():
    p = runs.arguments(__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--seeds", type=lambda text: [int(n) for n in text.split(",")], default=[0, 1, 2, 3, 4])
    a = p.parse_args()
    if not 2 <= len(a.seeds) <= intervals.MOST:
        p.error(f"--seeds: must be 2 to {intervals.MOST}, which an interval is over")
    with tempfile.TemporaryDirectory() as folder:
        def run_folder(precision, seed):
            return os.path.join(folder, f"{precision}-{seed}")
        trainings = [training(a, precision, seed, run_folder(precision, seed))
                     for seed in a.seeds for precision in PRECISIONS]
        first = run_folder(PRECISIONS[0], a.seeds[0])
        environment, made = runs.machine_of(first), runs.origin_of(first)
    told = {"training": training_command(a, "bf16", a.seeds[0]), "step": step_command(*STEPS[0], "bf16")}
    result = {"commands": {name: runs.published(c, DIR=a.data) for name, c in told.items()}, "data": a.about,
              "origin": made, "environment": environment, "trainings": trainings, "steps": rounds_of_steps(a)}
    runs.write_json(os.path.join(a.out, "precisions.json"), PART, result)
    runs.publish(a.out, PART, text_of(a, result))


if __name__ == "__main__":
    main()

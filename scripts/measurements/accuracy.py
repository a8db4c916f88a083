"""Accuracy by batch and ranks, on images that no epoch was chosen by: the same training with several seeds.

scripts/tables accuracy OUT --data DIR [--image-size 64] [--epochs 20] [--at-once 1] [--target 0.6] runs it. DIR has a folder `train`
and one that is held out: `test`, else `val` or `validation`. A part of `train` is for validation, which chooses an
epoch; held-out images are looked at once, after the last one. Finished trainings are kept in OUT/accuracy and are not
run again. The result is OUT/accuracy.json and the tables in OUT/README.md.
"""
import concurrent.futures
import json
import math
import os
import statistics
import sys

sys.dont_write_bytecode = True
import intervals
import origin
import runs

PART = "accuracy"
VALIDATION = "0.125"  # of the images in `train`
HELD_OUT = ("test", "val", "validation")
DISTURBED = "disturbed"  # a file in the folder of a training whose seconds mean nothing
RUN = "runs/one"  # as the text names a training's folder


def words(text):
    return [int(word) for word in text.split(",")]


def held_out(data):
    found = [name for name in HELD_OUT if os.path.isdir(os.path.join(data, name))]
    if not found or not os.path.isdir(os.path.join(data, "train")):
        sys.exit(f"--data {data}: has no folder `train` beside one of {', '.join(HELD_OUT)}")
    return os.path.join(data, found[0])


def flags(a, batch, seed):
    return {"data": os.path.join(a.data, "train"), "validation-split": VALIDATION, "image-size": str(a.image_size),
            "batch": str(batch), "epochs": str(a.epochs), "seed": str(seed), "threads": "1", **getattr(a, "more", {})}


def command(a, batch, ranks, seed):
    given = [word for name, value in flags(a, batch, seed).items() for word in (f"--{name}", value)]
    return runs.on_ranks(ranks, *given, "--save-best")


def evaluation(a, weights):
    return ["./cputrain", "eval", "--weights", weights, "--data", held_out(a.data)]


def tested(a, folder, name):
    """Right answers among the held-out images, and how many there are."""
    found = json.loads(runs.run([*evaluation(a, os.path.join(folder, name)), "--threads", "1", "--json", "-"]))
    return {"correct": found["correct"], "images": found["images"]}


def same(found, value):
    """Whether a figure, word or path of config.json, where paths are absolute, is that of the command line."""
    try:
        return float(found) == float(value)
    except (TypeError, ValueError):
        return str(found) in (value, os.path.abspath(value))


def refuse_other_flags(folder, wanted):
    """A finished training stands for one with the same flags alone."""
    with open(os.path.join(folder, "config.json")) as f:
        there = json.load(f)
    for name, value in wanted.items():
        if not same(there.get(name), value):
            sys.exit(f"{folder} holds a training with --{name} {there.get(name)}, not {value}; name another OUT")


def training(a, batch, ranks, seed):
    """Figures of one training, which is run unless its folder has it finished."""
    folder = os.path.abspath(os.path.join(a.out, PART, f"b{batch}-np{ranks}-s{seed}"))
    if not runs.metrics(folder):
        runs.run([*command(a, batch, ranks, seed), "--checkpoint-every", "0", "--verbose", "0", "--overwrite", "--out",
                  folder])
        if getattr(a, "at_once", 1) > 1:
            with open(os.path.join(folder, DISTURBED), "w") as f:
                f.write("other trainings ran beside this one\n")
    refuse_other_flags(folder, flags(a, batch, seed))
    lines = runs.metrics(folder)
    epochs = [line for line in lines if line["type"] == "epoch"]
    last, best = (tested(a, folder, name) for name in ("weights.safetensors", "best.safetensors"))
    print(f"batch {batch}, {ranks} ranks, seed {seed}: {last['correct']} of {last['images']} after {len(epochs)} "
          "epochs", file=sys.stderr, flush=True)
    return {"batch": batch, "ranks": ranks, "seed": seed, "steps_per_epoch": epochs[0]["steps"],
            "alone": not os.path.exists(os.path.join(folder, DISTURBED)),
            "training_images": epochs[0]["images"], "origin": runs.origin_of(folder),
            "weights_hash": lines[-1]["weights_hash"], "last_epoch": last, "chosen_epoch": best,
            **{key: [epoch[key] for epoch in epochs]
               for key in ("seconds", "loss", "accuracy", "val_loss", "val_accuracy")}}


def part_right(tests):
    return [t["correct"] / t["images"] for t in tests]


def interval_text(mean, low, high, sign=""):
    return f"{mean:{sign}.3f} ({low:{sign}.3f} to {high:{sign}.3f})"


def accuracy_text(tests):
    return interval_text(*intervals.over_seeds_and_images(part_right(tests), tests[0]["images"]))


def of(trainings, batch, ranks):
    """By seed."""
    return sorted((t for t in trainings if (t["batch"], t["ranks"]) == (batch, ranks)), key=lambda t: t["seed"])


def row(trainings):
    """One batch on so many ranks: its trainings differ by seed."""
    first = trainings[0]
    return [first["batch"], first["ranks"], first["steps_per_epoch"] * len(first["loss"]),
            accuracy_text([t["last_epoch"] for t in trainings]),
            accuracy_text([t["chosen_epoch"] for t in trainings]),
            f"{sum(t['accuracy'][-1] for t in trainings) / len(trainings):.3f}"]


def seconds_to(t, target):
    """Seconds of training up to the first epoch with so much validation accuracy; infinite where none has it."""
    for epoch, right in enumerate(t["val_accuracy"], 1):
        if right >= target:
            return sum(t["seconds"][:epoch])
    return math.inf


def on_front(rows):
    """Whether each (seconds, accuracy) is on the Pareto front: no other is as good in both and better in one."""
    return [not any(other != row and other[0] <= row[0] and other[1] >= row[1] for other in rows) for row in rows]


def times_text(a, groups):
    """What accuracy costs in time. `groups`: the trainings of each row."""
    def median_of(trainings, target):
        found = [seconds_to(t, target) for t in trainings]
        middle = statistics.median_high(found)
        shown = f"{middle:.0f}" if middle < math.inf else "not reached"
        return f"{shown} ({sum(s < math.inf for s in found)} of {len(found)})"

    points = [(statistics.median_high(sum(t["seconds"]) for t in group),
               statistics.mean(part_right([t["last_epoch"] for t in group]))) for group in groups]
    rows = [[group[0]["batch"], group[0]["ranks"], f"{seconds:.0f}", f"{right:.3f}", median_of(group, a.target),
             "yes" if front else ""]
            for group, (seconds, right), front in zip(groups, points, on_front(points), strict=True)]
    return ("\nTime and accuracy. Seconds are of training without evaluation, the median of the seeds. In brackets: how "
            "many seeds reach the target. A row is on the Pareto front where no other has a better mean of one and is as "
            "good in the other. A difference within the intervals above decides nothing.\n\n"
            + runs.table(["batch", "CPUs", "seconds", "test accuracy, last epoch",
                          f"seconds to {a.target:g} of validation accuracy", "on the Pareto front"], rows))


def difference(these, others):
    """Mean and interval of what two groups of trainings with the same seeds differ by in the last epoch."""
    pairs = zip(*(part_right([t["last_epoch"] for t in group]) for group in (these, others)), strict=True)
    return intervals.over_seeds([a - b for a, b in pairs])


def differences(a, trainings):
    """(what, mean, low, high): each other number of ranks against the first, each other batch against the first."""
    found = []
    for batch in a.batches:
        for ranks in a.ranks[1:]:
            found.append((f"{ranks} by {a.ranks[0]} CPU{'s' if a.ranks[0] > 1 else ''}, batch {batch}",
                          *difference(of(trainings, batch, ranks), of(trainings, batch, a.ranks[0]))))
    for batch in a.batches[1:]:
        found.append((f"batch {batch} by {a.batches[0]}, {a.ranks[-1]} CPUs",
                      *difference(of(trainings, batch, a.ranks[-1]), of(trainings, a.batches[0], a.ranks[-1]))))
    return found


def meaning(a, found):
    """What the differences say of the claim in print that accuracy is constant over CPUs."""
    def shown(rows):
        return [what for what, _, low, high in rows if low > 0 or high < 0]
    of_ranks = [row for row in found if not row[0].startswith("batch")]
    of_batches = [row for row in found if row[0].startswith("batch")]
    text = ("The paper says that accuracy stays constant over CPUs, without figures. "
            + (f"Here it does as far as these intervals can tell: none of {len(of_ranks)} differences between numbers "
               "of CPUs is shown." if not shown(of_ranks) else
               f"Here a difference is shown for: {'; '.join(shown(of_ranks))}.") if of_ranks else "")
    if of_ranks:
        widest = max(high - low for _, _, low, high in of_ranks) / 2
        text += f" A difference below {widest:.3f} could hide in them."
    if of_batches:
        text += (" Batches differ in their steps, at equal epochs. "
                 + (f"A difference is shown for {'; '.join(shown(of_batches))}." if shown(of_batches) else
                    "No difference between them is shown."))
    if of_ranks and of_batches:
        most = [max(abs(mean) for _, mean, _, _ in rows) for rows in (of_batches, of_ranks)]
        text += f" The largest one is {most[0]:.3f} between batches, and {most[1]:.3f} between numbers of CPUs."
    return text + f" With {len(found)} intervals of 95 %, one in twenty is expected to miss."


def text_of(a, result):
    trainings = result["trainings"]
    images = trainings[0]["last_epoch"]["images"]
    made = {origin.sentence(t["origin"]) for t in trainings}
    text = (f"{' '.join(sorted(made))} {runs.sentence_start(a.about)}, "
            f"{a.image_size}x{a.image_size} pixels, {a.epochs} epochs, one "
            f"rank of one thread for each CPU. {trainings[0]['training_images']:,} images train, a part of `train` "
            f"that is kept validates after each epoch, and {images:,} other images test: no epoch was chosen by them. "
            "The chosen epoch is that of the lowest validation loss.\n\nEach figure is the mean of seeds "
            f"{', '.join(map(str, sorted(a.seeds)))}, with an interval of 95 % over seeds (Student's t) and images "
            "(Wilson). The two half-widths are joined as the root of the sum of their squares. The command is that of one "
            f"training, with batch {a.batches[-1]} and seed {max(a.seeds)}.\n\n"
            + runs.block(*result["commands"], not_run="it takes minutes"))
    text += runs.table(["batch", "CPUs", "steps", "test accuracy, last epoch", "test accuracy, chosen epoch",
                        "training accuracy, last epoch"],
                       [row(of(trainings, batch, ranks)) for batch in a.batches for ranks in a.ranks])
    if all(t["alone"] for t in trainings):
        text += times_text(a, [of(trainings, batch, ranks) for batch in a.batches for ranks in a.ranks])
    found = differences(a, trainings)
    if not found:
        return text
    text += ("\nDifferences of test accuracy in the last epoch between trainings of the same seed: mean and interval "
             "of 95 % over seeds (Student's t), for these test images.\n\n")
    text += runs.table(["what", "difference"], [[what, interval_text(*rest, sign="+")] for what, *rest in found])
    return f"{text}\n{meaning(a, found)}"


def main():
    p = runs.arguments(__doc__.splitlines()[0])
    p.add_argument("--batches", type=words, default=[128, 256, 512, 1024])
    p.add_argument("--ranks", type=words, default=[1, 2])
    p.add_argument("--seeds", type=words, default=[0, 1, 2, 3, 4])
    p.add_argument("--image-size", type=int, default=64)
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--at-once", type=int, default=1, help="trainings beside each other; accuracies stay the same [1]")
    p.add_argument("--target", type=float, default=0.6, help="validation accuracy whose time is told [0.6]")
    a = p.parse_args()
    if not 2 <= len(a.seeds) <= intervals.MOST:
        p.error(f"--seeds: must be 2 to {intervals.MOST}, which an interval is over")
    with concurrent.futures.ThreadPoolExecutor(a.at_once) as pool:
        trainings = list(pool.map(lambda of: training(a, *of),
                                  [(b, n, s) for s in a.seeds for b in a.batches for n in a.ranks]))
    trainings.sort(key=lambda t: (t["batch"], t["ranks"], t["seed"]))
    folder = os.path.join(a.out, PART, f"b{a.batches[0]}-np{a.ranks[0]}-s{a.seeds[0]}")
    last = [*command(a, a.batches[-1], a.ranks[-1], max(a.seeds)), "--out", RUN]
    written = [runs.published([word.replace(a.data, "DIR", 1) if word.startswith(a.data) else word for word in c])
               for c in (last, evaluation(a, f"{RUN}/weights.safetensors"))]
    result = {"commands": written, "data": a.about, "image_size": a.image_size, "epochs": a.epochs,
              "environment": runs.machine_of(folder), "trainings": trainings}
    runs.write_json(os.path.join(a.out, "accuracy.json"), PART, result)
    runs.publish(a.out, PART, text_of(a, result))


if __name__ == "__main__":
    main()

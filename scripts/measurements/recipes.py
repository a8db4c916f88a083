"""Whether a large batch learns as well with another recipe: the same steps, a scaled rate, a warm-up.

scripts/tables recipes OUT --data DIR runs it. At equal epochs a larger batch makes fewer steps; papers advise a higher
rate with a warm-up. Trainings are those of scripts/tables accuracy, on all CPUs, with other flags, and are kept in
OUT/recipes. The result is OUT/recipes.json and the table in OUT/README.md.
"""
import argparse
import os
import sys

sys.dont_write_bytecode = True
import accuracy
import intervals
import runs

PART = "recipes"
# By name, the flags beside those of the small batch; `steps`: as many epochs as make the small batch's steps.
RECIPES = [("as the small batch", {}, False), ("equal steps", {}, True),
           ("rate by batch (linear)", {"lr-scale": "linear"}, False),
           ("rate by the root of the batch", {"lr-scale": "sqrt"}, False),
           ("linear, five epochs of warm-up", {"lr-scale": "linear", "warmup-epochs": "5"}, False),
           ("equal steps, linear, five epochs of warm-up", {"lr-scale": "linear", "warmup-epochs": "5"}, True)]


def variants(a):
    """(name, arguments for accuracy.training, batch): the small batch, then each recipe of the large one.

    Epochs of the recipe of equal steps are None: trainings of the first two tell them.
    """
    def namespace(name, more, epochs):
        return argparse.Namespace(out=os.path.join(a.out, PART, name), data=a.data, image_size=a.image_size, epochs=epochs,
                                  more=more)
    yield f"batch {a.small}", namespace("small", {}, a.epochs), a.small
    for number, (name, more, steps) in enumerate(RECIPES):
        more = dict(more, **({"base-batch": str(a.small)} if "lr-scale" in more else {}))
        yield f"batch {a.large}, {name}", namespace(f"large-{number}", more, None if steps else a.epochs), a.large


def steps_of(training):
    return training["steps_per_epoch"] * len(training["loss"])


def equal_epochs(small, large):
    """The least epochs in which the large batch makes at least the steps of the small one.

    A batch that ends an epoch may be a small one, so the ratio of the batches does not tell.
    """
    return -(-steps_of(small) // large["steps_per_epoch"])


def train_all(a):
    found = []
    for name, these, batch in variants(a):
        if these.epochs is None:
            these.epochs = equal_epochs(found[0]["trainings"][0], found[1]["trainings"][0])
        found.append({"name": name, "epochs": these.epochs, "flags": these.more,
                      "trainings": [accuracy.training(these, batch, a.ranks, seed) for seed in a.seeds]})
    return found


def text_of(a, result):
    small = result["variants"][0]["trainings"]
    rows = []
    for variant in result["variants"]:
        trainings = variant["trainings"]
        first = trainings[0]
        mean, low, high = accuracy.difference(trainings, small) if trainings is not small else (0, 0, 0)
        rows.append([variant["name"], len(first["loss"]), steps_of(first),
                     accuracy.accuracy_text([t["last_epoch"] for t in trainings]),
                     "" if trainings is small else accuracy.interval_text(mean, low, high, sign="+"),
                     "" if trainings is small else
                     "no difference is shown" if low <= 0 <= high else "better" if low > 0 else "worse"])
    made = sorted({accuracy.origin.sentence(t["origin"]) for v in result["variants"] for t in v["trainings"]})
    return (f"{' '.join(made)} {runs.sentence_start(a.about)}, {a.image_size}x{a.image_size} pixels, on {a.ranks} "
            f"CPU{'s' if a.ranks > 1 else ''}. Test accuracy after the last epoch: mean over seeds "
            f"{', '.join(map(str, a.seeds))} with intervals of 95 % as in the table of accuracy. Differences are between "
            "trainings of the same seed.\n\n"
            + runs.table(["training", "epochs", "steps", "test accuracy", f"difference from batch {a.small}", ""], rows))


def main():
    p = runs.arguments(__doc__.splitlines()[0])
    p.add_argument("--small", type=int, default=128)
    p.add_argument("--large", type=int, default=1024)
    p.add_argument("--ranks", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--seeds", type=accuracy.words, default=[0, 1, 2, 3, 4])
    p.add_argument("--image-size", type=int, default=64)
    p.add_argument("--epochs", type=int, default=20)
    a = p.parse_args()
    if not 2 <= len(a.seeds) <= intervals.MOST:
        p.error(f"--seeds: must be 2 to {intervals.MOST}, which an interval is over")
    result = {"data": a.about, "image_size": a.image_size, "ranks": a.ranks, "variants": train_all(a)}
    runs.write_json(os.path.join(a.out, "recipes.json"), PART, result)
    runs.publish(a.out, PART, text_of(a, result))


if __name__ == "__main__":
    main()

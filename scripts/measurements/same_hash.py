"""One result at any number of ranks: hashes of --reproducible trainings, and losses of plain ones beside one rank's.

scripts/tables same-hash OUT --data DIR runs it. The result is OUT/same_hash.json and the table in OUT/README.md.
"""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
import origin
import runs

PART = "same-hash"
REPRODUCIBLE, PLAIN = [1, 3, 7], [1, 2, 3, 7]
SHOWN = 3  # ranks of the command in the text


def command(a, ranks, *flags):
    return runs.on_ranks(ranks, "--data", a.data, "--image-size", str(a.image_size), "--batch", str(a.batch), "--steps",
                         str(a.steps), "--threads", "1", "--log-every", "1", *flags)


def training(a, ranks, folder, *flags):
    out = os.path.join(folder, f"np{ranks}" + "".join(flags))
    runs.run([*command(a, ranks, *flags), "--verbose", "0", "--out", out])
    lines = runs.metrics(out)
    return {"ranks": ranks, "reproducible": "--reproducible" in flags, "weights_hash": lines[-1]["weights_hash"],
            "losses": [line["loss"] for line in lines if line["type"] == "step"]}


def difference(losses, expected):
    """The largest of any step, relative to the loss of one rank."""
    return max(abs(loss - one) / abs(one) for loss, one in zip(losses, expected, strict=True))


def text_of(a, result):
    reproducible = [t for t in result["trainings"] if t["reproducible"]]
    plain = [t for t in result["trainings"] if not t["reproducible"]]
    same = len({t["weights_hash"] for t in reproducible}) == 1
    text = (f"{origin.sentence(result['origin'])} {runs.sentence_start(a.about)}, {a.image_size}x{a.image_size} pixels, "
            f"batch {a.batch}, {a.steps} steps, seed 0. With "
            f"`--reproducible` the weights are {'the same, bit for bit' if same else 'not the same'}. The command is "
            f"that of {SHOWN} ranks.\n\n"
            + runs.block(result["commands"]["reproducible"]))
    text += runs.table(["ranks", "`weights_hash` of the summary line", "loss of the last step"],
                       [[t["ranks"], f"`{t['weights_hash']}`", f"{t['losses'][-1]:.9g}"] for t in reproducible])
    text += ("\nWithout the flag each training takes the convolution algorithms that measured fastest, and sums are "
             "added in another order. The last column is the largest difference of a step's loss from "
             "that of one rank, as a part of it.\n\n" + runs.block(result["commands"]["plain"]))
    return text + runs.table(["ranks", "loss of the last step", "largest difference"],
                             [[t["ranks"], f"{t['losses'][-1]:.9g}",
                               f"{difference(t['losses'], plain[0]['losses']):.1e}" if t is not plain[0] else ""]
                              for t in plain])


def main():
    p = runs.arguments(__doc__.splitlines()[0])
    p.add_argument("--image-size", type=int, default=96)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--steps", type=int, default=6)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trainings = [training(a, ranks, folder, "--reproducible") for ranks in REPRODUCIBLE]
        trainings += [training(a, ranks, folder) for ranks in PLAIN]
        environment, made = (of(os.path.join(folder, "np1")) for of in (runs.machine_of, runs.origin_of))
    sample = {name: runs.published(command(a, SHOWN, *flags), DIR=a.data)
              for name, flags in (("reproducible", ["--reproducible"]), ("plain", []))}
    result = {"commands": sample, "data": a.about, "origin": made, "environment": environment, "trainings": trainings}
    runs.write_json(os.path.join(a.out, "same_hash.json"), PART, result)
    runs.publish(a.out, PART, text_of(a, result))


if __name__ == "__main__":
    main()

"""Sums of gradients, decoding and a training step, each beside its limit, in rounds over all of them.

scripts/tables benchmarks OUT --data DIR [--rounds 7] runs it, best where nothing else works: a round takes a minute
on two cores. The result is OUT/benchmarks.json and the table in OUT/README.md.
"""
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
import origin
import runs

PART = "benchmarks"
WEIGHTS = "runs/two-epochs/weights.safetensors"  # as the tables name them


def train_command(a, out):
    return ["./cputrain", "--data", a.data, "--epochs", "2", "--out", out]


def commands(a, weights):
    """By name, without where the result goes."""
    found = {f"allreduce {n}": runs.on_ranks(n, "bench", "allreduce") for n in a.ranks}
    found["input"] = ["./cputrain", "bench", "input", "--data", a.data, "--threads", "1"]
    step = ["./cputrain", "bench", "step", "--data", a.data, "--threads", "1"]
    for precision in a.precisions:
        narrow = ["--precision", precision] if precision != "float" else []
        found[f"step, trained, {precision}"] = [*step, "--weights", weights, *narrow]
        found[f"step, untrained, {precision}"] = [*step, *narrow]
    return found


def kept(result):
    """What a table may want of a benchmark's object."""
    return {key: value for key, value in result.items() if key not in ("data", "layers", "compression")}


def measure(a, weights):
    """{name: [object per round]}"""
    measured = {name: [] for name in commands(a, weights)}
    for number in range(a.rounds):
        for name, command in commands(a, weights).items():
            measured[name].append(kept(json.loads(runs.run([*command, "--json", "-"]))))
        print(f"round {number + 1} of {a.rounds}", file=sys.stderr, flush=True)
    return measured


def milliseconds(result, name):
    seconds = next(s["seconds"] for s in result["algorithms"] if s["name"] == name)
    return 1e3 * seconds["median"]


def allreduce_row(ranks, results):
    ours, mpi = ([milliseconds(r, name) for r in results] for name in ("shm", "mpi"))
    return [ranks, runs.spread_text(ours, ".1f"), runs.spread_text(mpi, ".1f"),
            runs.spread_text([theirs / own for own, theirs in zip(ours, mpi)], ".1f")]


def stage_row(results, index):
    stages = [r["stages"][index] for r in results]
    return [stages[0]["name"], runs.spread_text([s["images_per_second"]["median"] for s in stages], ",.0f"),
            stages[0]["limit"]["name"], runs.spread_text([s["fraction_of_limit"]["median"] for s in stages], ".2f")]


def step_row(weights, precision, results):
    return [weights, precision, f"{results[0]['density']:.2f}",
            runs.spread_text([r["images_per_second"]["median"] for r in results], ".1f"),
            runs.spread_text([r["gflops"] for r in results], ".0f"),
            runs.spread_text([r["limit"]["fma_gflops"] for r in results], ".0f"),
            runs.spread_text([r["fraction_of_peak"] for r in results], ".2f")]


def text_of(a, result):
    measured, told = result["rounds"], result["commands"]
    megabytes = measured[f"allreduce {a.ranks[0]}"][0]["bytes"] / 1e6
    text = (f"{origin.sentence(result['origin'])} Each figure is the median (lowest to highest) of "
            f"{a.rounds} rounds. A ratio is taken within a round.\n\n"
            f"Sums of gradients, {megabytes:.1f} MB from each rank, in milliseconds. `shm` is the program's own way "
            "inside one node, `mpi` is Open MPI's allreduce as it was launched.\n\n")
    text += "".join(runs.block(told[f"allreduce {n}"]) for n in a.ranks)
    text += runs.table(["ranks", "`shm`, ms", "`mpi`, ms", "`mpi` by `shm`"],
                       [allreduce_row(n, measured[f"allreduce {n}"]) for n in a.ranks])
    text += ("\nThe input path, one thread, beside the limit that is measured in the same run. Batches from the cache "
             "point to images and copy none.\n\n")
    text += runs.block(told["input"])
    text += runs.table(["stage", "images/s", "limit", "part of the limit"],
                       [stage_row(measured["input"], i) for i in range(len(measured["input"][0]["stages"]))])
    step = measured["step, trained, float"][0]
    size = f"{step['image_size']}x{step['image_size']}"
    text += (f"\nTraining steps of {step['model']} at {size}, batch {step['batch']}, one thread. Kernels skip zeros, so "
             "a speed is of its weights: after two epochs, or untrained. Density is the part of the values between "
             "layers that is not zero. GFLOP/s count direct convolution. Multiplications by zero are left out, so they may pass "
             "the peak of multiply-adds, which is measured in the same run.\n\n")
    text += runs.block(told["train"], told["step, trained, float"])
    return text + runs.table(["weights", "precision", "density", "images/s", "GFLOP/s", "peak of multiply-adds, GFLOP/s",
                              "of the peak"],
                             [step_row(weights, precision, measured[f"step, {weights}, {precision}"])
                              for precision in a.precisions for weights in ("trained", "untrained")])


def main():
    p = runs.arguments(__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--ranks", type=lambda text: [int(n) for n in text.split(",")], default=[2, 4, 8])
    a = p.parse_args()
    a.precisions = runs.precisions()
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        runs.run([*train_command(a, run), "--verbose", "0"])
        measured = measure(a, os.path.join(run, "weights.safetensors"))
        environment, made = runs.machine_of(run), runs.origin_of(run)
    told = {"train": train_command(a, os.path.dirname(WEIGHTS)), **commands(a, WEIGHTS)}
    result = {"commands": {name: runs.published(c, DIR=a.data) for name, c in told.items()}, "images": a.about,
              "origin": made, "environment": environment, "rounds": measured}
    runs.write_json(os.path.join(a.out, "benchmarks.json"), PART, result)
    runs.publish(a.out, PART, text_of(a, result))


if __name__ == "__main__":
    main()

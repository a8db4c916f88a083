#!/usr/bin/env python3
"""How far `simulate --platform here` is from `sweep`: both measure this machine, in turn, and cells are compared.

    tests/bench/simulation_accuracy.py [--np 1,2] [--batch 128,256] [--rounds 5] [--measure-seconds 60] [-- FLAGS]

A machine whose host has other work changes its speed by the minute, and a sweep takes several. So a round has one
short sweep between two simulations, and ratios are taken within it, to their mean. Both are printed: where they differ
much, the machine moved meanwhile, and the round says little. A simulation serves the rounds before and after it.
FLAGS may be what `simulate` and `sweep` have in common (--model, --threads, ...), but not --steps or --repeat. Run it
on a quiet machine; a round takes three to seven minutes on two cores.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("CPUTRAIN", os.path.join(ROOT, "cputrain"))


def run(*words):
    """Standard output of ./cputrain with these words."""
    process = subprocess.run([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.returncode:
        sys.exit(f"{words[0]} failed:\n{process.stderr[-2000:]}")
    return process.stdout


def seconds(table):
    """Seconds per epoch by cell, each named by its place in the grid."""
    found = {}
    for cell in table["cells"]:
        name = f"{cell['ranks']} x {cell['threads']} CPUs, batch {cell['batch']}"
        if not cell["seconds_per_epoch"]:
            sys.exit(f"{name}: no time ({cell.get('reason')})")
        if name in found:
            sys.exit(f"{name}: twice in the grid; leave one out")
        found[name] = cell["seconds_per_epoch"]
    return found


def simulated(grid, flags, least):
    return seconds(json.loads(run("simulate", *grid, *flags, "--platform", "here", "--measure-seconds", str(least),
                                  "--json", "-")))


def measured(grid, flags, steps):
    with tempfile.TemporaryDirectory() as folder:
        run("sweep", *grid, *flags, "--repeat", "1", "--steps", str(steps), "--out", os.path.join(folder, "sweep"))
        with open(os.path.join(folder, "sweep", "cells.json")) as file:
            return seconds(json.load(file))


def text_of(errors):
    return f"{statistics.median(errors):+.1%} ({min(errors):+.1%} to {max(errors):+.1%})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--np", default="1,2", help="CPUs [1,2]")
    parser.add_argument("--batch", default="128,256", help="global batches [128,256]")
    parser.add_argument("--steps", type=int, default=4, help="measured in each cell of a round [4]")
    parser.add_argument("--measure-seconds", type=int, default=60, help="of a simulation, at least [60]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("flags", nargs="*", help="of both commands, after --")
    args = parser.parse_args()
    if args.rounds < 1 or args.steps < 1:
        parser.error("it takes a round and a step")

    grid = ["--np", args.np, "--batch", args.batch]
    errors = {}
    before = simulated(grid, args.flags, args.measure_seconds)
    for number in range(args.rounds):
        real = measured(grid, args.flags, args.steps)
        after = simulated(grid, args.flags, args.measure_seconds)
        if real.keys() != before.keys() or real.keys() != after.keys():
            sys.exit(f"the sweep has {', '.join(real)}; the simulation {', '.join(before)}")
        line = []
        for cell in real:
            error = (before[cell] + after[cell]) / 2 / real[cell] - 1
            errors.setdefault(cell, []).append(error)
            line.append(f"{cell}: {real[cell]:.1f} s, simulated {before[cell]:.1f} and {after[cell]:.1f}: {error:+.1%}")
        print(f"round {number + 1}: " + "; ".join(line), flush=True)
        before = after
    for cell, of_cell in errors.items():
        print(f"{cell}: simulated beside measured {text_of(of_cell)}, median of {args.rounds} rounds (least to most)")


if __name__ == "__main__":
    main()

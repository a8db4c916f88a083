#!/usr/bin/env python3
"""How much of several cores a training step uses: one process with a thread on each core, beside what one thread
makes on each of these cores, alone and all at once, in turn, in one run of this script.

    tests/bench/thread_scaling.py [--cpus 0,1] [--rounds 5] [-- FLAGS OF bench step]

The cores of a virtual machine differ by what their neighbours on the host do, and so does "one core" from run to run;
hence each core is measured, bound to it. Ratios are taken within a round. Run it on a quiet machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def start(cpus, flags):
    """bench step with a thread on each of these CPUs."""
    command = [os.path.join(ROOT, "cputrain"), "bench", "step", "--threads", str(len(cpus)), *flags, "--json", "-"]
    return subprocess.Popen(["taskset", "-c", ",".join(map(str, cpus)), *command], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def rate(process):
    """Its images/s (median)."""
    out, errors = process.communicate()
    if process.returncode:
        sys.exit(errors)
    return json.loads(out)["images_per_second"]["median"]


def text_of(ratios):
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpus", type=lambda text: [int(cpu) for cpu in text.split(",")],
                        default=sorted(os.sched_getaffinity(0)),
                        help="one hardware thread of each core [every one that may be used, siblings too]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("flags", nargs="*", help="of bench step, after --")
    args = parser.parse_args()
    if len(args.cpus) < 2 or args.rounds < 1:
        parser.error("it takes two cores and a round")

    alone, beside = [], []
    for number in range(args.rounds):
        together = rate(start(args.cpus, args.flags))
        one = [rate(start([cpu], args.flags)) for cpu in args.cpus]
        processes = [start([cpu], args.flags) for cpu in args.cpus]
        at_once = [rate(process) for process in processes]
        alone.append(together / sum(one))
        beside.append(together / sum(at_once))
        print(f"round {number + 1}: {len(args.cpus)} threads {together:.1f} images/s; one thread on each core alone "
              f"{', '.join(f'{r:.1f}' for r in one)}: {alone[-1]:.3f}; at once "
              f"{', '.join(f'{r:.1f}' for r in at_once)}: {beside[-1]:.3f}", flush=True)
    print(f"of the sum of one thread on each core alone {text_of(alone)}, at once {text_of(beside)}; medians of "
          f"{args.rounds} rounds (least to most)")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Whether a build trains faster than another: steps of both in short alternating rounds, on the same CPUs.

    tests/bench/two_builds.py OLD NEW [--rounds 7] [--threads 1] [--ranks 1] [-- FLAGS OF bench step]

OLD and NEW are two programs, such as ./cputrain of two commits. The order is reversed after every round, and ratios are
taken within a round, so that a slow minute meets both. Printed are medians of images/s and of CPU seconds per image,
and the median of NEW by OLD with its interval of 95 % (scripts/measurements/intervals.py). Where that holds 1, the
verdict is "no difference". The machine's limits are measured in the same runs. Other work disturbs CPU time less than
images/s.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "scripts", folder) for folder in ("measurements", "peers")]
import intervals
from running import cpus_for

FIGURES = (("images_per_second", "images/s", 1, "more"), ("cpu_seconds_per_image", "ms of CPU per image", 1e3, "less"))


def step(program, args):
    """What bench step measured."""
    cpus = cpus_for(args.threads * args.ranks)
    command = ["taskset", "-c", ",".join(map(str, cpus))]
    if args.ranks > 1:
        command += [*args.mpirun.split(), "-np", str(args.ranks)]
    command += [program, "bench", "step", "--threads", str(args.threads), *args.flags, "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{program}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def verdict(ratios, better):
    """The interval in words; None where there are too few rounds for one."""
    interval = intervals.of_median(ratios)
    if not interval:
        return f"too few rounds for an interval of 95 % (it takes {intervals.LEAST_OF_MEDIAN})"
    low, high = interval
    if low <= 1 <= high:
        return f"{low:.3f} to {high:.3f}: no difference"
    return f"{low:.3f} to {high:.3f}: {'better' if (low > 1) == (better == 'more') else 'worse'}"


def report(rounds):
    for key, name, scale, better in FIGURES:
        old, new = ([scale * r[i][key]["median"] for r in rounds] for i in (0, 1))
        ratios = [b / a for a, b in zip(old, new)]
        print(f"{name}: old {statistics.median(old):.2f}, new {statistics.median(new):.2f}; new by old "
              f"{statistics.median(ratios):.3f} ({verdict(ratios, better)})")
    limits = [r["limit"] for pair in rounds for r in pair]
    print(f"limits: {max(l['fma_gflops'] for l in limits):.0f} GFLOP/s of multiply-adds, "
          f"{max(l['triad_gbs'] for l in limits):.1f} GB/s of triad")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old"), parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1, help="of each rank [1]")
    parser.add_argument("--ranks", type=int, default=1, help="[1]")
    parser.add_argument("--mpirun", default="mpirun", help="how ranks are started [mpirun]")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:end], argparse.Namespace(flags=words[end + 1:]))
    if min(args.rounds, args.threads, args.ranks) < 1:
        parser.error("--rounds, --threads and --ranks are numbers from 1")
    if args.threads * args.ranks > len(os.sched_getaffinity(0)):
        parser.error(f"--threads and --ranks: there are {len(os.sched_getaffinity(0))} CPUs")
    rounds = []
    for number in range(args.rounds):
        order = (args.old, args.new) if number % 2 == 0 else (args.new, args.old)
        found = [step(program, args) for program in order]
        rounds.append(found if number % 2 == 0 else found[::-1])
        old, new = (r["images_per_second"]["median"] for r in rounds[-1])
        print(f"round {number + 1}: old {old:.1f} images/s, new {new:.1f}", flush=True)
    report(rounds)


if __name__ == "__main__":
    main()

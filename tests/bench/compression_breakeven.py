#!/usr/bin/env python3
"""What a step's exchange takes over two hosts with and without compression, by the rate of their link, beside
the rate below which `bench allreduce` says that each way pays.

    tests/bench/compression_breakeven.py [--rates 1gbit,2gbit,4gbit,8gbit,16gbit] [--steps 12] [--image-size 128]

The hosts are those of scripts/two_hosts, on this machine, one rank on each. Run it on a quiet machine. Exits
with 77 where there can be no such hosts.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("CPUTRAIN", os.path.join(ROOT, "cputrain"))
WAYS = ["none", "fp16", "bf16", "topk", "powersgd"]


def on_two_hosts(rate, *words):
    done = subprocess.run([os.path.join(ROOT, "scripts", "two_hosts"), "--ranks", "1", "--rate", rate,
                           PROGRAM, *words, "--threads", "1"],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        sys.exit(77 if done.returncode == 77 else 1)
    return done.stdout


def exchange_seconds(rate, way, a):
    """Of a step: what the epoch's budget calls exposed communication. The first step warms up unseen."""
    with tempfile.TemporaryDirectory() as folder:
        on_two_hosts(rate, "train", "--image-size", str(a.image_size), "--data", "synthetic:60",
                     "--batch", "2", "--steps", str(a.steps), "--limit-val", "0", "--optimizer", "sgd",
                     "--lr", "0.001", "--allreduce", "ring", "--compress", way, "--out", folder,
                     "--overwrite", "--log-every", "0", "--verbose", "0")
        with open(os.path.join(folder, "metrics.jsonl")) as lines:
            epochs = [m for m in map(json.loads, lines) if m["type"] == "epoch"]
    return (sum(e["budget"]["allreduce_exposed"] for e in epochs)
            / sum(e["steps"] for e in epochs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", default="1gbit,2gbit,4gbit,8gbit,16gbit")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--image-size", type=int, default=128)
    a = parser.parse_args()
    said = json.loads(on_two_hosts("10gbit", "bench", "allreduce", "--json", "-"))["compression"]
    print("bench allreduce says that it pays below, in Gbit/s: "
          + ", ".join(f"{c['name']} {c['breakeven_gbit_s']:.1f}" for c in said))
    print(f"\nms a step that the exchange takes\n{'link':<10}" + "".join(f"{way:>12}" for way in WAYS))
    for rate in a.rates.split(","):
        times = [exchange_seconds(rate, way, a) for way in WAYS]
        print(f"{rate:<10}" + "".join(f"{1e3 * t:>11.1f}{'*' if t < times[0] else ' '}" for t in times),
              flush=True)
    print("* less than without compression")
    return 0


if __name__ == "__main__":
    sys.exit(main())

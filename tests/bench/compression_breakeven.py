#!/usr/bin/env python3
"""What a step's exchange takes over two hosts with and without compression, by the rate of their link, beside
the rate below which `bench allreduce` says that each way pays.

    tests/bench/compression_breakeven.py [--rates 2,4,6,8,12,16] [--steps 10] [--rounds 3]

The hosts are those of scripts/two_hosts, on this machine, one rank on each; rates are in Gbit/s. Run it on a quiet
machine. Exits with 77 where there can be no such hosts. Where a way stops to pay is read off between two rates: time
is taken to be linear in 1 / rate. The last column is what the link really carried without compression; above that,
nothing can be said.
"""
import argparse
import itertools
import json
import os
import statistics
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
    """Seconds of a step: what the epoch's budget calls exposed communication. The first step warms up unseen."""
    with tempfile.TemporaryDirectory() as folder:
        on_two_hosts(rate, "train", "--image-size", "256", "--data", "synthetic:60", "--batch", "2", "--steps",
                     str(a.steps), "--limit-val", "0", "--optimizer", "sgd", "--lr", "0.001", "--allreduce", "ring",
                     "--compress", way, "--out", folder, "--overwrite", "--log-every", "0", "--verbose", "0")
        with open(os.path.join(folder, "metrics.jsonl")) as lines:
            epochs = [m for m in map(json.loads, lines) if m["type"] == "epoch"]
    return (sum(e["budget"]["allreduce_exposed"] for e in epochs)
            / sum(e["steps"] for e in epochs))


def crossing(rates, gains):
    """The rate where the gain becomes 0."""
    for (slow, fast), (gain, loss) in zip(itertools.pairwise(rates), itertools.pairwise(gains)):
        if gain > 0 >= loss:
            return f"{1 / (1 / slow + (1 / fast - 1 / slow) * gain / (gain - loss)):.1f}"
    return f"above {rates[-1]:g}" if gains[-1] > 0 else f"below {rates[0]:g}"


def spread(seconds):
    return f"{1e3 * statistics.median(seconds):.0f} ({1e3 * min(seconds):.0f}-{1e3 * max(seconds):.0f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", default="2,4,6,8,12,16")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    a = parser.parse_args()
    rates = [float(rate) for rate in a.rates.split(",")]
    said = [json.loads(on_two_hosts("10gbit", "bench", "allreduce", "--json", "-")) for _ in range(a.rounds)]
    print("ms a step that the exchange takes: median (min-max)")
    print(f"{'Gbit/s':<8}" + "".join(f"{way:>16}" for way in WAYS) + f"{'carried':>10}")
    gains = {way: [] for way in WAYS[1:]}
    for rate in rates:
        times = {way: [] for way in WAYS}
        for _ in range(a.rounds):
            for way in WAYS:
                times[way].append(exchange_seconds(f"{rate:g}gbit", way, a))
        none = statistics.median(times["none"])
        for way in WAYS[1:]:
            gains[way].append(none - statistics.median(times[way]))
        print(f"{rate:<8g}" + "".join(f"{spread(times[way]):>16}" for way in WAYS)
              + f"{8e-9 * said[0]['bytes'] / none:>10.1f}", flush=True)
    print(f"\n{'pays below, Gbit/s':<22}{'bench allreduce says':<34}{'measured':<12}")
    for i, way in enumerate(WAYS[1:]):
        told = [run["compression"][i]["breakeven_gbit_s"] for run in said]
        told = ", ".join(rate if rate == "any" else f"{rate:.1f}" for rate in told)
        print(f"{said[0]['compression'][i]['name']:<22}{told:<34}{crossing(rates, gains[way]):<12}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

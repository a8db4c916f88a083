#!/usr/bin/env python3
"""Ways to sum gradients over two hosts, by the rate of the network between them, and what `auto` chose.

    tests/bench/network_allreduce.py [--bytes 52871940] [--ranks 2] [--rates 1gbit,none] [--rounds 3]

The hosts are those of scripts/two_hosts, on this machine, with some ranks on each; `none` leaves their links
as they are. Run it on a quiet machine. Exits with 1 when the choice of `auto` is more than --slack (0.1: a
tenth) slower than the best, with 77 where there can be no such hosts.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def measure(a, rate):
    """What one `bench allreduce` prints, as an object."""
    hosts = [os.path.join(ROOT, "scripts", "two_hosts"), "--ranks", str(a.ranks),
             "--mpirun", "--mca btl tcp,vader,self"]  # inside a host shared memory, as it would be
    if rate != "none":
        hosts += ["--rate", rate]
    program = os.environ.get("CPUTRAIN", os.path.join(ROOT, "cputrain"))
    done = subprocess.run([*hosts, program, "bench", "allreduce", "--bytes", str(a.bytes), "--json", "-",
                           "--threads", "1"],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        sys.exit(77 if done.returncode == 77 else 1)
    return json.loads(done.stdout)


def seconds_at(rate, count):
    """How long a link of that rate takes for so many bytes; nothing for unlimited ones."""
    match = re.fullmatch(r"([0-9.]+)([kmgt]?)bit", rate)
    if not match:
        return None
    return count * 8 / (float(match[1]) * 1000 ** " kmgt".index(match[2] or " "))


def compare(a, rate):
    """Prints the table of one rate; whether every round's choice was good enough."""
    rounds = [measure(a, rate) for _ in range(a.rounds)]
    figures = {}
    for result in rounds:
        for algorithm in result["algorithms"]:
            if algorithm["seconds"]:  # none for what needs one host
                figures.setdefault(algorithm["name"], []).append(algorithm["seconds"]["median"])
    medians = {name: statistics.median(values) for name, values in figures.items()}
    ranked = sorted(medians, key=medians.get)
    best = medians[ranked[0]]
    least = seconds_at(rate, a.bytes)
    print(f"\n{a.bytes:,} bytes, 2 hosts x {a.ranks} ranks, "
          + (f"links of {rate}; a host has to send its sum once: {least * 1e3:.1f} ms at least" if least
             else "links as they are"))
    for name in ranked:
        print(f"  {name:<34}{medians[name] * 1e3:10.1f} ms ({min(figures[name]) * 1e3:.1f} to "
              f"{max(figures[name]) * 1e3:.1f}){medians[name] / best:8.2f} x the best")
    chosen = [result["auto"] for result in rounds]
    worst = max(medians[name] for name in chosen) / best - 1
    print(f"  auto chose {', '.join(chosen)}: {worst:.0%} slower than the best, {ranked[0]}, at most")
    return worst <= a.slack


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=52871940, help="default: dogcat's gradient")
    parser.add_argument("--ranks", type=int, default=2, help="on each host")
    parser.add_argument("--rates", default="1gbit,none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slack", type=float, default=0.1)
    a = parser.parse_args()
    good = [compare(a, rate) for rate in a.rates.split(",")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

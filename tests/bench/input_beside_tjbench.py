#!/usr/bin/env python3
"""Decoding of cputrain beside tjbench, the benchmark that libjpeg-turbo comes with, on one core.

    tests/bench/input_beside_tjbench.py PHOTOGRAPH... [--rounds 3] [--cpu 0]

tjbench (Debian: libjpeg-turbo-progs) decodes one file again and again, which its branches soon know by heart, so
`cputrain bench input` gets one file at a time as well. Both run in turn on the same core, decompress to RGB with
accurate DCT and smooth upsampling, from memory. Run it on a quiet machine.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def output(command, cpu):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def theirs(photograph, cpu):
    """Megapixels/s."""
    text = output(["tjbench", photograph, "-rgb", "-benchtime", "0.3", "-warmup", "0.1", "-nowrite"], cpu)
    found = re.search(r"Decompress.*?Throughput:\s+([0-9.]+) Megapixels/sec", text, re.S)
    return float(found[1]) if found else sys.exit(f"tjbench {photograph} said:\n{text}")


def ours(photograph, folder, cpu):
    """Megapixels/s, and the fraction of TurboJPEG in the same process."""
    with open(os.path.join(folder, "list.tsv"), "w") as f:
        f.write(f"{photograph}\ta\n{photograph}\tb\n")
    result = json.loads(output([os.path.join(ROOT, "cputrain"), "bench", "input", "--data", f.name, "--repeat", "3",
                                "--validation-split", "0", "--threads", "1", "--json", "-"], cpu))
    decode = result["stages"][0]
    return decode["megapixels_per_second_per_thread"], decode["fraction_of_limit"]["median"]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("photographs", nargs="+", help="JPEG files")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)))
    a = p.parse_args()
    if not shutil.which("tjbench"):
        sys.exit("tjbench is not installed; on Debian and Ubuntu: apt-get install libjpeg-turbo-progs")
    ratios, inside, rates = [], [], {"cputrain": [], "tjbench": []}
    with tempfile.TemporaryDirectory() as folder:
        for number, photograph in enumerate(a.photographs):
            own = os.path.join(folder, "photograph.jpg")  # tjbench knows JPEG by its name
            shutil.copy(photograph, own)
            of_rounds = []
            for round_ in range(a.rounds):
                if (number + round_) % 2:
                    their, (our, fraction) = theirs(own, a.cpu), ours(own, folder, a.cpu)
                else:
                    (our, fraction), their = ours(own, folder, a.cpu), theirs(own, a.cpu)
                of_rounds.append(our / their)
                inside.append(fraction)
                rates["cputrain"].append(our), rates["tjbench"].append(their)
            ratios.append(statistics.median(of_rounds))
    for name, values in rates.items():
        print(f"{name:<10}{statistics.median(values):8.0f} Mpixel/s (median of {len(values)}; {min(values):.0f} to "
              f"{max(values):.0f})")
    print(f"cputrain / tjbench: {statistics.median(ratios):.3f} (median of {len(ratios)} photographs; "
          f"{min(ratios):.3f} to {max(ratios):.3f}); beside TurboJPEG in its own process: "
          f"{statistics.median(inside):.3f}")


if __name__ == "__main__":
    main()

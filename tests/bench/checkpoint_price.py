#!/usr/bin/env python3
"""What checkpoints cost a training: the same steps with and without them in turn, in one run of this script.

    tests/bench/checkpoint_price.py [--rounds 7] [--steps 40] [--every 10] [-- FLAGS OF train]

Of each round: seconds a step with checkpoints every so many steps by those without, and what the training says that
it waited for them. Beside it the least that the bytes can cost, measured in the same rounds: copying them in memory,
and writing them to this disk with fsync. Run it on a quiet machine.
"""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def train(folder, steps, every, flags):
    """Seconds of all steps but the first two, and the part of the time (%) that the training waited for checkpoints."""
    command = [os.path.join(ROOT, "cputrain"), "--out", folder, "--steps", str(steps), "--checkpoint-every", str(every),
               "--limit-val", "0", "--log-every", "1", "--no-winograd", "--no-skip-zeros", *flags]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    whole = time.monotonic() - began
    with open(folder + "/metrics.jsonl") as f:
        lines = [json.loads(line) for line in f]
    epochs = sum(m["seconds"] for m in lines if m["type"] == "epoch")
    waited = re.search(r"for ([\d.e-]+) % of its time", done.stderr)
    return epochs / steps, float(waited[1]) if waited else 0, whole


def limits(folder, size):
    """Seconds to copy so many bytes in memory, and to write them to the folder's disk."""
    data = bytearray(os.urandom(1 << 20) * (size >> 20) or b"x")
    began = time.monotonic()
    copy = bytes(data)
    copied = time.monotonic() - began
    began = time.monotonic()
    with open(folder + "/limit", "wb") as f:
        f.write(copy)
        f.flush()
        os.fsync(f.fileno())
    return copied, time.monotonic() - began


def text_of(values, form="{:.3f}"):
    return " ".join((form.format(statistics.median(values)),
                     f"({form.format(min(values))} to {form.format(max(values))})"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("flags", nargs="*", default=["--data", "synthetic:320", "--batch", "32", "--image-size", "128"])
    args = parser.parse_args()
    ratios, waits, steps, copies, writes, size = [], [], [], [], [], 0
    for number in range(args.rounds):
        with tempfile.TemporaryDirectory(dir=os.getcwd(), prefix=".price-") as folder:
            order = [0, args.every] if number % 2 else [args.every, 0]
            seconds = {every: train(f"{folder}/run-{every}", args.steps, every, args.flags) for every in order}
            files = glob.glob(f"{folder}/run-{args.every}/ckpt-*/*")
            size = sum(map(os.path.getsize, files))
            copied, written = limits(folder, size)
        ratios.append(seconds[args.every][0] / seconds[0][0])
        waits.append(seconds[args.every][1])
        steps.append(seconds[0][0])
        copies.append(copied)
        writes.append(written)
        print(f"round {number + 1}: {ratios[-1]:.3f}", flush=True)
    print(f"A checkpoint has {size / 1e6:.1f} MB, one every {args.every} steps of {text_of(steps)} s")
    print(f"Seconds of a step with checkpoints by those without: {text_of(ratios)}")
    print(f"The training waited for them {text_of(waits, '{:.2f}')} % of its time")
    print(f"Copying that many bytes takes {text_of(copies)} s, writing them to this disk {text_of(writes)} s")


if __name__ == "__main__":
    main()

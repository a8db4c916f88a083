"""Speeds that README.md quotes are those of their raw data, and say their kernels where these are not today's."""
import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "measurements"))
import origin
import plot

SPEED = re.compile(r"\d[\d,.]* (?:images/s|images a second|ms|s|GFLOP/s)\b|cputrain \d[\d,]*\d|\d[\d,.]* and \d[\d,.]* on a GPU")


def read(*path):
    with open(os.path.join(ROOT, *path)) as file:
        return json.load(file)


def sums_of_gradients():
    """Milliseconds of the ranks' own sum, which no kernel computes."""
    rounds = read(plot.CPUS, "benchmarks.json")["rounds"]["allreduce 2"]
    seconds = sorted(next(way["seconds"]["median"] for way in one["algorithms"] if way["name"] == "shm") for one in rounds)
    return seconds[len(seconds) // 2] * 1e3


def quoted():
    """[(text in README.md, backend and version of its kernels, or None)]"""
    (_, on_cpus), (_, on_gpu) = plot.groups()
    cpus = origin.versions_of(read(plot.CPUS, "peers.json")["environment"]["commit"])
    gpu = origin.versions_of(read(plot.GPU, "day.json")["packed"]["commit"])
    simulated = read("results", "simulated", "published", "cells.json")
    least = min(cell["seconds_per_epoch"] for cell in simulated["cells"] if cell["cpus"] == 96)
    costs = int(re.search(r"own kernels (\d+)", simulated["options"]["costs"])[1])
    return [(f"cputrain {on_cpus[0][1]:.0f}", ("cpu", cpus.get("cpu"))),
            (f"{on_gpu[0][1]:,.0f} and {on_gpu[1][1]:,.0f} on a GPU", ("cuda", gpu.get("cuda"))),
            (f"{sums_of_gradients():.0f} ms", None), (f"{least:.2g} s", ("cpu", costs))]


def paragraphs(text):
    """With what follows an image, and points of a list apart."""
    return re.split(r"(?<!\))\n\n|\n(?=- )", text)


def untold(text, quotes, today):
    """What of a document is old and does not say so, or is quoted from nowhere."""
    found = []
    for quote, kernels in quotes:
        places = [part for part in paragraphs(text) if quote in part]
        if not places:
            found.append(f"{quote}: not in the text, though the raw data have it")
        if kernels and kernels[1] != today[kernels[0]]:
            found += [f"{quote}: of kernels {kernels[1]}, which its paragraph does not say" for part in places
                      if f"kernels {kernels[1]}" not in " ".join(part.split())]
    speeds = {match.group() for match in SPEED.finditer(text)}
    return found + [f"{speed}: of no raw data" for speed in sorted(speeds - {quote for quote, _ in quotes})]


class Figures(unittest.TestCase):
    def test_quoted_speeds_are_those_of_their_raw_data_and_say_older_kernels(self):
        with open(os.path.join(ROOT, "README.md")) as file:
            text = file.read()
        quotes = quoted()
        if any(kernels and kernels[1] is None for _, kernels in quotes):
            self.skipTest("commits of the results are not in this checkout")
        self.assertFalse(untold(text, quotes, origin.versions_of()))

    def test_a_speed_of_older_kernels_is_found(self):
        text = "It makes 12 images/s.\n\n- An epoch takes\n  7.3 s here, with kernels\n  9.\n- Sums take 4 ms."
        quotes = [("12 images/s", ("cpu", 13)), ("7.3 s", ("cpu", 9)), ("4 ms", None)]
        self.assertEqual(untold(text, quotes, {"cpu": 13}), [])
        self.assertEqual(untold(text, quotes, {"cpu": 14}),
                         ["12 images/s: of kernels 13, which its paragraph does not say"])
        self.assertEqual(untold(text, quotes[1:], {"cpu": 13}), ["12 images/s: of no raw data"])
        self.assertEqual(untold(text.replace("7.3", "7.4"), quotes, {"cpu": 13}),
                         ["7.3 s: not in the text, though the raw data have it", "7.4 s: of no raw data"])

    def test_todays_kernels_are_those_of_the_sources(self):
        self.assertEqual(set(origin.versions_of()), {"cpu", "cuda"})


if __name__ == "__main__":
    unittest.main()

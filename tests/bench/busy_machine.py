#!/usr/bin/env python3
"""How long waiting threads should spin: trainings on a quiet machine and beside other work, in turn.

    tests/bench/busy_machine.py [--rounds 5] [--load 0,1,2] [--ranks 1,2] [--spins default,0,500,2000,10000,300000]

Each setting trains on the same packed file (96x96, batch 32), as one process of two threads and as two ranks, without
load and beside N processes that compile C++ (a compiler starts, works some seconds and ends, again and again). Rounds
go over all settings, so that a slow minute meets them alike; medians are over rounds. Images/s are of settled steps;
CPU seconds are of the whole training, its start included, divided by its images.

`default` is what the program sets itself (backends/cpu/short_waits.cpp), a number is GOMP_SPINCOUNT (300000 is
libgomp's own), `passive` and `active` are OMP_WAIT_POLICY. Run it where nothing else works.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "cputrain")
SIZE, BATCH = 96, 32
LOAD = """#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>
std::vector<std::string> f(std::map<std::string, std::function<int(std::regex)>> m) {
  std::vector<std::string> names;
  for (auto& [name, g] : m) if (g(std::regex(name))) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}
"""


class Load:
    """Compilers at work while it lives."""

    def __init__(self, count, folder):
        source = os.path.join(folder, "load.cpp")
        with open(source, "w") as f:
            f.write(LOAD)
        line = f"while :; do g++ -std=c++20 -O2 -c -o /dev/null {source}; done"
        self.shells = [subprocess.Popen(["bash", "-c", line], start_new_session=True) for _ in range(count)]

    def __enter__(self):
        time.sleep(0.5 if self.shells else 0)
        return self

    def __exit__(self, *_):
        for shell in self.shells:
            os.killpg(shell.pid, 9)
            shell.wait()


def environment(setting):
    env = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    if setting in ("passive", "active"):
        env["OMP_WAIT_POLICY"] = setting
    elif setting != "default":
        env["GOMP_SPINCOUNT"] = setting
    return env


def train(ranks, setting, data, folder, steps):
    """Images/s, CPU seconds per 1000 images, and the part that threads waited for a CPU."""
    launch = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--oversubscribe", "--bind-to", "none",
              "-np", str(ranks)] if ranks > 1 else []
    out = os.path.join(folder, "run")
    process = subprocess.Popen(
        [*launch, PROGRAM, "--data", data, "--image-size", str(SIZE), "--batch", str(BATCH), "--threads",
         str(max(1, 2 // ranks)), "--limit-val", "0", "--steps", str(steps), "--log-every", "1", "--out", out,
         "--overwrite"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(setting))
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(errors.decode())
    with open(os.path.join(out, "metrics.jsonl")) as lines:
        lines = [json.loads(line) for line in lines]
    settled = [s for s in lines if s["type"] == "step" and s["step"] > 1 and "trying" not in s]
    images = sum(s["images"] for s in lines if s["type"] == "step")
    waits = [e["cpu_wait"] for e in lines if e["type"] == "epoch" and e["cpu_wait"] is not None]
    return (sum(s["images"] for s in settled) / sum(s["seconds"] for s in settled),
            1000 * (used.ru_utime + used.ru_stime) / images, statistics.median(waits) if waits else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--load", default="0,1,2", help="numbers of compilers [0,1,2]")
    parser.add_argument("--ranks", default="1,2", help="1: one process of two threads; N: N ranks of one [1,2]")
    parser.add_argument("--spins", default="default,passive,500,2000,10000,300000", help="settings, as above")
    parser.add_argument("--steps", type=int, default=120, help="of each training [120]")
    parser.add_argument("--images", type=int, default=800, help="images of the packed file [800]")
    parser.add_argument("--json", help="write every figure to this file")
    a = parser.parse_args()
    settings = a.spins.split(",")
    figures = {}
    with tempfile.TemporaryDirectory(prefix="cputrain-busy-") as folder:
        data = os.path.join(folder, "data.ctpack")
        for words in (["synth", f"{folder}/images", "--images", str(a.images), "--image-size", str(SIZE)],
                      ["pack", f"{folder}/images", data, "--image-size", str(SIZE)]):
            subprocess.run([PROGRAM, "data", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for number in range(a.rounds):
            for load in map(int, a.load.split(",")):
                with Load(load, folder):
                    for ranks in map(int, a.ranks.split(",")):
                        # Each round begins with another setting.
                        for setting in settings[number % len(settings):] + settings[:number % len(settings)]:
                            figure = train(ranks, setting, data, folder, a.steps)
                            figures.setdefault((load, ranks, setting), []).append(figure)
            print(f"round {number + 1} of {a.rounds}", file=sys.stderr, flush=True)
    print(f"{'compilers':>9} {'trained as':<22} {'waits':<10} {'images/s (least to most)':<28} "
          f"{'CPU s/1000 images':>18} {'waited for a CPU':>17}")
    order = sorted(figures, key=lambda key: (key[0], key[1], settings.index(key[2])))
    for load, ranks, setting in order:
        rates, cpu, waits = zip(*figures[load, ranks, setting])
        known = [w for w in waits if w is not None]
        rate = f"{statistics.median(rates):.1f} ({min(rates):.1f} to {max(rates):.1f})"
        wait = f"{100 * statistics.median(known):.0f} %" if known else "unknown"
        print(f"{load:>9} {'1 process, 2 threads' if ranks == 1 else f'{ranks} ranks':<22} {setting:<10} {rate:<28} "
              f"{statistics.median(cpu):>18.2f} {wait:>17}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump([{"compilers": load, "ranks": ranks, "waits": setting, "images_per_second": r[0],
                        "cpu_seconds_per_1000_images": r[1], "cpu_wait": r[2], "round": number}
                       for (load, ranks, setting), list_ in figures.items() for number, r in enumerate(list_)], f)


if __name__ == "__main__":
    main()

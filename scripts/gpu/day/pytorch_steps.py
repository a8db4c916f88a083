"""The same network in PyTorch, by scripts/peers/pytorch_gpu.py. What it compiles is compiled beside the tests, where
nothing is timed, and kept for its measurement."""
import json
import os

from context import expect, listed
from results import Failed, Skipped

SPARE = 5  # seconds before the step's end in which it shall end by itself


def command(day, seconds, *words):
    script = day.bundle.path("peers", "pytorch_gpu.py")
    return [day.python, script, "--seconds", str(max(1, int(seconds))), *(["--quick"] if day.quick else []), *words]


def environment(day):
    """That of the caller, whose Python has PyTorch: it shall not load the pack's libraries."""
    return {**os.environ, "TORCHINDUCTOR_CACHE_DIR": day.file("torch")}


def begin_compiling(day):
    words = command(day, day.left(), "--compile-only", "--json", day.file("compiled.json"))
    running = day.commands.start(words, environment(day), day.work)
    if running.wait(2):
        expect(running.end(), "the script for PyTorch")
    day.compiling = running
    return "goes on beside the tests"


def end_compiling(day):
    running, day.compiling = day.compiling, None
    if not running:
        raise Skipped("nothing was begun")
    running.wait(day.left_of_step() - SPARE)
    done = running.end()
    if not done.cut:
        expect(done, "the script for PyTorch")
    modes = results_of(day.file("compiled.json"))
    day.results.facts["compiled"] = modes
    compiled = [mode for mode in modes if mode["status"] == "compiled"]
    return f"{len(compiled)} modes compiled in {done.seconds:.0f} s" + (", then ended" if done.cut else "")


def measure(day):
    path = day.results.path("pytorch.json")
    done = day.run(command(day, day.left_of_step() - SPARE, "--json", path), environment=environment(day))
    modes = results_of(path)
    measured = [mode for mode in modes if mode.get("images_per_second")]
    for mode in measured:
        day.results.figure(f"PyTorch {mode['mode']}, batch {mode['batch']}", "images/s", rate(mode))
    if not measured:
        expect(done, "the script for PyTorch")
        raise Failed("it measured no mode")
    best = max(measured, key=rate)
    lost = [f"{mode['mode']} at batch {mode['batch']} ({mode['reason']})" for mode in modes
            if mode["status"] == "failed"]
    return (f"{len(measured)} modes, " + (f"{len(lost)} failed: {listed(lost)}; " if lost else "") +
            f"fastest: {best['mode']} at batch {best['batch']} with {rate(best):,.0f} images/s" +
            (f", cut after {done.seconds:.0f} s" if done.cut else ""))


def rate(mode):
    return mode["images_per_second"]["median"]


def results_of(path):
    try:
        with open(path) as file:
            return json.load(file)["results"]
    except FileNotFoundError:
        return []

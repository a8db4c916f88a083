"""The same networks in PyTorch, by scripts/peers/pytorch_gpu.py. What it compiles is compiled beside the tests, where
nothing is timed, and kept for its measurement."""
import json
import os
from dataclasses import dataclass

from context import expect, listed
from predictions import DOGCAT
from results import Failed, Skipped

SPARE = 5  # seconds before the step's end in which it shall end by itself


@dataclass(frozen=True)
class Twin:
    """A network that both train, and the modes that are worth a day's seconds, the most valuable first."""
    name: str     # of its files
    network: tuple  # model and image size
    batch: int
    modes: tuple
    quick: tuple  # modes of a rehearsal

    def title(self, mode):
        """What a figure is called."""
        model, size = self.network
        where = "" if self.network == DOGCAT else f" {model} {size}x{size}"
        return f"PyTorch{where} {mode['mode'].replace('-channels-last', '')}, batch {mode['batch']}"


BEST = "compiled-bf16-channels-last"
TWINS = (
    Twin("pytorch", DOGCAT, 256, (
        BEST, "compiled-tf32-channels-last", "layers-bf16", "layers-tf32", "graphs-bf16-channels-last",
        "all-compiled-bf16-channels-last", "compiled-bf16-channels-last-deterministic",
        "compiled-float32-channels-last", "compiled-tf32-channels-last-deterministic"), (BEST,)),
    Twin("pytorch_resnet_224", ("resnet50v2", 224), 128, (BEST, "compiled-tf32-channels-last"), ()),
    Twin("pytorch_resnet_128", ("resnet50v2", 128), 128, (BEST, "compiled-tf32-channels-last"), (BEST,)))


def asked(day):
    """[(twin, its modes)]"""
    return [(twin, modes) for twin in TWINS if (modes := twin.quick if day.quick else twin.modes)]


def command(day, twin, modes, seconds, *words):
    model, size = twin.network
    return [day.python, day.bundle.path("peers", "pytorch_gpu.py"), "--seconds", str(max(1, int(seconds))), "--model",
            day.bundle.path("expected", f"{model}.json"), "--image-size", str(size), "--batches", str(twin.batch),
            "--modes", ",".join(modes), *(["--quick"] if day.quick else []), *words]


def environment(day):
    """That of the caller, whose Python has PyTorch: it shall not load the pack's libraries."""
    return {**os.environ, "TORCHINDUCTOR_CACHE_DIR": day.file("torch")}


def begin_compiling(day):
    """A process for each network, all at once. Several CPUs compile, and the GPU has room."""
    for twin, modes in asked(day):
        words = command(day, twin, modes, day.left(), "--compile-only", "--json",
                        day.file(f"{twin.name}_compiled.json"))
        day.compiling.append((twin, day.commands.start(words, environment(day), day.work)))
    first = day.compiling[0][1]
    try:
        if first.wait(2):
            expect(first.end(), "the script for PyTorch")
    except (Failed, Skipped):
        end_all(day)
        raise
    return f"{len(day.compiling)} networks, beside the tests"


def end_all(day):
    """[(twin, Done)] of what compiles, which is ended where it still runs."""
    compiling, day.compiling = day.compiling, []
    return [(twin, running.end()) for twin, running in compiling]


def end_compiling(day):
    if not day.compiling:
        raise Skipped("nothing was begun")
    for _, running in day.compiling:
        running.wait(day.left_of_step() - SPARE)
    said = []
    for twin, done in end_all(day):
        kept = read(day.file(f"{twin.name}_compiled.json"))
        day.results.facts.setdefault("compiled", {})[twin.name] = kept.get("results", [])
        if not done.cut:
            expect(done, "the script for PyTorch")
        compiled = sum(mode["status"] == "compiled" for mode in kept.get("results", []))
        said.append(f"{twin.network[0]} {twin.network[1]}: {compiled} modes in {kept.get('seconds', 0):.0f} s" +
                    (", then ended" if done.cut else ""))
    return "; ".join(said)


def measure(twin):
    def run(day):
        modes = twin.quick if day.quick else twin.modes
        path = day.file(f"{twin.name}.json")
        words = command(day, twin, modes, day.left_of_step() - SPARE, "--json", path)
        done = day.run(words, environment=environment(day))
        whole = read(path)
        keep(day, twin, whole)
        return told(day, twin, whole.get("results", []), done)
    return run


def keep(day, twin, whole):
    """All networks go into one file: a day may bring few."""
    path = day.results.path("pytorch.json")
    day.results.write_json("pytorch.json", {**read(path), twin.name: whole})


def told(day, twin, results, done):
    measured = [mode for mode in results if mode.get("images_per_second")]
    for mode in measured:
        day.results.figure(twin.title(mode), "images/s", rate(mode))
    if not measured:
        expect(done, "the script for PyTorch")
        raise Failed("it measured no mode")
    check_parameters(day, twin, measured)
    best = max(measured, key=rate)
    lost = [f"{mode['mode']} at batch {mode['batch']} ({mode['reason']})" for mode in results
            if mode["status"] == "failed"]
    return (f"{len(measured)} modes, " + (f"{len(lost)} failed: {listed(lost)}; " if lost else "") +
            f"fastest: {best['mode']} at batch {best['batch']} with {rate(best):,.0f} images/s" +
            (f", cut after {done.seconds:.0f} s" if done.cut else ""))


def check_parameters(day, twin, measured):
    """A network of other parameters would be no twin."""
    ours = (day.bundle.read_json("expected", "parameters.json") or {}).get(twin.network[0])
    others = {mode["parameters"] for mode in measured if "parameters" in mode}
    if ours is not None and others - {ours}:
        raise Failed(f"PyTorch's {twin.network[0]} has {max(others - {ours}):,} parameters, and ours {ours:,}")


def rate(mode):
    return mode["images_per_second"]["median"]


def read(path):
    """What the script for PyTorch wrote; nothing where it was ended before."""
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return {}

#!/usr/bin/env python3
"""Training steps of cputrain's network in PyTorch on a GPU, in its modes: the yardstick of --backend cuda.

    python3 scripts/peers/pytorch_gpu.py --json FILE --seconds N [--batches 32,256] [--quick | --modes NAMES]

Modes are eager and torch.compile, with CUDA graphs too; bf16 (autocast), TF32 and float32; channels last
and first; deterministic and not. A step is forward, loss, backward and update, by the recipe of the model,
with images that lie on the device as bytes. Convolutions are timed one by one, too.

The most valuable modes go first, and FILE is written after each. What fails is recorded with its reason and
costs itself alone; so does what takes too long, since a process of its own trains. Compiled code is kept in
TORCHINDUCTOR_CACHE_DIR, and the time of the first step tells what compiling took.

Ends with 0 where something was measured, 1 where nothing was, 65 for a bad model file, 77 without PyTorch or a GPU.
"""
import argparse
import dataclasses
import importlib.util
import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gpu_modes

MEASURED, NOTHING, BAD_MODEL, NOT_WRITTEN, SKIPPED = 0, 1, 65, 74, 77


def whole(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be a whole number from 1")
    return int(text)


def seconds_of(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} must be a number of seconds above 0")
    return value


def wholes(text):
    return [whole(word) for word in text.split(",")]


def modes_of(text):
    known = {mode.name(): mode for mode, _ in gpu_modes.order([32, 256], quick=False)}
    unknown = [name for name in text.split(",") if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is no mode; there are {', '.join(known)}")
    return [known[name] for name in text.split(",")]


def order_of(a):
    """(mode, batch)"""
    if a.modes is None:
        return gpu_modes.order(a.batches, a.quick)
    return [(mode, batch) for batch in sorted(a.batches, reverse=True) for mode in a.modes]


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--json", required=True, metavar="FILE", help="where the figures go")
    p.add_argument("--seconds", required=True, type=seconds_of, help="for all of it; no mode begins after them")
    p.add_argument("--mode-seconds", type=seconds_of, default=60.0, metavar="N",
                   help="for a mode with torch.compile or in float32, half of it for others [60]")
    p.add_argument("--batches", type=wholes, default=[32, 256], help="images of a step [32,256]")
    p.add_argument("--quick", action="store_true", help="a few modes, short rounds, the largest batch alone")
    p.add_argument("--modes", type=modes_of, metavar="NAMES",
                   help="these alone, in this order, at each of the batches; such as compiled-bf16-channels-last")
    p.add_argument("--compile-only", action="store_true", help="fills the cache of compiled code and measures nothing")
    p.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="[cuda]")
    p.add_argument("--image-size", type=whole, default=256, help="[256]")
    p.add_argument("--threads", type=whole, help="of PyTorch on the CPU [its own choice]")
    p.add_argument("--model", default=os.path.join(HERE, "dogcat.json"), metavar="FILE",
                   help="a model file of cputrain [the one of dogcat]")
    a = p.parse_args()
    if not a.json:
        p.error("--json needs a file; its name is empty")
    if not os.path.exists(a.model):
        p.error(f"--model {a.model} is not there; cputrain export --model NAME --model-file FILE writes one")
    return a


def check_model(path):
    """Before a process begins, which would take it for a reason to skip everything."""
    try:
        with open(path) as file:
            model = json.load(file)
        if not (isinstance(model["layers"], list) and {"recipe", "input"} <= {key for key in model
                                                                              if isinstance(model[key], dict)}):
            raise TypeError
    except OSError as e:
        why = e.strerror
    except ValueError as e:
        why = f"it is no JSON: {e}"
    except (KeyError, TypeError):
        why = "it lacks an object `input` or `recipe`, or a list `layers`"
    else:
        return
    print(f"pytorch_gpu: --model {path} cannot be used ({why}), so nothing was measured; cputrain export --model NAME "
          "--model-file FILE writes one", file=sys.stderr)
    sys.exit(BAD_MODEL)


class Journal:
    """The file, whole at any time."""

    def __init__(self, path, told):
        self.path, self.start = path, time.monotonic()
        self.told = {"peer": "pytorch", "status": "running", **told, "results": []}

    def keep(self, **told):
        self.told.update(told, seconds=round(time.monotonic() - self.start, 2))
        # A device or a pipe is written to: a file in its place would take it away from all programs.
        in_place = os.path.exists(self.path) and not os.path.isfile(self.path)
        path = self.path if in_place else self.path + ".tmp"
        try:
            with open(path, "w") as file:
                json.dump(self.told, file, indent=1)
                file.write("\n")
            if not in_place:
                os.replace(path, self.path)
        except OSError as e:
            print(f"pytorch_gpu: {self.path} cannot be written ({e.strerror}); name another --json", file=sys.stderr)
            sys.exit(NOT_WRITTEN)

    def add(self, result):
        self.told["results"].append(result)
        self.keep()
        print(line_of(result), flush=True)

    def measured(self):
        return any(r["status"] in ("measured", "compiled") for r in self.told["results"])


def line_of(result):
    head = f"{result['mode']} at batch {result['batch']}: "
    if result["status"] == "measured" and "images_per_second" in result:
        rate = result["images_per_second"]
        return head + (f"{rate['median']:.0f} images/s ({rate['min']:.0f} to {rate['max']:.0f}), first step "
                       f"{result['first_step_seconds']:.1f} s")
    return head + result["status"] + (f", {result['reason']}" if result.get("reason") else "")


class Worker:
    """The process that trains, and what it says."""
    SCRIPT = os.path.join(HERE, "gpu_worker.py")
    START = 60.0  # seconds that PyTorch may take to be loaded

    def __init__(self, start, seconds):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-B", self.SCRIPT, json.dumps(start)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, start_new_session=True)
        self.lines = queue.Queue()
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()
        self.about = self.next(min(seconds, self.START))

    def listen(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def next(self, seconds):
        """The next answer; where there is none, why: {"status": "failed", "reason": ...}."""
        try:
            line = self.lines.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return {"status": "failed", "reason": f"took longer than its {seconds:.0f} s", "lost": True}
        if line is None:
            return {"status": "failed", "reason": self.last_words(), "lost": True}
        return json.loads(line)

    def last_words(self):
        code = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return f"its process ended with {code}" + (f": {lines[-1][:300]}" if lines else "")

    def ask(self, request, seconds):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended: next() says how
        return self.next(seconds)

    def end(self):
        """With the compilers that it has started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.listener.join(timeout=5)
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            stream.close()


class Measurement:
    def __init__(self, a, journal, budget):
        self.a, self.journal, self.budget, self.worker = a, journal, budget, None

    def started(self):
        """Why there is no worker; None where there is one."""
        if self.worker:
            return None
        a = self.a
        self.worker = Worker({"device": a.device, "threads": a.threads, "size": a.image_size, "model": a.model},
                             self.budget.left())
        about = self.worker.about
        if "reason" in about:
            self.end()
            return about["reason"]
        self.journal.keep(**about)
        return None

    def end(self):
        if self.worker:
            self.worker.end()
            self.worker = None

    def request(self, mode, batch):
        kind = "layers" if isinstance(mode, gpu_modes.Layers) else "steps"
        rounds, seconds = (3, 0.15) if self.a.quick else (5, 0.5)
        return {"kind": kind, **dataclasses.asdict(mode), "batch": batch, "size": self.a.image_size,
                "device": self.a.device, "rounds": rounds, "seconds": seconds, "compile_only": self.a.compile_only}

    def of(self, mode, batch):
        result = {"mode": mode.name(), **dataclasses.asdict(mode), "batch": batch}
        refusal = mode.why_not_on_a_cpu() if self.a.device == "cpu" else None
        if refusal:
            return {**result, "status": "skipped", "reason": refusal}
        seconds = self.budget.of(mode)
        if seconds is None:
            return {**result, "status": "skipped", "reason": "the time was over"}
        start = time.monotonic()
        why = self.started()
        if why:
            return {**result, "status": "failed", "reason": why}
        answer = self.worker.ask(self.request(mode, batch), seconds)
        if answer.pop("lost", False) or broken(answer):
            self.end()
        return {**result, "reason": None, **answer, "seconds": round(time.monotonic() - start, 2)}


def broken(answer):
    """After such an error CUDA answers nothing else in that process."""
    reason = answer.get("reason") or ""
    return "CUDA error" in reason or "AcceleratorError" in reason


def main():
    a = arguments()
    check_model(a.model)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = {k: v for k, v in vars(a).items() if k not in ("json", "model", "modes")}
    journal = Journal(a.json, {"command": "scripts/peers/pytorch_gpu.py " + shlex.join(
        [w if not os.path.isabs(w) else os.path.basename(w) for w in sys.argv[1:]]),
        "model": os.path.splitext(os.path.basename(a.model))[0], "options": options,
        "cache": os.path.basename(os.environ.get("TORCHINDUCTOR_CACHE_DIR", "")) or None})
    journal.keep()
    if not importlib.util.find_spec("torch"):
        return skip(journal, "this Python has no PyTorch")
    measurement = Measurement(a, journal, gpu_modes.Budget(a.seconds, a.mode_seconds))
    try:
        why = measurement.started()
        if why:
            return skip(journal, why)
        for mode, batch in order_of(a):
            if mode.compiles() or not a.compile_only:
                journal.add(measurement.of(mode, batch))
    finally:
        measurement.end()
    journal.keep(status="done")
    return MEASURED if journal.measured() else NOTHING


def skip(journal, why):
    journal.keep(status="skipped", reason=why)
    print(f"pytorch_gpu: skipped, {why}")
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main())

"""What a day's results are set beside: curves of the CPU, selftest on the emulated device, predictions."""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BATCHES = (32, 128, 256)
# Plain descent in small steps: in 24 of them the CPU's floats, the emulated device and double stay within 2e-5 of each
# other, so 1e-4 tells a mistake from rounding. (Differences grow tenfold every six steps.)
# With the recipe's RMSprop the CPU's own curve depends on its kernels: 2e-3 after 16 steps.
GENTLE = ["--optimizer", "sgd", "--lr", "0.003", "--momentum", "0.9"]
CURVES = {
    "gpu": (["--data", "synthetic:1280", "--image-size", "64", "--batch", "32", *GENTLE], 24),
    "emulated": (["--data", "synthetic:40", "--image-size", "48", "--batch", "4", *GENTLE], 3),
    "recipe": (["--data", "synthetic:1280", "--image-size", "64", "--batch", "32"], 40),
    "photographs": (["--data", "photographs.ctpack", "--image-size", "64", "--batch", "16", *GENTLE], 12),
}
PHOTOGRAPHS = {"file": "photographs.ctpack", "size": 64, "images": 200}
# Every family of kernels, with odd sizes and channels.
SMALL = {
    "format": "cputrain model 1", "name": "small",
    "recipe": {"image_size": 21, "batch": 10, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.02, "momentum": 0.9},
    "layers": [
        {"type": "convolution", "filters": 7, "kernel": 3, "padding": "same"}, {"type": "relu"},
        {"type": "max_pool", "size": 2}, {"type": "convolution", "filters": 20, "kernel": 3, "stride": 2},
        {"type": "relu"}, {"type": "average_pool", "size": 2}, {"type": "convolution", "filters": 9, "kernel": 1},
        {"type": "dropout", "rate": 0.2}, {"type": "global_average_pool"}, {"type": "dense", "units": 21},
        {"type": "relu"}, {"type": "dense", "units": "classes"}, {"type": "softmax"}]}


def environment(**more):
    """Flags that the caller's environment has for cputrain do not count."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("CPUTRAIN_")}, **more}


def run(program, *words, folder=None):
    subprocess.run([program, *words], check=True, env=environment(), cwd=folder, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)


def pack_photographs(program, data, folder):
    """Writes the first photographs of the data, or made-up JPEG files, decoded, into one file of the folder."""
    size, images = str(PHOTOGRAPHS["size"]), str(PHOTOGRAPHS["images"])
    with tempfile.TemporaryDirectory() as work:
        if not data:
            data = os.path.join(work, "photographs")
            run(program, "data", "synth", data, "--images", images, "--image-size", size)
        run(program, "data", "pack", data, os.path.join(folder, PHOTOGRAPHS["file"]), "--image-size", size,
            "--limit-train", images, "--validation-split", "0")


def curve(program, photographs, folder, name):
    """`photographs`: the folder of their file."""
    words, steps = CURVES[name]
    run(program, "train", *words, "--steps", str(steps), "--log-every", "1", "--limit-val", "0", "--verbose", "0",
        "--out", os.path.join(folder, name), folder=photographs)
    with open(os.path.join(folder, name, "metrics.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    return {"words": words, "steps": steps, "losses": [line["loss"] for line in lines if line["type"] == "step"]}


def selftest(program, plugins):
    """What selftest finds on the emulated device."""
    emulated = environment(CPUTRAIN_PLUGINS=plugins)
    done = subprocess.run([program, "selftest", "--backend", "cuda", "--json", "-"], text=True, env=emulated,
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise subprocess.CalledProcessError(done.returncode, done.args)
    return json.loads(done.stdout)


def predictions(program):
    """Those of scripts/predict_gpu for the batches of the day; None where it cannot predict here."""
    script = os.path.join(ROOT, "scripts", "predict_gpu")
    found = []
    for batch in BATCHES:
        command = [sys.executable, "-B", script, "--program", program, "--batch", str(batch), "--json", "-"]
        done = subprocess.run(command, text=True, capture_output=True, env=environment())
        if done.returncode:
            lines = done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or ["it says nothing"]
            print(f"gpu_day: nothing is predicted: {lines[-1]}", file=sys.stderr)
            return None
        found += json.loads(done.stdout)["predictions"]
    return {"predictions": found}


def write_all(folder, program, plugins, photographs):
    """Returns the names of what is not there. `photographs`: the folder of their file."""
    os.makedirs(folder)
    with tempfile.TemporaryDirectory() as work:
        results = {"curves": {name: curve(program, photographs, work, name) for name in CURVES}, "small": SMALL,
                   "selftest": selftest(program, plugins) if plugins else None, "predictions": predictions(program)}
    for name, result in results.items():
        if result is not None:
            with open(os.path.join(folder, name + ".json"), "w") as file:
                json.dump(result, file)
    return [name for name, result in results.items() if result is None]

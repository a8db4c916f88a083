"""What a day's results are set beside: curves of the CPU, selftest on the emulated device, predictions."""
import json
import os
import subprocess
import sys
import tempfile

import libraries
import networks
import profiles

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# (model, image size, batches of a step) that a day measures.
PREDICTED = (("dogcat", 256, (32, 128, 256, 512, 1024)), ("resnet50v2", 224, (128,)), ("resnet50v2", 128, (128,)))
# Plain descent in small steps: in 24 of them the CPU's floats, the emulated device and double stay within 2e-5 of each
# other, so 1e-4 tells a mistake from rounding. (Differences grow tenfold every six steps.)
# With the recipe's RMSprop the CPU's own curve depends on its kernels: 2e-3 after 16 steps.
GENTLE = ["--optimizer", "sgd:momentum=0.9", "--lr", "0.003"]
CURVES = {
    "gpu": (["--data", "synthetic:1280", "--image-size", "64", "--batch", "32", *GENTLE], 24),
    "emulated": (["--data", "synthetic:40", "--image-size", "48", "--batch", "4", *GENTLE], 3),
    "recipe": (["--data", "synthetic:1280", "--image-size", "64", "--batch", "32"], 40),
    "photographs": (["--data", "photographs.ctpack", "--image-size", "64", "--batch", "16", *GENTLE], 12),
}
PHOTOGRAPHS = {"file": "photographs.ctpack", "size": 64, "images": 200}
# Images of CIFAR-10 that a pack has room for, and how they are trained on. `cpu`: mean losses of the first and of the
# last epoch on a CPU, in float, with the first images of a copy of CIFAR-10 in JPEG.
CIFAR = {"model": "resnet50v2", "image_size": 128, "classes": 10, "train": 2000, "val": 500, "epochs": 5,
         "cpu": [2.281, 1.274]}
CIFAR_RECORD = 1 + 3 * 32 * 32  # bytes of an image in CIFAR-10's binary files
CIFAR_FILES = (("data_batch_1.bin", "train"), ("test_batch.bin", "val"))
# Images and results together have at most so many bytes before they are compressed. A test adds as many to the pack, as
# if no program could compress them, and so knows without any result that a pack may travel.
MOST_BYTES = ((CIFAR["train"] + CIFAR["val"]) * CIFAR_RECORD + PHOTOGRAPHS["images"] * 3 * PHOTOGRAPHS["size"] ** 2 +
              4_000_000)


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


def described(program, model, *words):
    """What `cputrain info` says of a model."""
    done = subprocess.run([program, "info", "--model", model, *words, "--json", "-"], text=True, check=True,
                          env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["model"]


def predictions(program):
    """Those of scripts/predict_gpu for what a day measures; None where it cannot predict here."""
    script = os.path.join(ROOT, "scripts", "predict_gpu")
    found = []
    for model, size, batches in PREDICTED:
        for batch in batches:
            command = [sys.executable, "-B", script, "--program", program, "--model", model, "--image-size", str(size),
                       "--batch", str(batch), "--json", "-"]
            done = subprocess.run(command, text=True, capture_output=True, env=environment())
            if done.returncode:
                lines = done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or ["it says nothing"]
                print(f"gpu_day: nothing is predicted: {lines[-1]}", file=sys.stderr)
                return None
            found += json.loads(done.stdout)["predictions"]
    return {"predictions": found}


def heavy_launches(program):
    """By name of a profile."""
    return {name: profiles.foreseen(profile, described(program, profile.model, "--image-size", str(profile.size)))
            for name, profile in profiles.PROFILES.items()}


def exported(program, model, folder):
    """A model file, as scripts/peers/pytorch_gpu.py reads it."""
    path = os.path.join(folder, f"{model}.json")
    run(program, "export", "--model", model, "--model-file", path)
    with open(path) as file:
        return json.load(file)


def networks_of_pytorch(program, folder):
    models = sorted({model for model, _, _ in PREDICTED})
    return {**{model: exported(program, model, folder) for model in models},
            "parameters": {model: described(program, model)["parameters"] for model in models}}


def check_cifar(data):
    """Before all else is made, which takes minutes."""
    for name, part in CIFAR_FILES if data is not None else ():
        path, images = os.path.join(data, name), CIFAR[part]
        if not os.path.isfile(path) or os.path.getsize(path) < images * CIFAR_RECORD:
            raise libraries.Missing(f"--cifar {data}: {name} is not there or has fewer than {images} images (the day "
                                    "trains on so many); name the folder of CIFAR-10's binary version")


def pack_cifar(data, folder):
    """The first images of the binary files in a folder, as that form has them; returns what the day needs to know."""
    if not data:
        return None
    os.makedirs(os.path.join(folder, "cifar10"))
    for name, part in CIFAR_FILES:
        with open(os.path.join(data, name), "rb") as file, open(os.path.join(folder, "cifar10", name), "wb") as to:
            to.write(file.read(CIFAR[part] * CIFAR_RECORD))
    words = ["--model", CIFAR["model"], "--image-size", str(CIFAR["image_size"]), "--epochs", str(CIFAR["epochs"]),
             "--batch", "64", "--optimizer", "momentum=0.9"]
    return {**CIFAR, "words": words}


def write_all(folder, program, plugins, pack, cifar):
    """Returns the names of what is not there. `pack`: the folder of photographs and of CIFAR-10, whose images are those
    of the folder `cifar`."""
    os.makedirs(folder)
    with tempfile.TemporaryDirectory() as work:
        results = {"curves": {name: curve(program, pack, work, name) for name in CURVES}, "small": networks.SMALL,
                   "large": networks.LARGE, "selftest": selftest(program, plugins) if plugins else None,
                   "predictions": predictions(program), "profiles": heavy_launches(program),
                   "cifar10": pack_cifar(cifar, pack), **networks_of_pytorch(program, work)}
    for name, result in results.items():
        if result is not None:
            with open(os.path.join(folder, name + ".json"), "w") as file:
                json.dump(result, file)
    return [name for name, result in results.items() if result is None]

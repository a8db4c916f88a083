"""Packed photographs beside Pillow's, and graphs that resize by themselves beside `predict`.

Usage: compare.py PROGRAM PHOTOS FOLDER. Leaves what PyTorch is compared with in FOLDER."""
import json
import os
import subprocess
import sys

import numpy as np
import onnxruntime
from packed import read_packed
from PIL import Image, ImageOps
from pillow_fits import WAYS, fitted

PROGRAM, PHOTOS, WORK = sys.argv[1:]
SIDE, IMAGES, MOST_STEPS = 64, 100, 1


def run(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"check_pixels: cputrain {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def photograph(path):
    with Image.open(path) as image:
        return ImageOps.exif_transpose(image).convert("RGB")


def compare_packed(way, fit, size):
    packed = os.path.join(WORK, f"{way}-{fit.replace(':', '-')}-{size}.ctpack")
    run("data", "pack", PHOTOS, packed, "--image-size", size, "--resize", way, "--fit", fit, "--limit-train", IMAGES,
        "--limit-val", 0, "--seed", 1)
    names, (height, width), pixels = read_packed(packed)
    ours = np.frombuffer(pixels, np.uint8).reshape(len(names), height, width, 3).astype(int)
    worst = different = 0
    for name, image in zip(names, ours):
        apart = np.abs(np.asarray(fitted(photograph(name), size, size, WAYS[way], fit)) - image)
        worst, different = max(worst, int(apart.max())), different + np.count_nonzero(apart)
    print(f"{way:10} {fit:12} {size:4}  {len(names)} photographs: {worst} steps of 255 at most, "
          f"{different / ours.size:.2%} of all bytes differ", flush=True)
    return worst


def noise(size, seed):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8))


def compare_graph(way, fit, photographs):
    """Answers for photographs and for noise in odd sizes."""
    out = os.path.join(WORK, "run")
    run("--data", PHOTOS, "--limit-train", 16, "--limit-val", 2, "--image-size", SIDE, "--batch", 8, "--steps", 2,
        "--resize", way, "--fit", fit, "--verbose", 0, "--out", out, "--overwrite")
    graph = os.path.join(WORK, "graph.onnx")
    run("export", "--weights", out, "--onnx", graph, "--onnx-resize", "in-graph")
    files = list(photographs)
    for i, size in enumerate([(1, 9), (7, 1), (3, 2), (64, 64), (11, 640), (900, 17), (2000, 1500)]):
        files.append(os.path.join(WORK, f"{i}.png"))
        noise(size, i).save(files[-1])
    ours = [list(p["probabilities"].values())[-1] for p in
            json.loads(run("predict", "--weights", out, "--json", "-", *files))["predictions"]]
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    theirs = [session.run(None, {"image": np.asarray(photograph(file))[None]})[0][0, -1] for file in files]
    worst = float(np.abs(np.array(ours) - theirs).max())
    print(f"{way:14} {fit:12}  in ONNX Runtime {onnxruntime.__version__}: answers for {len(files)} images differ by "
          f"{worst:.1e} at most", flush=True)
    return worst


def main():
    failed = []
    for way in WAYS:
        for fit in ("stretch", "crop", "crop:0.875", "pad"):
            for size in (SIDE, 224) if fit in ("stretch", "crop:0.875") else (SIDE,):
                if compare_packed(way, fit, size) > MOST_STEPS:
                    failed.append(f"--resize {way} --fit {fit} at {size}")
    names = read_packed(os.path.join(WORK, f"area-stretch-{SIDE}.ctpack"))[0][:10]
    for way in (*WAYS, "bilinear-plain"):
        for fit in ("stretch", "crop:0.875", "pad"):
            if compare_graph(way, fit, names) > 1e-4:
                failed.append(f"the graph of --resize {way} --fit {fit}")
    decoded = {name: np.asarray(photograph(name)) for name in names}
    np.savez(os.path.join(WORK, "photographs.npz"), **{str(i): image for i, image in enumerate(decoded.values())})
    if failed:
        sys.exit("check_pixels: more than one step apart: " + ", ".join(failed))


main()

"""The process that pytorch_gpu.py starts to train: a request a line on standard input, an answer a line on standard
output. It is ended and started anew where a mode hangs or breaks CUDA.
"""
import contextlib
import ctypes
import json
import os
import platform
import signal
import sys

# What PyTorch takes on Hopper anyway; deterministic modes want it said before CUDA begins.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch

import gpu_layers
import gpu_training
import layers


def say(answer):
    print(json.dumps(answer), file=OUT, flush=True)


def about(device):
    told = {"versions": {"python": platform.python_version(), "pytorch": torch.__version__, "cuda": torch.version.cuda,
                         "cudnn": torch.backends.cudnn.version()},
            "device": {"type": device, "name": platform.processor() or platform.machine()}}
    if device == "cuda":
        if not torch.cuda.is_available():
            return {"reason": "PyTorch finds no CUDA device here"}
        p = torch.cuda.get_device_properties(0)
        told["device"] = {"type": device, "name": p.name, "capability": f"{p.major}.{p.minor}",
                          "multiprocessors": p.multi_processor_count, "memory": p.total_memory}
    return told


def answer(request, graph, recipe):
    """An exception is an answer, too: it costs one mode."""
    try:
        if request["kind"] == "layers":
            return gpu_layers.measured(request, graph)
        return gpu_training.measured(request, graph, recipe)
    except Exception as e:  # whatever PyTorch refuses
        text = " ".join(f"{type(e).__name__}: {e}".split())
        return {"status": "failed", "reason": text[:400]}
    finally:
        if request["device"] == "cuda":
            with contextlib.suppress(Exception):
                torch.cuda.empty_cache()


def main():
    start = json.loads(sys.argv[1])
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: not without its parent
    if start["threads"]:
        torch.set_num_threads(start["threads"])
    with open(start["model"]) as file:
        model = json.load(file)
    graph = {"input": {**model["input"], "height": start["size"], "width": start["size"], "channels": 3},
             "layers": layers.with_units(model)}
    say(about(start["device"]))
    for line in sys.stdin:
        say(answer(json.loads(line), graph, model["recipe"]))


# Whatever PyTorch prints does not come between answers.
OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
main()

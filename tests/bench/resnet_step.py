#!/usr/bin/python3
"""Images/s of a training step of ResNet50V2 on one core: cputrain beside PyTorch and TensorFlow, in turn,
in one run of this script.

    tests/bench/resnet_step.py [--size 128] [--batch 64] [--steps 3] [--rounds 3] [--tensorflow PYTHON]

Run it on a quiet machine. PyTorch is that of this Python (Debian's python3-torch), with the network of
tests/golden; TensorFlow that of another interpreter, where it is installed. All three do forward, backward
and plain SGD on the same number of random images, after one step that warms up.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

PYTORCH = """
import sys, time, torch
sys.path.insert(0, {golden!r})
import golden_networks
torch.set_num_threads(1)
size, batch, steps = {size}, {batch}, {steps}
network, tensors = golden_networks.resnet_v2((3, 4, 6, 3)), {{}}
network(golden_networks.Pass(tensors), torch.rand(2, 3, size, size, dtype=torch.double), 10)
tensors = {{name: t.float() for name, t in tensors.items()}}
# Kernels lie as PyTorch likes them; the network sees views in Keras' order.
leaves = {{name: (t.permute(3, 2, 0, 1).contiguous() if t.dim() == 4 else t).requires_grad_()
          for name, t in tensors.items() if "moving" not in name}}
update = torch.optim.SGD(leaves.values(), lr=0.01)
x, y = torch.rand(batch, 3, size, size), torch.randint(0, 10, (batch,))
times = []
for step in range(steps + 1):
    start = time.time()
    update.zero_grad()
    for name, leaf in leaves.items():
        tensors[name] = leaf.permute(2, 3, 1, 0) if leaf.dim() == 4 else leaf
    logits = network(golden_networks.Pass(tensors), x, 10)
    torch.nn.functional.cross_entropy(logits, y).backward()
    update.step()
    times.append(time.time() - start)
print([batch / t for t in times[1:]])
"""

TENSORFLOW = """
import os, time
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
size, batch, steps = {size}, {batch}, {steps}
network = tf.keras.applications.ResNet50V2(weights=None, input_shape=(size, size, 3), classes=10)
network.compile(tf.keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy")
x, y = tf.random.uniform((batch, size, size, 3)), tf.zeros((batch,), tf.int32)
times = []
for step in range(steps + 1):
    start = time.time()
    network.train_on_batch(x, y)
    times.append(time.time() - start)
print([batch / t for t in times[1:]])
"""


def last_line(command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3, help="measured steps a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pytorch", default=sys.executable, help="a Python that has it")
    parser.add_argument("--tensorflow", help="a Python that has it")
    a = parser.parse_args()
    figures = {"golden": os.path.join(ROOT, "tests", "golden"), "size": a.size, "batch": a.batch,
               "steps": a.steps}
    one_thread = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

    rates, limits = {"cputrain": [], "PyTorch": []}, []
    for _ in range(a.rounds):
        bench = json.loads(subprocess.run(
            [os.path.join(ROOT, "cputrain"), "bench", "step", "--model", "resnet50v2", "--image-size",
             str(a.size), "--batch", str(a.batch), "--classes", "10", "--repeat", str(a.steps),
             "--threads", "1", "--optimizer", "sgd", "--json", "-"],
            check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
        rates["cputrain"].append(bench["images_per_second"]["median"])
        limits.append(bench["limit"]["fma_gflops"])
        code = PYTORCH.format(**figures)
        rates["PyTorch"] += json.loads(last_line([a.pytorch, "-c", code], env=one_thread))
        if a.tensorflow:
            code = TENSORFLOW.format(**figures)
            rates.setdefault("TensorFlow", [])
            rates["TensorFlow"] += json.loads(last_line([a.tensorflow, "-c", code], env=one_thread))
    print(f"ResNet50V2 at {a.size}x{a.size}, batch {a.batch}, one core; FMA peak measured beside it: "
          f"{statistics.median(limits):.0f} GFLOP/s")
    for name, values in rates.items():
        print(f"{name:<12}{statistics.median(values):8.1f} images/s (median of {len(values)}; "
              f"{min(values):.1f} to {max(values):.1f})")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Makes models/*.json beside this file: losses, logits and gradients of every built-in model in
training and evaluation mode, and some training steps, computed by PyTorch in double, and PyTorch's
own errors in float beside them. For models_test.cpp and steps_test.cpp.

By hand, with Debian's packages python3-torch and python3-numpy:  tests/golden/make_models.py [MODEL...]

Images and first weights are not stored: both sides compute them (golden_numbers.py). A tensor is
stored as its norm and its dot product with noise, which every element enters.
"""
import json
import os
import platform
import sys

import numpy as np
import torch
import torch.nn.functional as F

from golden_networks import Pass, check_norm, logits_of
from golden_numbers import SEED, check_philox, labelled, name_key, images, unit, words


def learnt(name, frozen=()):
    return "/moving_" not in name and name.split("/")[0] not in frozen


def first_tensors(model, image, classes):
    tensors = {}
    logits_of(model, Pass(tensors, training=False), images(0, 1, image), classes)
    return tensors


def copies(tensors, dtype=torch.double):
    return {name: value.clone().to(dtype) for name, value in tensors.items()}


def gradients(model, tensors, data, classes, frozen=()):
    """Changes the moving statistics in `tensors`. Gradients are those of the mean loss."""
    leaves = {name: value.requires_grad_() if learnt(name, frozen) else value
              for name, value in tensors.items()}
    logits = logits_of(model, Pass(leaves, True, frozen), data[0], classes)
    labels = torch.from_numpy(data[1])
    loss = F.cross_entropy(logits, labels)
    slopes = torch.autograd.grad(loss, [v for v in leaves.values() if v.requires_grad])
    for value in leaves.values():
        value.requires_grad_(False)
    names = [name for name in leaves if learnt(name, frozen)]
    correct = int((logits.argmax(1) == labels).sum())
    return loss.item(), correct, logits.detach(), dict(zip(names, slopes))


def digest(name, tensor):
    flat = tensor.double().numpy().reshape(-1)
    noise = unit(words(flat.size, "noise", name_key(name))) - 0.5
    return [float(f"{np.linalg.norm(flat):.12g}"), float(f"{flat @ noise:.12g}")]


def centred(logits):
    """A softmax does not see what is common to all classes."""
    logits = logits.double()
    return logits - logits.mean(1, keepdim=True)


def relative_error(values, exact):
    return float((values.double() - exact).norm() / exact.norm())


def gradient_errors(single, double):
    """Errors of the whole gradient and of the worst tensor. Biases whose shift the next batch norm removes
    have a gradient of 0: rounding is all that is left of it, and no measure of anything."""
    whole = sum(float(d.norm()**2) for d in double.values())**0.5
    error = sum(float((single[n].double() - d).norm()**2) for n, d in double.items())**0.5
    worst = max(relative_error(single[n], d) for n, d in double.items() if d.norm() > 1e-9 * whole)
    return dict(whole=error / whole, worst=worst)


def moving_error(single, double):
    """The error of all moving statistics together; 0 where there are none."""
    names = [name for name in double if "/moving_" in name]
    error = sum(float((single[n].double() - double[n]).norm()**2) for n in names)
    return (error / sum(float(double[n].norm()**2) for n in names))**0.5 if names else 0.0


def largest(rows):
    return {key: max(row[key] for row in rows) for key in rows[0]}


def float_errors(model, start, data, classes, frozen, exact, orders=4):
    """PyTorch's largest errors over some orders of the same images: rounding changes signs in front
    of ReLUs and winners of pools, which batch norm amplifies, so one order tells little."""
    loss, logits, slopes, tensors = exact
    rows = []
    for shift in range(min(orders, len(data[1]))):
        order = np.roll(np.arange(len(data[1])), shift)
        singles = copies(start, torch.float)
        float_loss, _, float_logits, float_slopes = gradients(
            model, singles, (data[0][order], data[1][order]), classes, frozen)
        rows.append(dict(loss=abs(float_loss - loss) / loss,
                         logits=relative_error(centred(float_logits), centred(logits)[order]),
                         moving=moving_error(singles, tensors),
                         **gradient_errors(float_slopes, slopes)))
    return largest(rows)


def training_pass(model, start, image, classes, first, batch, frozen=(), digests=True):
    data = labelled(first, batch, image, classes)
    tensors = copies(start)
    loss, correct, logits, slopes = gradients(model, tensors, data, classes, frozen)
    row = dict(first=first, batch=batch, frozen=list(frozen), loss=loss, correct=correct,
               logits=centred(logits).reshape(-1).tolist(),
               float_errors=float_errors(model, start, data, classes, frozen,
                                         (loss, logits, slopes, tensors)))
    if digests:  # the gradient of what is learnt, the new value of what moves
        row["tensors"] = [digest(name, slopes[name]) if name in slopes else
                          digest(name, tensors[name]) if "/moving_" in name else None
                          for name in tensors]
    return row


def more_float_errors(model, start, image, classes, batch, first, batches):
    """PyTorch's over some more batches: how far a changed winner of a pool can throw a gradient."""
    rows = []
    for i in range(first, batches):
        data, tensors = labelled(i * batch, batch, image, classes), copies(start)
        loss, _, logits, slopes = gradients(model, tensors, data, classes)
        rows.append(float_errors(model, start, data, classes, (), (loss, logits, slopes, tensors), 1))
    return rows


def evaluation(model, start, image, classes, first, batch):
    pixels = images(first, batch, image)
    logits = centred(logits_of(model, Pass(copies(start), False), pixels, classes))
    singles = logits_of(model, Pass(copies(start, torch.float), False), pixels, classes)
    return dict(first=first, batch=batch, logits=logits.reshape(-1).tolist(),
                float_error=relative_error(centred(singles), logits))


def train(model, start, image, classes, batch, steps, rate, momentum):
    """Keras' SGD: velocity = momentum * velocity - rate * g; w += velocity. Batch norm amplifies
    rounding in every step: at a rate of 0.01 the order of the images in a batch changes the loss of
    resnet50v2's fifth step by 3e-7 in double, at 0.0003 by 2e-12."""
    tensors, velocity, losses = copies(start), {}, []
    for step in range(steps):
        data = labelled(step * batch, batch, image, classes)
        loss, _, _, slopes = gradients(model, tensors, data, classes)
        losses.append(loss)
        for name, slope in slopes.items():
            velocity[name] = momentum * velocity.get(name, 0) - rate * slope
            tensors[name] += velocity[name]
    return dict(rate=rate, momentum=momentum, batch=batch, losses=losses,
                changes=[digest(name, value - start[name]) for name, value in tensors.items()])


def check_train():
    """Against torch.optim.SGD, which computes the same at a constant rate."""
    image, start = (48, 47, 3), first_tensors("dogcat", (48, 47, 3), 2)
    ours = train("dogcat", start, image, 2, 4, 3, 0.01, 0.9)["changes"]
    tensors = {name: value.requires_grad_() for name, value in copies(start).items()}
    twin = torch.optim.SGD(tensors.values(), 0.01, momentum=0.9)
    for step in range(3):
        pixels, labels = labelled(step * 4, 4, image, 2)
        twin.zero_grad()
        F.cross_entropy(logits_of("dogcat", Pass(tensors), pixels, 2), torch.from_numpy(labels)).backward()
        twin.step()
    theirs = [digest(name, value.detach() - start[name]) for name, value in tensors.items()]
    assert np.allclose(ours, theirs, rtol=1e-11, atol=1e-13)


def write(model, image, classes, batches, yardstick, batch, frozen=(), trainings=()):
    """The tests run some batches; the first has digests. PyTorch runs `yardstick` batches in float:
    a jump where a pool has another winner is rare, and so is not seen in a few."""
    start = first_tensors(model, image, classes)
    passes = [training_pass(model, start, image, classes, i * batch, batch, digests=i == 0)
              for i in range(batches)]
    if frozen:
        passes.append(training_pass(model, start, image, classes, 2 * batch, batch, frozen))
    rows = [row["float_errors"] for row in passes]
    rows += more_float_errors(model, start, image, classes, batch, batches, yardstick)
    content = dict(
        made_by=f"make_models.py with PyTorch {torch.__version__}, NumPy {np.__version__}, Python "
                f"{platform.python_version()}, double precision",
        network=model, seed=SEED, image=image, classes=classes, parameters=list(start),
        passes=passes, worst_float_errors=largest(rows), evaluation=evaluation(model, start, image, classes, 0, 2),
        trainings=[train(model, start, image, classes, batch, *t) for t in trainings])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", model + ".json")
    with open(path, "w") as file:
        file.write(json.dumps(content).replace('{"first"', '\n{"first"') + "\n")
    print(f"{path}: {os.path.getsize(path)} bytes, {sum(v.numel() for v in start.values())} parameters")
    for row in passes:
        print("  ", row["loss"], {k: f"{v:.1e}" for k, v in row["float_errors"].items()})
    print("   worst", {k: f"{v:.1e}" for k, v in content["worst_float_errors"].items()})
    print("   evaluation", content["evaluation"]["float_error"])
    for run in content["trainings"]:
        print("  ", run["losses"])


FROZEN = ["conv1_conv", "conv2_block1_preact_bn", "conv2_block1_0_conv", "conv2_block2_1_conv",
          "conv2_block3_2_bn", "conv3_block1_1_bn", "conv4_block2_2_conv", "post_bn", "predictions"]

MODELS = dict(
    dogcat=dict(image=(64, 78, 3), classes=2, batches=4, yardstick=16, batch=8),
    nature7=dict(image=(126, 158, 3), classes=5, batches=4, yardstick=16, batch=6),
    chips=dict(image=(35, 50, 3), classes=2, batches=4, yardstick=16, batch=8,
               frozen=["conv2d", "conv2d_2", "dense"]),
    vgg16=dict(image=(64, 32, 3), classes=4, batches=3, yardstick=16, batch=2),
    resnet50v2=dict(image=(32, 33, 3), classes=3, batches=1, yardstick=6, batch=6, frozen=FROZEN,
                    trainings=[(5, 0.0003, 0.0), (3, 0.0003, 0.9)]),
    resnet101v2=dict(image=(32, 33, 3), classes=3, batches=1, yardstick=4, batch=4),
    resnet152v2=dict(image=(32, 33, 3), classes=3, batches=1, yardstick=4, batch=4),
    resnet18=dict(image=(64, 47, 3), classes=3, batches=2, yardstick=6, batch=6,
                  frozen=["conv1", "bn1", "layer1.0.conv2", "layer2.0.downsample.0", "layer3.1.bn2"]),
    resnet50=dict(image=(64, 47, 3), classes=3, batches=1, yardstick=4, batch=6),
    mobilenetv2=dict(image=(64, 47, 3), classes=3, batches=1, yardstick=4, batch=6),
    densenet121=dict(image=(64, 47, 3), classes=3, batches=1, yardstick=4, batch=6),
)
MODELS["efficientnet-lite0"] = dict(image=(64, 47, 3), classes=3, batches=1, yardstick=4, batch=6)

if __name__ == "__main__":
    check_philox()
    check_norm()
    check_train()
    for model in sys.argv[1:] or MODELS:
        write(model, **MODELS[model])

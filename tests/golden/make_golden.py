#!/usr/bin/python3
"""Makes dogcat.json and layers.json beside this file: five training steps of two networks for every
update rule, computed by PyTorch in double, for reference_test.cpp and float_test.cpp.

By hand, with Debian's packages python3-torch and python3-numpy:  tests/golden/make_golden.py

Weights and images are not stored. Both sides draw them from Philox4x32-10 (src/core/random/random_words.h,
src/model/graph.cpp), written a second time in golden_numbers.py and checked against Random123's
known answers. The update rules are those of tf.keras' OptimizerV2 (TensorFlow 2.1 to 2.10), written
out in full because PyTorch's own differ in where epsilon goes; where they agree, they are checked
against torch.optim. Compared once by hand with tf_keras 2.21 and its `legacy` optimizers in double:
losses of the five steps within 7e-8 for every rule (Keras keeps rates and betas as floats).
"""
import json
import math
import os
import platform

import numpy as np
import torch
import torch.nn.functional as F

from golden_numbers import SEED, check_philox, labelled, unit, words

STEPS = 5


def kernel(shape, origin):
    """glorot_uniform in Keras' layout, rounded to float."""
    area = math.prod(shape[:-2])
    limit = math.sqrt(6.0 / (area * (shape[-2] + shape[-1])))
    values = (2 * unit(words(math.prod(shape), "weights", origin)) - 1) * limit
    return values.astype(np.float32).astype(np.float64).reshape(shape)


# ------------------------------------------------------------------------------------ networks
# A layer is (type, origin, figures); `origin` is the node's index in the C++ graph, input = 0.


def numbered(layers):
    return [(kind, i + 1, figures) for i, (kind, figures) in enumerate(layers)]


def dogcat():
    layers = []
    for filters in (32, 64, 128, 128):
        layers += [("conv", (filters, 3, 1, "valid")), ("relu", ()), ("max", (2, 2, "valid"))]
    layers += [("flatten", ()), ("dense", (512,)), ("relu", ()), ("dropout", ()),
               ("dense", (256,)), ("relu", ()), ("dropout", ()), ("dense", (1,)), ("sigmoid", ())]
    return numbered(layers)


def layers_net():
    """Every kind of layer, `same` padding with odd amounts, strides."""
    return numbered([
        ("conv", (8, 3, 1, "same")), ("relu", ()), ("average", (2, 2, "valid")),
        ("conv", (12, 5, 2, "same")), ("relu", ()), ("max", (3, 2, "same")),
        ("conv", (10, 3, 1, "valid")), ("relu", ()), ("average", (3, 2, "same")),
        ("global", ()), ("dense", (7,)), ("relu", ()), ("dense", (4,)), ("softmax", ())])


def pads(kind, n, k, s):
    total = 0 if kind == "valid" else max((-(-n // s) - 1) * s + k - n, 0)
    return total // 2, total - total // 2


def padded(x, k, s, kind, value=0.0):
    """x is N C H W."""
    return F.pad(x, (*pads(kind, x.shape[3], k, s), *pads(kind, x.shape[2], k, s)), value=value)


def starting_weights(net, image):
    """[(name, array)] in model order, Keras' names and layouts; found by a dry run of shapes."""
    weights, seen, (h, w, c) = [], {"conv2d": 0, "dense": 0}, image

    def add(base, shape, origin):
        name = base if not seen[base] else f"{base}_{seen[base]}"
        seen[base] += 1
        weights.extend([(name + "/kernel", kernel(shape, origin)),
                        (name + "/bias", np.zeros(shape[-1]))])

    for kind, origin, f in net:
        if kind == "conv":
            add("conv2d", (f[1], f[1], c, f[0]), origin)
            c = f[0]
        if kind in ("conv", "max", "average"):
            k, s, padding = f[-3:]
            h, w = ((n + sum(pads(padding, n, k, s)) - k) // s + 1 for n in (h, w))
        elif kind == "global":
            h = w = 1
        elif kind == "dense":
            add("dense", (h * w * c, f[0]), origin)
            h, w, c = 1, 1, f[0]
    return weights


def loss_of(net, weights, pixels, labels):
    """Mean loss and number of correct predictions; weights in Keras' layouts."""
    dtype, it = weights[0].dtype, iter(weights)
    # The program's scale is the float next to 1/255, on every backend.
    x = torch.from_numpy(pixels).to(dtype).permute(0, 3, 1, 2) * float(np.float32(1) / np.float32(255))
    t = torch.from_numpy(labels)
    for kind, _, f in net:
        if kind == "conv":
            filters = next(it).permute(3, 2, 0, 1)  # HWIO -> OIHW
            x = F.conv2d(padded(x, *f[1:]), filters, next(it), stride=f[2])
        elif kind == "relu":
            x = F.relu(x)
        elif kind == "max":
            x = F.max_pool2d(padded(x, *f, value=-math.inf), f[0], f[1])
        elif kind == "average":  # the padding does not count
            inside = padded(torch.ones_like(x), *f)
            x = F.avg_pool2d(padded(x, *f), f[0], f[1]) / F.avg_pool2d(inside, f[0], f[1])
        elif kind == "global":
            x = x.mean((2, 3))
        elif kind == "flatten":
            x = x.permute(0, 2, 3, 1).flatten(1)  # height, width, channel
        elif kind == "dense":
            x = x @ next(it) + next(it)
        elif kind == "sigmoid":
            loss = F.binary_cross_entropy_with_logits(x[:, 0], t.to(dtype))
            correct = (torch.sigmoid(x[:, 0]) > 0.5).long() == t
        elif kind == "softmax":
            loss, correct = F.cross_entropy(x, t), x.argmax(1) == t
    return loss, int(correct.sum())


def gradients(net, weights, pixels, labels):
    leaves = [w.detach().requires_grad_() for w in weights]
    loss, correct = loss_of(net, leaves, pixels, labels)
    loss.backward()
    return loss.item(), correct, [leaf.grad for leaf in leaves]


# -------------------------------------------------------------------------------- update rules

RULES = [
    dict(name="sgd", rule="sgd", rate=0.01, momentum=0.0, nesterov=False),
    dict(name="sgd_momentum", rule="sgd", rate=0.01, momentum=0.9, nesterov=False),
    dict(name="sgd_nesterov", rule="sgd", rate=0.01, momentum=0.9, nesterov=True),
    dict(name="rmsprop", rule="rmsprop", rate=0.001, momentum=0.0, centered=False),
    dict(name="rmsprop_momentum", rule="rmsprop", rate=0.001, momentum=0.9, centered=False),
    dict(name="rmsprop_centered", rule="rmsprop", rate=0.001, momentum=0.0, centered=True),
    dict(name="adam", rule="adam", rate=0.001),
]


class Optimizer:
    """tf.keras OptimizerV2's arithmetic for one tensor; slots start at zero."""

    def __init__(self, rule, like):
        self.rule, self.t = rule, 0
        self.slots = [torch.zeros_like(like) for _ in range(3)]

    def step(self, w, g):
        self.t += 1
        return getattr(self, self.rule["rule"])(w, g, self.rule["rate"])

    def sgd(self, w, g, rate):
        velocity, momentum = self.slots[0], self.rule["momentum"]
        if momentum == 0:
            return w - rate * g
        velocity.mul_(momentum).sub_(rate * g)
        return w + (momentum * velocity - rate * g if self.rule["nesterov"] else velocity)

    def rmsprop(self, w, g, rate, rho=0.9, epsilon=1e-7):
        square, mean, moment = self.slots
        square.mul_(rho).add_((1 - rho) * g * g)
        if self.rule["momentum"] > 0:  # epsilon inside the root
            moment.mul_(self.rule["momentum"]).add_(rate * g / torch.sqrt(square + epsilon))
            return w - moment
        variance = square
        if self.rule["centered"]:
            mean.mul_(rho).add_((1 - rho) * g)
            variance = square - mean * mean
        return w - rate * g / (torch.sqrt(variance) + epsilon)  # epsilon outside the root

    def adam(self, w, g, rate, beta1=0.9, beta2=0.999, epsilon=1e-7):
        m, v, _ = self.slots
        alpha = rate * math.sqrt(1 - beta2**self.t) / (1 - beta1**self.t)
        m.add_((g - m) * (1 - beta1))
        v.add_((g * g - v) * (1 - beta2))
        return w - alpha * m / (torch.sqrt(v) + epsilon)


def check_rules():
    """Against torch.optim, where it computes the same: at a constant rate, and with epsilon 0 for
    Adam (theirs goes elsewhere)."""
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(50, generator=generator, dtype=torch.double)
    slopes = [torch.randn(50, generator=generator, dtype=torch.double) for _ in range(4)]
    twins = {
        "sgd": lambda p: torch.optim.SGD(p, 0.01),
        "sgd_momentum": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
        "sgd_nesterov": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9, nesterov=True),
        "rmsprop": lambda p: torch.optim.RMSprop(p, 0.001, alpha=0.9, eps=1e-7),
        "rmsprop_centered": lambda p: torch.optim.RMSprop(p, 0.001, 0.9, eps=1e-7, centered=True),
        "adam": lambda p: torch.optim.Adam(p, 0.001, eps=0.0),
    }
    for rule in RULES:
        if rule["name"] not in twins:
            continue
        theirs = start.clone().requires_grad_()
        twin, ours, optimizer = twins[rule["name"]]([theirs]), start, Optimizer(rule, start)
        if rule["rule"] == "adam":
            optimizer.adam = lambda w, g, rate, o=optimizer: Optimizer.adam(o, w, g, rate, epsilon=0.0)
        for slope in slopes:
            theirs.grad = slope.clone()
            twin.step()
            ours = optimizer.step(ours, slope)
        assert torch.allclose(ours, theirs.detach(), rtol=0, atol=1e-13), rule["name"]


# --------------------------------------------------------------------------------------- files


def digest(names, tensors):
    """The norm of each tensor, its dot product with fixed noise (which every element enters), and
    16 elements."""
    rows = []
    for i, (name, tensor) in enumerate(zip(names, tensors)):
        flat = tensor.detach().double().numpy().reshape(-1)
        noise = unit(words(flat.size, "noise", i)) - 0.5
        at = sorted({int(x) for x in np.linspace(0, flat.size - 1, 16)})
        rows.append(dict(name=name, norm=float(np.linalg.norm(flat)), dot=float(flat @ noise),
                         at=at, values=[float(flat[j]) for j in at]))
    return rows


def train(net, names, start, rule, batch, image, classes):
    weights = [torch.from_numpy(v) for v in start]
    optimizers = [Optimizer(rule, w) for w in weights]
    losses, correct = [], []
    for step in range(STEPS):
        loss, right, grads = gradients(net, weights, *labelled(step * batch, batch, image, classes))
        losses.append(loss)
        correct.append(right)
        if step == 0:
            first = digest(names, grads)
        weights = [o.step(w, g) for o, w, g in zip(optimizers, weights, grads)]
    return first, dict(rule, losses=losses, correct=correct, last=digest(names, grads),
                       weights=digest(names, weights))


def float_errors(net, names, start, batch, batches, image, classes):
    """PyTorch's float gradients against its double ones, relative norm of each tensor, for some
    batches: the yardstick for float backends."""
    rows = []
    for i in range(batches):
        data = labelled(i * batch, batch, image, classes)
        exact, _, double = gradients(net, [torch.from_numpy(v) for v in start], *data)
        loss, _, single = gradients(net, [torch.from_numpy(v).float() for v in start], *data)
        errors = [float((s.double() - d).norm() / d.norm()) for s, d in zip(single, double)]
        rows.append(dict(first=i * batch, loss=abs(loss - exact) / exact,
                         tensors=dict(zip(names, errors)), worst=max(errors)))
    return dict(batch=batch, batches=rows)


def write(name, net, image, classes, batch):
    weights = starting_weights(net, image)
    names, start = [n for n, _ in weights], [v for _, v in weights]
    runs = [train(net, names, start, rule, batch, image, classes) for rule in RULES]
    content = dict(
        made_by=f"make_golden.py with PyTorch {torch.__version__}, NumPy {np.__version__}, Python "
                f"{platform.python_version()}, double precision",
        network=name, seed=SEED, image=image, classes=classes, batch=batch,
        start=digest(names, [torch.from_numpy(v) for v in start]), first=runs[0][0],
        runs=[run for _, run in runs],
        float_errors=float_errors(net, names, start, 30, 4, image, classes))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".json")
    with open(path, "w") as file:
        file.write(json.dumps(content).replace('{"name"', '\n{"name"') + "\n")
    worst = [f"{row['worst']:.1e}" for row in content["float_errors"]["batches"]]
    print(f"{path}: {os.path.getsize(path)} bytes; PyTorch's float errors {', '.join(worst)}")
    for run in content["runs"]:
        print(f"  {run['name']:18s}", " ".join(f"{loss:.6f}" for loss in run["losses"]), run["correct"])


if __name__ == "__main__":
    check_philox()
    check_rules()
    write("layers", layers_net(), (49, 46, 3), 4, 6)
    write("dogcat", dogcat(), (64, 64, 3), 2, 8)

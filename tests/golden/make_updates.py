#!/usr/bin/env python3
"""Makes updates.json beside this file: weights after six steps of whole updates (every rule, with
penalty, decay, clipping, layer-wise rates, momentum correction), computed from the formulas of the
papers and of tf.keras, for updates_test.cpp.

By hand, with Python's standard library:  tests/golden/make_updates.py

LARS: You, Gitman, Ginsburg, "Large Batch Training of Convolutional Networks", 2017, algorithm 1.
LAMB: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", 2020,
algorithm 2, phi(x) = x. In both, biases have neither decay nor a rate of their own.
Clipping: g = clip(g, -c, c), then g * min(1, n / |all of g|) as tf.clip_by_global_norm.
Momentum: v = m v - lr g; w += v (Keras); correction as in Horovod, m * lr / (lr before), but where one of the two is 0.
Compared once by hand with optax 0.2.8 in double: LARS without decay (optax has another one in the
ratio), LAMB, decay and both clippings agree within 3e-16.
"""
import json
import os
from math import fsum, sqrt

#          name, elements, decays (a kernel), l2
TENSORS = [("a/kernel", 40, True, 0.03125), ("a/bias", 5, False, 0), ("b/kernel", 67, True, 0),
           ("b/bias", 3, False, 0), ("c/kernel", 9, True, 0.5)]
RATES = [0.1, 0.1, 0.2, 0.05, 0.05, 0.3]


def number(i, salt):
    """A number in [-1, 1): both sides of the test make the same."""
    return ((i * 7919 + salt * 104729) % 2000) / 1000 - 1


def norm(values):
    return sqrt(fsum(x * x for x in values))


def ratio(weights, gradients, trust=1.0, decay=0.0):
    """A layer's rate: 1 where a norm is 0 and says nothing."""
    w, g = norm(weights), norm(gradients)
    return trust * w / (g + decay * w) if w > 0 and g > 0 else 1.0


def rms_prop(w, g, slots, lr, momentum, centered, rho=0.9, eps=1e-7):
    """tf.keras: epsilon outside the root without momentum, and inside with it."""
    for i, x in enumerate(g):
        slots[0][i] = rho * slots[0][i] + (1 - rho) * x * x
        slots[1][i] = rho * slots[1][i] + (1 - rho) * x
        variance = slots[0][i] - (slots[1][i] ** 2 if centered else 0)
        if momentum:
            slots[2][i] = momentum * slots[2][i] + lr * x / sqrt(variance + eps)
            w[i] -= slots[2][i]
        else:
            w[i] -= lr * x / (sqrt(variance) + eps)


def moments(g, slots, b1=0.9, b2=0.999):
    slots[0] = [b1 * a + (1 - b1) * b for a, b in zip(slots[0], g)]
    slots[1] = [b2 * a + (1 - b2) * b * b for a, b in zip(slots[1], g)]


def run(rule, rates=RATES, momentum=0.0, nesterov=False, centered=False, trust=0.001, decay=0.0, clip_value=None,
        clip_norm=None, correct=False, factor=1.0, zero=None, still=None):
    """`zero` begins as zeros, `still` has no gradient, rates of "b/" are `factor` times the others'."""
    w = {n: [0.0 if n == zero else number(i, k) for i in range(c)] for k, (n, c, _, _) in enumerate(TENSORS)}
    state = {n: [[0.0] * len(x) for _ in range(3)] for n, x in w.items()}
    for step, of_step in enumerate(rates):
        m = momentum
        if correct and step > 0 and of_step > 0 and rates[step - 1] > 0:
            m = momentum * of_step / rates[step - 1]
        # the gradient of the loss, made up, and of l2 * sum(w^2)
        g = {n: [(0 if n == still else number(i, 10 + 5 * step + k) + 0.25 * x) + 2 * l2 * x
                 for i, x in enumerate(w[n])] for k, (n, _, _, l2) in enumerate(TENSORS)}
        if clip_value is not None:
            g = {n: [max(-clip_value, min(clip_value, x)) for x in xs] for n, xs in g.items()}
        if clip_norm is not None:
            total = norm([x for xs in g.values() for x in xs])
            g = {n: [x * clip_norm / max(total, clip_norm) for x in xs] for n, xs in g.items()}
        for n, _, kernel, _ in TENSORS:
            beta = decay if kernel else 0.0
            lr = of_step * (factor if n.startswith("b/") else 1)
            slots = state[n]
            b1, b2, t = 0.9, 0.999, step + 1
            if rule not in ("lars", "lamb"):
                w[n] = [x * (1 - lr * beta) for x in w[n]]           # decoupled
            if rule == "sgd":
                for i, x in enumerate(g[n]):
                    slots[0][i] = m * slots[0][i] - lr * x
                    w[n][i] += m * slots[0][i] - lr * x if nesterov else slots[0][i]
            elif rule == "rmsprop":
                rms_prop(w[n], g[n], slots, lr, m, centered)
            elif rule in ("adam", "adamw"):                          # with "epsilon hat"
                moments(g[n], slots)
                alpha = lr * sqrt(1 - b2 ** t) / (1 - b1 ** t)
                w[n] = [x - alpha * a / (sqrt(b) + 1e-7) for x, a, b in zip(w[n], slots[0], slots[1])]
            elif rule == "lars":
                lr *= ratio(w[n], g[n], trust, beta) if kernel else 1.0
                for i in range(len(w[n])):
                    slots[0][i] = m * slots[0][i] + lr * (g[n][i] + beta * w[n][i])
                    w[n][i] -= slots[0][i]
            elif rule == "lamb":
                moments(g[n], slots)
                r = [(a / (1 - b1 ** t)) / (sqrt(b / (1 - b2 ** t)) + 1e-6) for a, b in zip(slots[0], slots[1])]
                u = [a + beta * x for a, x in zip(r, w[n])]
                lr *= ratio(w[n], u) if kernel else 1.0
                w[n] = [x - lr * y for x, y in zip(w[n], u)]
    return w


CASES = {
    "sgd_penalty": dict(rule="sgd"),
    "sgd_all": dict(rule="sgd", momentum=0.9, decay=0.1, clip_value=0.6, clip_norm=3.0, correct=True, factor=0.25),
    "sgd_wide_limits": dict(rule="sgd", momentum=0.5, clip_value=50.0, clip_norm=1000.0),
    "sgd_correction": dict(rule="sgd", momentum=0.9, correct=True),
    "sgd_correction_pauses": dict(rule="sgd", momentum=0.9, correct=True, rates=[0.1, 0.2, 0.0, 0.0, 0.1, 0.05]),
    "nesterov_all": dict(rule="sgd", momentum=0.9, nesterov=True, decay=0.05, clip_value=0.6, clip_norm=2.0,
                         correct=True),
    "rmsprop_decay": dict(rule="rmsprop", decay=0.1, factor=0.25),
    "rmsprop_momentum": dict(rule="rmsprop", momentum=0.9, clip_norm=3.0),
    "rmsprop_centered": dict(rule="rmsprop", centered=True, clip_value=0.7),
    "rmsprop_all": dict(rule="rmsprop", momentum=0.5, centered=True, decay=0.1, clip_value=0.6, clip_norm=3.0,
                        correct=True),
    "adam": dict(rule="adam", factor=0.5),
    "adam_clipped": dict(rule="adam", clip_value=0.7, clip_norm=0.01),
    "adamw_all": dict(rule="adamw", decay=0.1, clip_value=0.6, clip_norm=3.0, factor=0.25),
    "lars": dict(rule="lars", momentum=0.9, trust=0.02),
    "lars_decay": dict(rule="lars", momentum=0.9, trust=0.02, decay=0.05, correct=True),
    "lars_clipped": dict(rule="lars", momentum=0.5, trust=0.1, decay=0.05, clip_value=0.7, clip_norm=2.0, factor=0.25),
    "lars_of_zeros": dict(rule="lars", momentum=0.9, zero="b/kernel"),
    "lars_of_no_gradient": dict(rule="lars", momentum=0.9, still="b/kernel"),
    "lamb": dict(rule="lamb"),
    "lamb_decay": dict(rule="lamb", decay=0.1, factor=0.25),
    "lamb_clipped": dict(rule="lamb", decay=0.1, clip_value=0.7, clip_norm=0.01),
    "lamb_of_zeros": dict(rule="lamb", zero="b/kernel"),
    "lamb_of_no_gradient": dict(rule="lamb", still="b/kernel"),
}


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "updates.json")
    cases = [{"name": name, "rates": RATES, **options, "weights": run(**options)} for name, options in CASES.items()]
    with open(path, "w") as file:
        json.dump({"tensors": [dict(zip(("name", "count", "kernel", "l2"), t)) for t in TENSORS],
                   "cases": cases}, file, indent=None, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()

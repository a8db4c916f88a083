#!/usr/bin/env python3
"""Makes updates.json beside this file: weights after six steps of whole updates (penalty, clipping,
layer-wise rates, momentum correction), computed from the papers' formulas, for updates_test.cpp.

By hand, with Python's standard library:  tests/golden/make_updates.py

LARS: You, Gitman, Ginsburg, "Large Batch Training of Convolutional Networks", 2017, algorithm 1.
LAMB: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", 2020,
algorithm 2, phi(x) = x. In both, biases have neither decay nor a rate of their own.
Clipping: g = clip(g, -c, c), then g * min(1, n / |all of g|) as tf.clip_by_global_norm.
Momentum: v = m v - lr g; w += v (Keras); correction as in Horovod, m * lr / (lr before).
Compared once by hand with optax 0.2.8 in double: LARS without decay (optax has another one in the
ratio), LAMB, decay and both clippings agree within 3e-16.
"""
import json
import os
from math import fsum, sqrt

STEPS = 6
#          name, elements, decays (a kernel), l2
TENSORS = [("a/kernel", 40, True, 0.03125), ("a/bias", 5, False, 0), ("b/kernel", 67, True, 0),
           ("b/bias", 3, False, 0), ("c/kernel", 9, True, 0.5)]
RATES = [0.1, 0.1, 0.2, 0.05, 0.05, 0.3]


def number(i, salt):
    """A number in [-1, 1): both sides of the test make the same."""
    return ((i * 7919 + salt * 104729) % 2000) / 1000 - 1


def norm(values):
    return sqrt(fsum(x * x for x in values))


def run(rule, momentum=0.0, trust=0.001, decay=0.0, clip_value=None, clip_norm=None, correct=False):
    w = {n: [number(i, k) for i in range(c)]
         for k, (n, c, _, _) in enumerate(TENSORS)}
    v = {n: [0.0] * len(x) for n, x in w.items()}   # velocity, or Adam's first moment
    s = {n: [0.0] * len(x) for n, x in w.items()}   # Adam's second moment
    for step in range(STEPS):
        lr = RATES[step]
        m = momentum
        if correct and step > 0:
            m = momentum * lr / RATES[step - 1]
        # the gradient of the loss, made up, and of l2 * sum(w^2)
        g = {n: [number(i, 10 + 5 * step + k) + 0.25 * x + 2 * l2 * x for i, x in enumerate(w[n])]
             for k, (n, _, _, l2) in enumerate(TENSORS)}
        if clip_value is not None:
            g = {n: [max(-clip_value, min(clip_value, x)) for x in xs] for n, xs in g.items()}
        if clip_norm is not None:
            total = norm([x for xs in g.values() for x in xs])
            g = {n: [x * clip_norm / max(total, clip_norm) for x in xs] for n, xs in g.items()}
        for n, _, kernel, _ in TENSORS:
            beta = decay if kernel else 0.0
            if rule == "sgd":
                for i in range(len(w[n])):
                    x = w[n][i] * (1 - lr * beta)           # decoupled
                    v[n][i] = m * v[n][i] - lr * g[n][i]
                    w[n][i] = x + v[n][i]
            elif rule == "lars":
                rate = trust * norm(w[n]) / (norm(g[n]) + beta * norm(w[n])) if kernel else 1.0
                for i in range(len(w[n])):
                    v[n][i] = m * v[n][i] + lr * rate * (g[n][i] + beta * w[n][i])
                    w[n][i] -= v[n][i]
            elif rule == "lamb":
                b1, b2, eps, t = 0.9, 0.999, 1e-6, step + 1
                v[n] = [b1 * a + (1 - b1) * b for a, b in zip(v[n], g[n])]
                s[n] = [b2 * a + (1 - b2) * b * b for a, b in zip(s[n], g[n])]
                r = [(a / (1 - b1 ** t)) / (sqrt(b / (1 - b2 ** t)) + eps) for a, b in zip(v[n], s[n])]
                u = [a + beta * x for a, x in zip(r, w[n])]
                ratio = norm(w[n]) / norm(u) if kernel else 1.0
                w[n] = [x - lr * ratio * y for x, y in zip(w[n], u)]
    return {n: x for n, x in w.items()}


CASES = {
    "sgd_penalty": dict(rule="sgd"),
    "sgd_all": dict(rule="sgd", momentum=0.9, decay=0.1, clip_value=0.6, clip_norm=3.0, correct=True),
    "sgd_wide_limits": dict(rule="sgd", momentum=0.5, clip_value=50.0, clip_norm=1000.0),
    "sgd_correction": dict(rule="sgd", momentum=0.9, correct=True),
    "lars": dict(rule="lars", momentum=0.9, trust=0.02),
    "lars_decay": dict(rule="lars", momentum=0.9, trust=0.02, decay=0.05),
    "lars_clipped": dict(rule="lars", momentum=0.5, trust=0.1, decay=0.05, clip_value=0.7, clip_norm=2.0),
    "lamb": dict(rule="lamb"),
    "lamb_decay": dict(rule="lamb", decay=0.1),
    "lamb_clipped": dict(rule="lamb", decay=0.1, clip_value=0.7, clip_norm=0.01),
}


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "updates.json")
    cases = [{"name": name, **options, "weights": run(**options)} for name, options in CASES.items()]
    with open(path, "w") as file:
        json.dump({"rates": RATES,
                   "tensors": [dict(zip(("name", "count", "kernel", "l2"), t)) for t in TENSORS],
                   "cases": cases}, file, indent=None, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()

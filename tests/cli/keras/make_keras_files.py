"""Writes keras_files.json: files of Keras for ../keras_weights_test.py, by name, as base64 of zlib's form.

Needs Keras 3 with h5py (made with Keras 3.15.1, TensorFlow 2.21.0, h5py 3.14.0): python make_keras_files.py
"""
import base64
import json
import os
import tempfile
import zlib

import keras
import numpy as np
from keras import layers


def number(place):
    """As the test makes them: exact in 16 bits, too."""
    return (place * 37 % 101 - 40) / 256


def fill(model, program=keras):
    """Each array of the network by its place among those that `number` has made; variances are positive."""
    for layer in model.layers:
        if isinstance(layer, program.Model):
            fill(layer, program)
            continue
        for variable in layer.weights:
            word = variable.name.split("/")[-1].split(":")[0].replace("depthwise_kernel", "kernel")
            if word in ("mean", "variance", "count") or "generator" in variable.name:
                continue
            values = [number(i + sum(map(ord, word))) for i in range(int(np.prod(variable.shape)))]
            if word == "moving_variance":
                values = [abs(v) + 0.5 for v in values]
            variable.assign(np.reshape(np.array(values, "float32"), variable.shape))


def body(x, names, scale=False, program=keras):
    layers = program.layers
    x = layers.Conv2D(4, 3, name=names[0])(x)
    x = layers.BatchNormalization(name=names[1])(x)
    x = layers.ReLU()(x)
    x = layers.DepthwiseConv2D(3, depth_multiplier=2, name=names[2])(x)
    x = layers.BatchNormalization(scale=scale, name=names[3])(x)
    x = layers.ReLU()(x)
    x = layers.Flatten()(x)
    return layers.ReLU()(layers.Dense(5, name=names[4])(x))


OWN = ["stem", "norm", "deep", "deep_norm", "wide"]
MADE_UP = ["conv2d_7", "batch_normalization_9", "depthwise_conv2d_2", "batch_normalization_11", "dense_4"]


def network(names, head, scale=False):
    image = keras.Input((8, 8, 3))
    model = keras.Model(image, layers.Dense(2, activation="softmax", name=head)(body(image, names, scale)))
    model.compile("adam", "categorical_crossentropy")
    model.optimizer.build(model.trainable_variables)
    fill(model)
    return model


def nested():
    image = keras.Input((8, 8, 3))
    base = keras.Model(image, body(image, OWN))
    adapted = layers.Normalization(name="adapted")
    adapted.adapt(np.arange(48, dtype="float32").reshape(1, 4, 4, 3))
    model = keras.Sequential([keras.Input((8, 8, 3)), adapted, base, layers.Dropout(0.5),
                              layers.Dense(2, activation="softmax", name="mine")])
    fill(model)
    return model


def kept(model, path):
    model.save_weights(path) if path.endswith(".weights.h5") else model.save(path)
    with open(path, "rb") as f:
        return base64.b64encode(zlib.compress(f.read(), 9)).decode()


def write(files, name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "w") as f:
        json.dump(files, f, indent=1)
        f.write("\n")


def main():
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        def keep(model, name):
            files[name] = kept(model, os.path.join(folder, name))

        own = network(OWN, "head")
        for name in ("own.keras", "own.weights.h5", "own.h5"):
            keep(own, name)
        keep(network(OWN, "head", scale=True), "scaled.weights.h5")
        made_up = network(MADE_UP, "dense_5")
        for name in ("made_up.keras", "made_up.h5"):
            keep(made_up, name)
        for name in ("nested.keras", "nested.h5"):
            keep(nested(), name)
    write(files, "keras_files.json")


if __name__ == "__main__":
    main()

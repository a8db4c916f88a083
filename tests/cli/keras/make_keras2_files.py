"""Writes keras2_files.json: files of Keras 2 and of classes of its user for ../keras_weights_test.py, as those of
make_keras_files.py.

All networks were fitted, which leaves an optimizer, metrics and generators of random numbers in their files. Needs
tf_keras and Keras 3 (made with tf_keras 2.21.0, Keras 3.15.1, TensorFlow 2.21.0): python make_keras2_files.py
"""
import os
import tempfile

import keras
import numpy as np
import tf_keras

import make_keras_files as files


def fit(model):
    model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    model.fit(np.zeros((2, 8, 8, 3), "float32"), np.eye(2, dtype="float32"), verbose=0)


def fitted(program, names, head, frozen=()):
    """The test's network; with `frozen` layers within another, where Keras 2 lists those behind all others."""
    image = program.Input((8, 8, 3))
    x = program.layers.Rescaling(1.0)(image)
    x = files.body(x, names, program=program)
    answer = program.layers.Dense(2, activation="softmax", name=head)
    if frozen:
        base = program.Model(image, x, name="base")
        for name in frozen:
            base.get_layer(name).trainable = False
        model = program.Sequential([image, base, program.layers.Dropout(0.5), answer])
    else:
        model = program.Model(image, answer(program.layers.Dropout(0.5)(x)))
    fit(model)
    files.fill(model, program)
    return model


class Members(keras.Model):
    """Members are in another order in the alphabet than in the network."""

    def __init__(self):
        super().__init__()
        self.stem = keras.layers.Conv2D(4, 3)
        self.norm = keras.layers.BatchNormalization()
        self.deep = keras.layers.DepthwiseConv2D(3, depth_multiplier=2)
        self.deep_norm = keras.layers.BatchNormalization()
        self.wide = keras.layers.Dense(5, activation="relu")
        self.head = keras.layers.Dense(2, activation="softmax")

    def call(self, x, training=False):
        x = keras.ops.relu(self.norm(self.stem(x), training=training))
        x = keras.ops.relu(self.deep_norm(self.deep(x), training=training))
        return self.head(self.wide(keras.ops.reshape(x, (-1, 128))))


def members():
    model = Members()
    fit(model)
    files.fill(model)
    return model


def main():
    with tempfile.TemporaryDirectory() as folder:
        kept = {}
        own = fitted(tf_keras, files.OWN, "head")
        for name in ("keras2.keras", "keras2.weights.h5", "keras2.h5"):
            kept[name] = files.kept(own, os.path.join(folder, name))
        kept["frozen2.h5"] = files.kept(fitted(tf_keras, files.OWN, "head", ["stem", "wide"]),
                                        os.path.join(folder, "frozen2.h5"))
        kept["made_up_frozen2.h5"] = files.kept(fitted(tf_keras, files.MADE_UP, "dense_5", ["conv2d_7"]),
                                                os.path.join(folder, "made_up_frozen2.h5"))
        kept["fitted.keras"] = files.kept(fitted(keras, files.OWN, "head"), os.path.join(folder, "fitted.keras"))
        kept["members.weights.h5"] = files.kept(members(), os.path.join(folder, "members.weights.h5"))
    files.write(kept, "keras2_files.json")


if __name__ == "__main__":
    main()

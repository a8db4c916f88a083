"""Networks of keras.applications with random weights: their files, and their answers.

    python networks.py PACKAGE FOLDER NAME SIDE CLASSES PIXELS FORM...

PACKAGE is keras (3) or tf_keras (2). Writes NAME.FORM for each form (keras, weights.h5, h5; nested.keras: the network
without its last layer within another one), images as BMP files of SIDE x SIDE pixels, and NAME.json: logarithms of the
probabilities of all classes by the image's name, for pixels as PIXELS says (unit, symmetric, imagenet).
scripts/check_keras runs it.
"""
import importlib
import json
import os
import struct
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")

import numpy as np

keras = importlib.import_module(sys.argv[1])

IMAGES = 8


def write_bmp(path, pixels):
    """24 bits, rows from the bottom; `pixels` are RGB."""
    height, width = pixels.shape[:2]
    rows = b"".join(row[:, ::-1].tobytes() + b"\0" * (-3 * width % 4) for row in pixels[::-1])
    head = struct.pack("<2sIHHI", b"BM", 54 + len(rows), 0, 0, 54)
    with open(path, "wb") as f:
        f.write(head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(rows), 0, 0, 0, 0) + rows)


def numbers_of(pixels, way):
    """As --normalize does."""
    x = pixels.astype("float32") / 255
    if way == "symmetric":
        return (x - 0.5) / 0.5
    if way == "imagenet":
        return (x - np.array([0.485, 0.456, 0.406], "float32")) / np.array([0.229, 0.224, 0.225], "float32")
    return x


def randomise(model, random):
    """Kernels stay as Keras drew them; all that it begins with zeros and ones becomes random."""
    for layer in model.layers:
        for variable in layer.weights:
            shape, word = variable.shape, variable.name.split("/")[-1].split(":")[0]
            if word in ("bias", "beta", "moving_mean"):
                variable.assign(random.normal(0, 0.1, shape))
            elif word == "gamma":
                variable.assign(random.uniform(0.8, 1.2, shape))
            elif word == "moving_variance":
                variable.assign(random.uniform(0.5, 1.5, shape))


def nested(model, classes):
    """The same function: the last layer's numbers are the network's."""
    body = keras.Model(model.input, model.layers[-2].output, name="body")
    head = keras.layers.Dense(classes, activation="softmax")
    whole = keras.Sequential([keras.Input(model.input_shape[1:]), body, head])
    head.set_weights(model.layers[-1].get_weights())
    return whole


def main(folder, name, side, classes, way, *forms):
    random = np.random.default_rng(5)
    keras.utils.set_random_seed(5)
    side, classes = int(side), int(classes)
    model = getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3), classes=classes)
    randomise(model, random)
    for form in forms:
        path = os.path.join(folder, f"{name}.{form}")
        if form == "nested.keras":
            nested(model, classes).save(path)
        elif form == "weights.h5":
            model.save_weights(path)
        else:
            model.save(path)
    # Patches of one colour differ more than noise does.
    patches = random.integers(0, 256, (IMAGES, 8, 8, 3), "uint8")
    images = np.repeat(np.repeat(patches, -(-side // 8), 1), -(-side // 8), 2)[:, :side, :side]
    model.layers[-1].activation = keras.activations.linear
    logits = keras.Model(model.input, model.layers[-1](model.layers[-2].output))
    z = np.asarray(logits(numbers_of(images, way), training=False)).astype("float64")
    z -= z.max(1, keepdims=True)
    logs = z - np.log(np.exp(z).sum(1, keepdims=True))
    answers = {}
    for number, (image, row) in enumerate(zip(images, logs)):
        file = f"{name}-{number}.bmp"
        write_bmp(os.path.join(folder, file), np.ascontiguousarray(image))
        answers[file] = row.tolist()
    with open(os.path.join(folder, f"{name}.json"), "w") as f:
        json.dump(answers, f)


main(*sys.argv[2:])

"""Training steps of a network of cputrain in TensorFlow: python tensorflow_steps.py JOB.json (see job.py).

The step is one tf.function, and layers are those of Keras 2 (tf_keras), whose batch normalization is
TensorFlow's fused one; Keras 3 makes it of several operations. Options: `jit_compile` (XLA), `inter_op` (threads).
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import tensorflow as tf
import tf_keras as keras

import job as jobs
import layers

L = keras.layers


def translated(layer):
    """The Keras layer; None for the loss, which works on the numbers before sigmoid or softmax."""
    kind, name = layer["type"], layer["name"]
    if layer.get("padding") == "half" or layer.get("groups", 1) != 1:
        layers.not_translated(layer)
    penalty = keras.regularizers.L2(layer["l2"]) if layer.get("l2") else None
    if kind == "convolution":
        return L.Conv2D(layer["filters"], layer["kernel"], layer["stride"], layer["padding"],
                        use_bias=layer["bias"], kernel_regularizer=penalty, name=name)
    if kind == "dense":
        return L.Dense(layer["units"], use_bias=layer["bias"], kernel_regularizer=penalty, name=name)
    if kind == "max_pool":
        return L.MaxPooling2D(layer["size"], layer["stride"], layer["padding"], name=name)
    if kind == "average_pool":
        return L.AveragePooling2D(layer["size"], layer["stride"], layer["padding"], name=name)
    if kind == "zero_pad":
        sides = ((layer["top"], layer["bottom"]), (layer["left"], layer["right"]))
        return L.ZeroPadding2D(sides, name=name)
    if kind == "batch_norm":
        return L.BatchNormalization(epsilon=layer["epsilon"], momentum=layer["momentum"], name=name)
    if kind == "leaky_relu":
        return L.LeakyReLU(layer["slope"], name=name)
    if kind == "layer_norm":
        return L.LayerNormalization(epsilon=layer["epsilon"], center=layer["offset"], scale=layer["scale"], name=name)
    if kind == "dropout":
        return L.Dropout(layer["rate"], name=name)
    simple = {"relu": L.ReLU, "relu6": lambda name: L.ReLU(6, name=name),
              "silu": lambda name: L.Activation("silu", name=name), "flatten": L.Flatten, "add": L.Add,
              "concat": L.Concatenate, "global_average_pool": L.GlobalAveragePooling2D}
    if kind in simple:
        return simple[kind](name=name)
    if kind in ("sigmoid", "softmax"):
        return None
    layers.not_translated(layer)


def build(graph):
    """The network up to its logits; images come as bytes and are scaled inside, as in cputrain."""
    shape = graph["input"]
    images = keras.Input((shape["height"], shape["width"], shape["channels"]), dtype="uint8")
    scaled = tf.cast(images, tf.float32) * shape["scale"] + shape["offset"]
    maps, previous = {"input": scaled}, "input"
    for layer in graph["layers"]:
        made = translated(layer)
        if made is None:
            break
        read = [maps[name] for name in layers.inputs_of(layer, previous)]
        previous = layer["name"]
        maps[previous] = made(read if len(read) > 1 else read[0])
    return keras.Model(images, maps[previous])


def load(model, arrays):
    """Keras names a variable 'conv2d/kernel:0', and so does cputrain but for the number."""
    for variable in model.weights:
        variable.assign(arrays.pop(variable.name.split(":")[0]))
    assert not arrays, f"weights without a place: {sorted(arrays)}"


def optimizer_of(recipe):
    rate = recipe["learning_rate"]
    if recipe["optimizer"] == "rmsprop":
        return keras.optimizers.RMSprop(rate, epsilon=1e-14)  # under the root; others add its root, 1e-7, to the root
    if recipe["optimizer"] == "adam":
        return keras.optimizers.Adam(rate)
    return keras.optimizers.SGD(rate, momentum=recipe.get("momentum", 0.0))


class Training:
    """A network with its batch of photographs."""

    def __init__(self, job):
        if job["precision"] == "bf16":
            keras.mixed_precision.set_global_policy("mixed_bfloat16")
        graph, arrays = jobs.read_network(job)
        pixels, labels = jobs.read_images(job["images"], job["batch"])
        self.model = build(graph)
        load(self.model, arrays)
        self.x = tf.constant(pixels)
        single = graph["layers"][-1]["type"] == "sigmoid"
        self.y = tf.constant(labels.reshape(-1, 1) if single else labels)
        self.entropy = (keras.losses.BinaryCrossentropy if single else
                        keras.losses.SparseCategoricalCrossentropy)(from_logits=True)
        self.optimizer = optimizer_of(job["optimizer"])
        self.optimizer.build(self.model.trainable_variables)
        self.compiled = tf.function(self.training_step, jit_compile=job["options"].get("jit_compile"))

    def training_step(self):
        with tf.GradientTape() as tape:
            logits = tf.cast(self.model(self.x, training=True), tf.float32)
            value = self.entropy(self.y, logits) + tf.add_n(self.model.losses or [0.0])
        gradients = tape.gradient(value, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return value

    def step(self):
        return float(self.compiled())


def main():
    job = jobs.read_job()
    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(job["options"].get("inter_op", job["threads"]))
    at_start = jobs.peak_bytes()
    training = Training(job)
    jobs.answer(version=tf.__version__, parameters=training.model.count_params(), start_bytes=at_start,
                **jobs.measured(job, training.step))


main()

"""Trainings that begin with weights of Keras: keras/make_keras_files.py and make_keras2_files.py wrote them."""
import base64
import csv
import json
import os
import shutil
import struct
import unittest
import zlib

from formats import read_arrays, write_arrays
from keras_archives import archive, members
from tiny import TinyTest

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keras")
SHAPES = {"stem/kernel": [3, 3, 3, 4], "stem/bias": [4], "norm/gamma": [4], "norm/beta": [4], "norm/moving_mean": [4],
          "norm/moving_variance": [4], "deep/kernel": [3, 3, 1, 8], "deep/bias": [8], "deep_norm/gamma": [8],
          "deep_norm/beta": [8], "deep_norm/moving_mean": [8], "deep_norm/moving_variance": [8],
          "wide/kernel": [128, 5], "wide/bias": [5], "head/kernel": [5, 2], "head/bias": [2]}


def numbers(name):
    """As make_keras_files.py does; its deep_norm has no gamma."""
    count, word = 1, name.split("/")[1]
    for extent in SHAPES[name]:
        count *= extent
    if name == "deep_norm/gamma":
        return [1.0] * count
    return made(word, count)


def made(word, count):
    values = [((i + sum(map(ord, word))) * 37 % 101 - 40) / 256 for i in range(count)]
    return [abs(v) + 0.5 for v in values] if word == "moving_variance" else values


def packed(name, values=None):
    values = values or numbers(name)
    return struct.pack(f"<{len(values)}f", *values)


def has_hdf5(test):
    """Whether the program has libhdf5 and can load it here."""
    if "no HDF5" in test.expect(0, "info").stdout:
        return False
    with open(test.path("none.h5"), "wb") as f:
        f.write(b"\x89HDF\r\n\x1a\n")
    done = test.run_program("--data", "synthetic:8", "--dry-run", "--weights", "none.h5")
    return "which cannot be loaded" not in done.stderr


class KerasWeights(TinyTest):
    has_hdf5 = None  # asked once

    def setUp(self):
        super().setUp()
        if KerasWeights.has_hdf5 is None:
            KerasWeights.has_hdf5 = has_hdf5(self)
        if not KerasWeights.has_hdf5:
            self.skipTest("the program was built without HDF5, or it is not here")
        shutil.copy(os.path.join(HERE, "net.json"), self.path("net.json"))
        for part in ("keras_files.json", "keras2_files.json"):
            with open(os.path.join(HERE, part)) as f:
                files = json.load(f)
            for name, text in files.items():
                self.write(name, zlib.decompress(base64.b64decode(text)))
        self.make("data", ant=12, bee=12)

    def net(self, code, out, weights, *words, data="data", **options):
        return self.expect(code, "--model", "net.json", "--data", data, "--threads", "1", "--out", out, "--overwrite",
                           "--log-every", "1", "--weights", weights, *words, **options)

    def write_safetensors(self, name):
        write_arrays(self.path(name), {n: ("F32", shape, packed(n)) for n, shape in SHAPES.items()})
        return name

    def tensors(self, run):
        return {n: data for n, (*_, data) in read_arrays(self.path(run, "weights.safetensors"))[1].items()}

    def test_all_forms_begin_alike(self):
        """The losses are those of a training that begins with the same numbers in safetensors."""
        self.net(0, "wanted", self.write_safetensors("same.safetensors"))
        losses = [line["loss"] for line in self.metrics("wanted", "step")]
        for name, how in (("own.keras", "own names"), ("own.h5", "own names"),
                          ("made_up.keras", "layers by their order"), ("made_up.h5", "layers by their order")):
            with self.subTest(name):
                self.net(0, "run", name, says=["16 of 16 parameter arrays", f"Keras' layout, {how}", "0 rearranged",
                                               "arrays without weights", "pixels as unit"])
                self.assertEqual([line["loss"] for line in self.metrics("run", "step")], losses)
                self.net(0, "still", name, "--lr", "0", "--freeze", "*norm")
                self.assertEqual(self.tensors("still"), {n: packed(n) for n in SHAPES})

    def test_weights_alone(self):
        """Such a file says neither its network nor which of three arrays of a normalization is not there."""
        self.net(0, "run", "scaled.weights.h5", "--lr", "0", "--freeze", "*norm",
                 says=["16 of 16 parameter arrays", "pixels as unit (--normalize must say", "says nothing about itself"])
        exported = ["export", "--model", "net.json", "--safetensors", "own.safetensors", "--weights"]
        says = "does not say how pixels become numbers; here they do as"
        self.expect(0, *exported, "scaled.weights.h5", says=[f"{says} unit (--normalize"])
        self.expect(0, *exported, "scaled.weights.h5", "--normalize", "imagenet", says=[f"{says} imagenet"])
        self.assertNotIn(says, self.expect(0, *exported, "own.keras").stderr)
        wanted = {n: packed(n) for n in SHAPES}
        wanted["deep_norm/gamma"] = packed("deep_norm/gamma", made("gamma", 8))
        self.assertEqual(self.tensors("run"), wanted)
        self.net(65, "no", "own.weights.h5", says=["deep_norm has 3 arrays", "model.save('model.keras')"])

    def test_fitted_networks_of_keras_2_and_3(self):
        """Their files have an optimizer, metrics and generators; frozen layers within come behind the others."""
        caveat = "Rescaling: x * 1 + 0), which --normalize must say here: --normalize 0/0.00392157"
        for name in ("keras2.keras", "fitted.keras", "keras2.h5", "frozen2.h5"):
            with self.subTest(name):
                self.net(0, "run", name, "--lr", "0", "--freeze", "*norm",
                         says=["16 of 16 parameter arrays", "own names", caveat])
                exported = ["export", "--model", "net.json", "--weights", name, "--safetensors", "own.safetensors"]
                self.expect(0, *exported, says=[f"warning: --weights {name}: its network makes numbers", caveat])
                done = self.expect(0, *exported, "--normalize", "0/0.00392157")
                self.assertNotIn("warning", done.stderr)
                self.assertEqual(self.tensors("run"), {n: packed(n) for n in SHAPES})

    def test_commands_that_measure_name_what_happens_to_pixels_once(self):
        says = "warning: --weights keras2.keras: its network makes"
        for command in (["bench", "step"], ["bench", "kernels", "--micro-batch", "4"],
                        ["tune", "--find", "speed", "--most-batch", "32"]):
            with self.subTest(command):
                words = [*command, "--model", "net.json", "--threads", "1", "--repeat", "1", "--weights",
                         "keras2.keras"]
                self.assertEqual(self.expect(0, *words).stderr.count(says), 1)
                self.assertNotIn(says, self.expect(0, *words, "--normalize", "0/0.00392157").stderr)

    def test_layers_that_are_not_told_apart_are_refused(self):
        """Their order is none that the network has, and their names are none of ours."""
        for name, says in (("keras2.weights.h5", "does not name its layers"),
                           ("made_up_frozen2.h5", "does not fit the model"),
                           ("members.weights.h5", "does not fit the model")):
            with self.subTest(name):
                self.net(65, "no", name, says=[says])

    def test_the_table_says_where_arrays_come_from(self):
        self.net(0, "run", "own.keras")
        with open(self.path("run", "first-weights.csv"), newline="") as f:
            rows = {row["parameter"] or row["array"]: row for row in csv.DictReader(f)}
        self.assertEqual(rows["deep/kernel"], {"parameter": "deep/kernel", "shape": "3x3x1x8", "done": "taken",
                                               "array": "layers/depthwise_conv2d/vars/0", "array_shape": "3x3x4x2"})
        self.assertEqual(rows["deep_norm/gamma"]["array"], "(scale=False)")
        self.assertEqual(rows["optimizer/vars/2"]["done"], "not needed")

    def test_a_network_within_a_network(self):
        for name in ("nested.keras", "nested.h5"):
            with self.subTest(name):
                self.net(0, "run", name, "--lr", "0", "--freeze", "*norm",
                         says=["16 of 16 parameter arrays", "last layer mine", "warning", "makes numbers of pixels",
                               "--normalize"])
                self.assertEqual(self.tensors("run"), {n: packed(n) for n in SHAPES})

    def test_other_classes_get_a_new_head(self):
        self.make("three", ant=8, bee=8, cow=8)
        self.net(0, "run", "own.keras", "--freeze", "all-but-head", data="three",
                 says=["14 of 16 parameter arrays", "head/kernel is 5x2, not 5x3"])
        tensors = self.tensors("run")
        self.assertEqual(tensors["wide/kernel"], packed("wide/kernel"))

    def test_export_names_the_network(self):
        for command in (["eval", "--data", "data"], ["predict", "data/ant/0.bmp"]):
            self.expect(65, *command, "--weights", "own.keras", says=["cputrain export --model NAME",
                                                                      "a model file of the same layers"])
        done = self.expect(65, "--model", "dogcat", "--data", "data", "--out", "no", "--weights", "own.keras",
                           says=["it holds a network of its own", "--model FILE.json"])
        self.assertNotIn("--partial", done.stderr)
        self.expect(0, "export", "--model", "net.json", "--weights", "own.keras", "--safetensors", "own.safetensors",
                    says=["16 tensors in the layout of Keras"])
        self.expect(0, "predict", "--weights", "own.safetensors", "data/ant/0.bmp", says=["class"])
        looked = ["eval", "--data", "data", "--weights", "own.safetensors"]
        nameless = self.expect(0, *looked, says=["warning: the weights have no names of classes (class 0, class 1)",
                                                 "in this order: ant, bee", "export --class-names", "\nbee"])
        self.expect(0, "export", "--model", "net.json", "--weights", "own.keras", "--safetensors", "own.safetensors",
                    "--class-names", "ant,bee")
        named = self.expect(0, *looked)
        self.assertNotIn("warning: the weights have no names", named.stderr)
        self.assertEqual(named.stdout, nameless.stdout)
        self.make("three", ant=4, bee=4, cow=4)
        self.expect(0, "export", "--model", "net.json", "--weights", "own.keras", "--safetensors", "own.safetensors")
        self.expect(65, "eval", "--weights", "own.safetensors", "--data", "three",
                    says=["the classes ant, bee, cow", "export --class-names"])

    def test_export_takes_images_of_the_size_that_the_file_says(self):
        """A network that flattens its images has weights for one size alone."""
        network = self.json_of("net.json")
        network["recipe"]["image_size"] = 12
        self.write("net12.json", json.dumps(network).encode())
        exported = ["export", "--model", "net12.json", "--safetensors", "own.safetensors", "--weights"]
        for name in ("own.keras", "own.h5", "keras2.keras", "keras2.h5", "nested.keras"):
            with self.subTest(name):
                self.expect(0, *exported, name, says=[f"{name}: its network takes images of 8x8, and so does"])
                self.expect(2, "export", "--weights", "own.safetensors", "--image-size", "12", "--onnx", "x.onnx",
                            says=["8x8 pixels"])
        with self.subTest("a flag goes before the file"):
            done = self.expect(0, *exported, "own.keras", "--image-size", "8")
            self.assertNotIn("takes images", done.stderr)
            self.expect(65, *exported, "own.keras", "--image-size", "12",
                        says=["takes images of 8x8, the one that is written those of 12x12", "wide/kernel is 128x5",
                              "of wide/kernel fit images of one size alone", "--image-size"])
        with self.subTest("a file that does not say its size"):
            self.expect(65, *exported, "scaled.weights.h5", says=["of wide/kernel fit images of one size alone"])
            done = self.expect(0, *exported, "scaled.weights.h5", "--image-size", "8")
            self.assertNotIn("takes images", done.stderr)
        with self.subTest("a training"):
            self.expect(65, "--model", "net12.json", "--data", "data", "--out", "no", "--weights",
                        self.write_safetensors("same.safetensors"), says=["give the --image-size of their training"])
        with self.subTest("images that are not square"):
            whole = members(self.bytes_of("own.keras"))
            whole["config.json"] = whole["config.json"].replace(b"[null, 8, 8, 3]", b"[null, 8, 6, 3]")
            self.expect(0, "export", "--model", "net.json", "--safetensors", "own.safetensors", "--weights",
                        self.write("oblong.keras", archive(whole)),
                        says=["takes images of 8x6, the one that is written those of 8x8"])

    def other_net(self, change):
        network = self.json_of("net.json")
        change(network["layers"])
        return self.write("other.json", json.dumps(network).encode())

    def test_networks_that_compute_something_else_are_refused(self):
        """All arrays fit by name and shape: the file's configuration alone tells."""
        for what, change, *says in (
                ("relu", lambda layers: layers.pop(2), "between norm and deep", "relu in the file, nothing here"),
                ("epsilon", lambda layers: layers[1].update(epsilon=0.1), "norm", "epsilon 0.001 in the file, 0.1 here")
        ):
            other = self.other_net(change)
            for name in ("own.keras", "own.h5", "made_up.keras", "made_up.h5", "nested.keras", "nested.h5",
                         "keras2.keras", "keras2.h5", "frozen2.h5"):
                with self.subTest(f"{what} {name}"):
                    exported = ["export", "--model", other, "--safetensors", "own.safetensors", "--weights", name]
                    self.expect(65, *exported, says=["computes something else than this one", *says, "--model-file"])
                    if name in ("own.keras", "made_up.h5", "frozen2.h5"):
                        self.expect(65, "--model", other, "--data", "data", "--out", "no", "--weights", name,
                                    says=["computes something else than this one", *says, "--partial"])
        self.expect(0, "--model", other, "--data", "data", "--epochs", "1", "--out", "run", "--weights", "own.keras",
                    "--partial", says=["warning: --weights own.keras: its network computes something else",
                                       "norm: epsilon 0.001 in the file, 0.1 here"])
        whole = members(self.bytes_of("own.keras"))
        whole["config.json"] = whole["config.json"].replace(b'"softmax"', b'"sigmoid"')
        self.expect(0, "export", "--model", "net.json", "--safetensors", "own.safetensors", "--weights",
                    self.write("sigmoid.keras", archive(whole)), says=["warning", "its network ends in sigmoid"])
        # Such a file has arrays alone.
        done = self.expect(0, *exported[:-1], "scaled.weights.h5")
        self.assertNotIn("computes", done.stderr)

    def test_layers_that_none_here_is_like_are_refused(self):
        whole = members(self.bytes_of("own.keras"))
        config = json.loads(whole["config.json"])
        relu = next(l for l in config["config"]["layers"] if l["class_name"] in ("ReLU", "Activation"))
        relu.update(class_name="UpSampling2D")
        whole["config.json"] = json.dumps(config).encode()
        name = self.write("alien.keras", archive(whole))
        says = ["between norm", f"UpSampling2D ({relu['config']['name']})"]
        self.expect(65, "export", "--model", "net.json", "--safetensors", "x.safetensors", "--weights", name, says=says)
        self.net(65, "no", name, says=says)
        self.net(0, "run", name, "--partial", says=["warning", *says])
        relu.update(class_name="Mine", module="mine", registered_name="Mine")
        whole["config.json"] = json.dumps(config).encode()
        self.net(0, "run", self.write("mine.keras", archive(whole)),
                 says=["warning", f"what Mine ({relu['config']['name']}) does was not compared"])

    def test_a_training_names_the_size_of_the_files_images(self):
        whole = members(self.bytes_of("own.keras"))
        whole["config.json"] = whole["config.json"].replace(b"[null, 8, 8, 3]", b"[null, 8, 6, 3]")
        says = "learnt from images of 8x6x3; here they are 8x8x3 (--image-size says how large)"
        self.net(0, "run", self.write("oblong.keras", archive(whole)), says=[f"--weights oblong.keras {says}"])
        for name in ("own.keras", "own.h5"):
            self.net(0, "run", name, says=["says its layers, which were read"])
            self.assertNotIn("learnt from images", self.net(0, "run", name).stderr)

    def test_other_networks_are_refused(self):
        self.expect(65, "--model", "mobilenetv2", "--image-size", "32", "--data", "data", "--weights", "own.keras",
                    says=["does not fit the model"])

    def test_archives_that_are_none(self):
        whole = members(self.bytes_of("own.keras"))
        weights = whole["model.weights.h5"]
        for name, data, says in (
                ("packed.keras", archive(whole, compressed=True), "compressed zip archive"),
                ("empty.keras", archive({"metadata.json": b"{}"}), "without Keras' model.weights.h5"),
                ("cut.keras", self.bytes_of("own.keras")[:2000], "damaged zip archive"),
                ("no.keras", archive({"model.weights.h5": b"no" * 600}), "its beginning"),
                ("config.keras", archive({"config.json": b"{", "model.weights.h5": weights}), "config.json"),
                ("nothing.keras", archive({}), "without Keras' model.weights.h5"),
                ("cut.h5", self.bytes_of("own.h5")[:3000], "is cut or damaged")):
            with self.subTest(name):
                self.expect(65, "--model", "net.json", "--data", "data", "--dry-run" if name != "config.keras" else
                            "--overwrite", "--weights", self.write(name, data), says=[says, "it cannot be loaded"])


if __name__ == "__main__":
    unittest.main()

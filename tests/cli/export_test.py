"""`export`: what other programs read computes what `predict` says."""
import importlib
import json
import os
import unittest

from formats import read_safetensors
from images import made_pixels, write_bmp
from program import ProgramTest

try:
    import numpy as np

    import network
except ImportError:
    np = None


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


needs_numpy = unittest.skipUnless(np, "python3-numpy is not here")
needs_onnx = unittest.skipUnless(np and module("onnx"), "python3-onnx or numpy is not here")

# Every kind of layer, odd sizes, padding that is uneven, numbers flattened before they are normalised.
EVERY_LAYER = {
    "format": "cputrain model 1",
    "input": {"mean": [0.485, 0.456, 0.406], "deviation": [0.229, 0.224, 0.225]},
    "layers": [
        {"type": "zero_pad", "top": 1, "bottom": 2, "left": 0, "right": 3},
        {"type": "convolution", "filters": 6, "kernel": 3, "stride": 2, "padding": "same", "name": "stem"},
        {"type": "batch_norm", "epsilon": 1.001e-5, "name": "norm"},
        {"type": "relu", "name": "active"},
        {"type": "convolution", "filters": 6, "kernel": 1, "bias": False, "name": "left"},
        {"type": "max_pool", "size": 3, "stride": 1, "padding": "same", "from": "active", "name": "middle"},
        {"type": "add", "from": ["left", "middle", "active"], "name": "sum"},
        {"type": "convolution", "filters": 12, "kernel": 3, "padding": "half", "groups": 3, "name": "grouped"},
        {"type": "relu6", "name": "capped"},
        {"type": "concat", "from": ["sum", "capped"]},
        {"type": "silu"},
        {"type": "layer_norm", "epsilon": 1e-5},
        {"type": "average_pool", "size": 3, "stride": 2, "padding": "same"},
        {"type": "batch_norm"},
        {"type": "leaky_relu", "slope": 0.2},
        {"type": "zero_pad", "top": 0, "bottom": 1, "left": 1, "right": 0},
        {"type": "average_pool", "size": 2, "stride": 1},
        {"type": "zero_pad", "top": 1, "bottom": 1, "left": 1, "right": 1, "name": "frame"},
        {"type": "dropout", "rate": 0.1},
        {"type": "max_pool", "size": 3, "stride": 2, "name": "pooled"},
        {"type": "flatten", "name": "flat"},
        {"type": "batch_norm", "name": "flat_norm"},
        {"type": "dropout", "rate": 0.5},
        {"type": "dense", "units": 7, "name": "hidden"},
        {"type": "layer_norm", "scale": False},
        {"type": "relu"},
        {"type": "dense", "units": "classes", "bias": False, "name": "logits"},
        {"type": "softmax"},
    ]
}


class Exports(ProgramTest):
    def make_images(self, size):
        """Images to train on, in two classes; the first few are predicted, too."""
        images = []
        for i in range(20):
            folder, pixels = self.path("data", "ab"[i % 2]), made_pixels(i, size)
            os.makedirs(folder, exist_ok=True)
            write_bmp(os.path.join(folder, f"{i}.bmp"), pixels)
            images.append(pixels)
        self.files = [f"data/{'ab'[i % 2]}/{i}.bmp" for i in range(8)]
        return np.array(images[:8], np.float32)

    def predictions(self, backend):
        done = self.expect(0, "predict", "--weights", "run/weights.safetensors", "--json", "-",
                           "--backend", backend, "--threads", "1", *self.files)
        return np.array([list(p["probabilities"].values())
                         for p in json.loads(done.stdout)["predictions"]])

    def assert_same_predictions(self, ours, theirs):
        if theirs.shape[1] == 1:
            theirs = np.concatenate([1 - theirs, theirs], 1)
        self.assertEqual(ours.shape, theirs.shape)
        self.assertLess(np.abs(ours - theirs).max(), 1e-4, f"{ours} {theirs}")
        self.assertTrue((ours.argmax(1) == theirs.argmax(1)).all())
        self.assertGreater(ours.std(0).max(), 1e-3, "images that all look alike prove nothing")

    def check_onnx(self, size, *words, name="dogcat", backend="cpu"):
        """Trains three steps of the model called `name`, exports, and compares predictions."""
        import onnx
        images = self.make_images(size)
        self.train("run", "--image-size", str(size), "--data", "data", "--validation-split", "0",
                   "--steps", "3", "--backend", backend, *words)
        self.expect(0, "export", "--weights", "run/weights.safetensors", "--onnx", "m.onnx",
                    says=["m.onnx", f"[N, {size}, {size}, 3]"])
        model = onnx.load(self.path("m.onnx"))
        onnx.checker.check_model(model, full_check=True)
        self.assertEqual((model.ir_version, model.opset_import[0].version), (7, 13))
        self.assertEqual({p.key: p.value for p in model.metadata_props},
                         {"model": name,
                          "classes": '["a","b"]' if "--classes" not in words else
                                     '["a","b","class 2","class 3"]',
                          "preprocessing": "in-graph", "exif": "apply",
                          "resize": "bilinear-plain" if name in ("dogcat", "my-resnet50v2") else "bilinear",
                          "fit": "stretch", "resized_by": "caller",
                          "resizing": f"stretched to {size}x{size} by " +
                                      ("tf.image.resize's bilinear (no antialias: half-pixel centres, two pixels a "
                                       "side; rounded to bytes)" if name in ("dogcat", "my-resnet50v2") else
                                       "Pillow's BILINEAR (antialias: triangle of radius 1 new pixel, or 1 old one "
                                       "where they are fewer; width first, bytes after each axis)")})
        image = model.graph.input[0]
        self.assertEqual(image.name, "image")
        extents = [d.dim_param or d.dim_value for d in image.type.tensor_type.shape.dim]
        self.assertEqual(extents, ["N", size, size, 3])
        ours = self.predictions(backend)
        self.assert_same_predictions(ours, network.run_onnx(model, images))
        if runtime := module("onnxruntime"):
            session = runtime.InferenceSession(self.path("m.onnx"))
            self.assert_same_predictions(ours, session.run(None, {"image": images})[0])
        return model

    @needs_onnx
    def test_dogcat_predicts_alike_as_onnx(self):
        self.check_onnx(64)

    @needs_onnx
    def test_every_layer_predicts_alike_as_onnx(self):
        self.write("net.json", EVERY_LAYER)
        model = self.check_onnx(33, "--model", "net.json", "--classes", "4", name="net",
                                backend="reference")
        self.assertFalse({"Dropout"} & {n.op_type for n in model.graph.node})
        # Optimizers of others would take a Pad and the pool behind it together, with other padding.
        makers = {output: n.op_type for n in model.graph.node for output in n.output}
        pools = [n for n in model.graph.node if n.op_type.endswith("Pool")]
        self.assertEqual(len(pools), 4)
        self.assertNotIn("Pad", [makers[n.input[0]] for n in pools])
        pads = {n.name: a.ints for n in model.graph.node for a in n.attribute if a.name == "pads"}
        self.assertEqual(list(pads["stem"]), [0, 0, 1, 1])  # 36 rows, kernel 3, stride 2: one below
        epsilons = {n.name: a.f for n in model.graph.node for a in n.attribute if a.name == "epsilon"}
        self.assertAlmostEqual(epsilons["norm"], 1.001e-5, places=12)

    @needs_onnx
    def test_a_residual_network_predicts_alike_as_onnx(self):
        self.expect(0, "export", "--model", "resnet50v2", "--model-file", "slow.json")
        with open(self.path("slow.json")) as slow, open(self.path("quick.json"), "w") as quick:
            # Moving statistics that follow at once, where 0.99 takes hundreds of steps.
            text = slow.read()
            self.assertEqual(text.count('"epsilon": 1.001e-05,\n   "momentum": 0.99\n'), 49)
            quick.write(text.replace('"momentum": 0.99', '"momentum": 0'))
        model = self.check_onnx(32, "--model", "quick.json", "--lr", "1e-4", name="my-resnet50v2")
        self.assertEqual([n.op_type for n in model.graph.node].count("BatchNormalization"), 49)

    def types_of_resizing_products(self, model):
        import onnx
        types = {v.name: v.type.tensor_type.elem_type
                 for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
        return [types[n.output[0]] for n in model.graph.node
                if n.op_type == "MatMul" and n.name.startswith("image/resize/")]

    @needs_onnx
    def test_a_graph_that_resizes_answers_as_predict_for_images_of_any_size(self):
        """Thin, smaller and larger than the network's, wide and tall; each way, each fit."""
        import onnx
        self.make_images(20)
        sizes = [(1, 9), (7, 3), (16, 16), (50, 31), (20, 90)]
        noise = np.random.default_rng(1)
        images = [noise.integers(0, 256, (*size, 3), np.uint8) for size in sizes]
        self.files = []
        for image in images:
            self.files.append("x".join(map(str, image.shape)) + ".bmp")
            write_bmp(self.path(self.files[-1]), image.tolist())
        self.write("net.json", EVERY_LAYER)
        for way, fit in [("area", "stretch"), ("bilinear", "crop:0.875"), ("bilinear", "pad"), ("bicubic", "stretch"),
                         ("bicubic", "crop"), ("nearest", "pad"), ("nearest", "crop"), ("bilinear-plain", "crop"),
                         ("bilinear-plain", "stretch")]:
            with self.subTest(resize=way, fit=fit):
                self.train("run", "--model", "net.json", "--image-size", "16", "--data", "data", "--steps", "2",
                           "--validation-split", "0", "--backend", "reference", "--resize", way, "--fit", fit,
                           "--overwrite")
                self.expect(0, "export", "--weights", "run/weights.safetensors", "--onnx", "m.onnx", "--onnx-resize",
                            "in-graph", says=["uint8 [N, height, width, 3] of any size"])
                model = onnx.load(self.path("m.onnx"))
                onnx.checker.check_model(model, full_check=True)
                self.assertEqual(model.opset_import[0].version, 13)
                metadata = {p.key: p.value for p in model.metadata_props}
                self.assertEqual((metadata["resize"], metadata["fit"], metadata["resized_by"]), (way, fit, "graph"))
                ours = self.predictions("reference")
                theirs = [network.run_onnx(model, image[None])[0] for image in images]
                # The filters' sums are exact. Those of floats may be a step of 255 apart where they meet a tie.
                sums = onnx.TensorProto.FLOAT if way in ("nearest", "bilinear-plain") else onnx.TensorProto.DOUBLE
                self.assertEqual(self.types_of_resizing_products(model), [sums, sums])
                near = 1e-4 if sums == onnx.TensorProto.DOUBLE else 2e-3
                self.assertLess(np.abs(ours - np.array(theirs)).max(), near)
                if runtime := module("onnxruntime"):
                    session = runtime.InferenceSession(self.path("m.onnx"))
                    theirs = [session.run(None, {"image": image[None]})[0][0] for image in images]
                    self.assertLess(np.abs(ours - np.array(theirs)).max(), near)

    @needs_onnx
    def test_the_networks_of_pytorch_predict_alike_as_onnx(self):
        for name, kind, count in (("resnet18", "Add", 9), ("mobilenetv2", "Clip", 35), ("densenet121", "Concat", 58)):
            with self.subTest(name):
                self.expect(0, "export", "--model", name, "--model-file", name + ".json")
                with open(self.path(name + ".json")) as slow, open(self.path("quick.json"), "w") as quick:
                    quick.write(slow.read().replace('"momentum": 0.9\n', '"momentum": 0\n'))
                model = self.check_onnx(40, "--model", "quick.json", "--lr", "1e-4", "--overwrite", name="my-" + name)
                # "Add" is that of the pixels' offset, too, where there is one.
                self.assertEqual([n.op_type for n in model.graph.node].count(kind), count)

    @needs_numpy
    def test_weights_are_whole_in_kerass_names(self):
        self.train("run", "--steps", "1")
        metadata, tensors = read_safetensors(self.path("run/weights.safetensors"))
        self.assertEqual((metadata["format"], metadata["layout"]), ("cputrain", "keras"))
        shapes = {name: values.shape for name, values in tensors.items()}
        self.assertEqual(shapes["conv2d_3/kernel"], (3, 3, 128, 128))
        self.assertEqual(shapes["dense/kernel"], (2 * 2 * 128, 512))
        self.assertEqual(shapes["dense_2/bias"], (1,))
        info = self.expect(0, "info", "--image-size", "64", "--json", "-")
        self.assertEqual(sum(v.size for v in tensors.values()),
                         json.loads(info.stdout)["model"]["parameters"])
        self.expect(0, "export", "--weights", "run/weights.safetensors", "--safetensors", "again")
        self.assertEqual(self.bytes_of("run/weights.safetensors"), self.bytes_of("again"))

    @needs_numpy
    def test_torchs_layout_computes_the_same_in_its_own_order(self):
        """As a torch.nn.Sequential would: NCHW, flattened channel by channel, weights (out, in)."""
        images = self.make_images(64)
        self.train("run", "--data", "data", "--validation-split", "0", "--steps", "3")
        self.expect(0, "export", "--weights", "run/weights.safetensors", "--safetensors", "t",
                    "--export-layout", "torch")
        metadata, t = read_safetensors(self.path("t"))
        self.assertEqual((metadata["format"], metadata["layout"]), ("pt", "torch"))
        x = images.transpose(0, 3, 1, 2) / 255
        for i in range(4):
            name = "conv2d" + (f"_{i}" if i else "")
            x = np.maximum(network.conv(x, t[name + ".weight"], t[name + ".bias"]), 0)
            x = network.max_pool(x, (2, 2), (2, 2))
        x = x.reshape(len(x), -1)
        for name in ("dense", "dense_1"):
            x = np.maximum(x @ t[name + ".weight"].T + t[name + ".bias"], 0)
        x = network.sigmoid(x @ t["dense_2.weight"].T + t["dense_2.bias"])
        self.assert_same_predictions(self.predictions("cpu"), x)

    def test_names_are_given_to_classes(self):
        self.train("run", "--steps", "1")
        self.write("names.txt", "a cat\r\na dog, or none\r\n")
        words = ["export", "--weights", "run/weights.safetensors", "--safetensors", "named.safetensors"]
        write_bmp(self.path("x.bmp"), made_pixels(0, 64))
        for given, names in (("cat,dog", ["cat", "dog"]), ("names.txt", ["a cat", "a dog, or none"])):
            with self.subTest(given):
                self.expect(0, *words, "--class-names", given)
                done = self.expect(0, "predict", "--weights", "named.safetensors", "--json", "-", "x.bmp")
                self.assertEqual(list(json.loads(done.stdout)["predictions"][0]["probabilities"]), names)

    def test_a_model_file_trains_as_the_model_it_describes(self):
        self.expect(0, "export", "--model", "dogcat", "--image-size", "64", "--model-file", "m.json")
        a = self.train("a", "--steps", "2", "--optimizer", "sgd", "--lr", "0.01")
        b = self.train("b", "--steps", "2", "--optimizer", "sgd", "--lr", "0.01", "--model", "m.json")
        self.assertEqual([s["loss"] for s in a], [s["loss"] for s in b])


class WrongExports(ProgramTest):
    def test_what_does_not_go_together_ends_with_2(self):
        self.train("run", "--steps", "1")
        weights = ["--weights", "run/weights.safetensors"]
        open(self.path("empty.txt"), "w").close()
        for words, says in [([], ["--onnx", "--safetensors", "--model-file"]),
                            (["--onnx", "m"], ["--onnx needs --weights"]),
                            ([*weights, "--safetensors", "m", "--onnx-resize", "in-graph"], ["needs --onnx"]),
                            (["--safetensors", "m"], ["--safetensors needs --weights"]),
                            ([*weights, "--onnx", "m", "--export-layout", "torch"], ["--safetensors"]),
                            ([*weights, "--onnx", "m", "--model", "chips"], ["chips", "dogcat"]),
                            ([*weights, "--onnx", "m", "--image-size", "96"], ["96", "64x64"]),
                            ([*weights, "--onnx", "m", "--classes", "3"], ["2 classes"]),
                            ([*weights, "--safetensors", "m.keras"],
                             ["--safetensors m.keras: .keras is the ending of Keras (", "Back into Keras"]),
                            ([*weights, "--safetensors", "m.weights.h5"], [".h5 is the ending of Keras' HDF5"]),
                            ([*weights, "--safetensors", "m.PTH"], [".pth is the ending", "--export-layout torch"]),
                            ([*weights, "--safetensors", "m.onnx"], [".onnx is the ending of ONNX"]),
                            ([*weights, "--onnx", "m.safetensors"], ["ends with .onnx"]),
                            (["--model-file", "m.safetensors"], ["ends with .json"]),
                            (["--model-file", "m.json", "--class-names", "a,b"], ["needs --onnx FILE"]),
                            ([*weights, "--onnx", "m", "--class-names", "empty.txt"], ["the file has no name"]),
                            ([*weights, "--onnx", "m", "--class-names", "a,b,c"], ["3 names for the 2 classes"]),
                            ([*weights, "--onnx", "m", "--class-names", "a,a"], ["'a' stands for two classes"]),
                            ([*weights, "--onnx", "m", "--class-names", "a,"], ["'' is empty"]),
                            ([*weights, "--onnx", "m", "--class-names", "a,b\x07"], ["cannot be printed"]),
                            ([*weights, "--onnx", "m", "--class-names", "cat"], ["no such file", "NAME,NAME"])]:
            with self.subTest(words=words):
                self.expect(2, "export", *words, says=says)
                self.assertFalse(os.path.exists(self.path("m")))
        self.expect(0, "export", *weights, "--safetensors", "m", "--model", "dogcat", "--image-size", "64")

    def test_damaged_and_unwritable_files_end_with_65_and_74(self):
        self.train("run", "--steps", "1")
        weights = self.path("run/weights.safetensors")
        self.expect(74, "export", "--weights", weights, "--safetensors", "no/m", says=["no/m"])
        with open(weights, "r+b") as f:
            f.truncate(os.path.getsize(weights) - 1)
        self.expect(65, "export", "--weights", weights, "--onnx", "m", says=["weights.safetensors"])
        self.assertFalse(os.path.exists(self.path("m")))


if __name__ == "__main__":
    unittest.main()

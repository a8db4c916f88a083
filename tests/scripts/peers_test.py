"""scripts/compare_peers without the other frameworks: its own side, its figures, its messages."""
import importlib.util
import json
import os
import subprocess
import sys
import unittest

from program import PROGRAM, ProgramTest

sys.dont_write_bytecode = True
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")


def module(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(SCRIPTS, "peers", name + ".py"))
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class Peers(ProgramTest):
    def compare(self, *words, **environment):
        return subprocess.run(
            [sys.executable, os.path.join(SCRIPTS, "compare_peers"), "--program", PROGRAM, "--cache",
             self.path("cache"), *words], cwd=self.folder, text=True, timeout=250, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment})

    def test_ours_alone_is_trained_measured_and_written(self):
        self.expect(0, "data", "synth", "s", "--images", "24", "--image-size", "64")
        words = ["--data", "s", "--frameworks", "ours", "--image-size", "64", "--batch", "8", "--epochs", "1",
                 "--rounds", "2", "--steps", "2", "--out", "out/r.md"]
        done = self.compare(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Training dogcat", done.stderr)
        with open(self.path("out", "r.json")) as f:
            result = json.load(f)
        cell, = result["cells"]
        self.assertEqual((cell["model"], cell["batch"], cell["threads"], len(cell["rounds"])), ("dogcat", 8, 1, 2))
        self.assertEqual(len(cell["cpus"]), 1)
        with open(self.path("out", "r.md")) as f:
            text = f.read()
        self.assertIn("| dogcat 64x64 | 8 | 1 | cputrain |", text)
        self.assertIn("--frameworks ours", text)
        self.assertNotIn(self.folder, text)
        again = self.compare(*words, "--rounds", "1")
        self.assertNotIn("Training dogcat", again.stderr, "its weights are kept")
        few = self.compare(*[w if w != "8" else "500" for w in words])
        self.assertEqual(few.returncode, 1)
        self.assertIn("photographs for a batch of 500", few.stderr)

    def test_ratios_are_taken_within_a_round(self):
        def run(*rates):
            return {"images_per_second": list(rates), "peak_bytes": 10 * rates[0], "fraction_of_peak": 1}
        rounds = [{"ours": run(10, 20, 60), "tensorflow": run(10, 10, 10), "pytorch": run(4, 5, 6)},
                  {"ours": run(40, 40, 40), "tensorflow": run(10, 10, 10), "pytorch": run(2, 20, 80)},
                  {"ours": run(90, 90, 90), "tensorflow": run(30, 30, 30), "pytorch": run(45, 45, 45)}]
        figures = module("comparison").summary({"rounds": rounds})
        self.assertEqual(figures["ours"]["images_per_second"], {"median": 40, "min": 20, "max": 90})
        self.assertEqual(figures["tensorflow"]["ours_times"], {"median": 3, "min": 2, "max": 4})
        self.assertEqual(figures["pytorch"]["ours_times"], {"median": 2, "min": 2, "max": 4})
        self.assertEqual(figures["ours"]["times_the_fastest"], {"median": 2, "min": 2, "max": 2})
        self.assertEqual(figures["ours"]["peak_bytes"], 900)

    def test_wrong_words_and_missing_frameworks_have_their_message(self):
        for code, words, says in [(2, [], "--data"), (2, ["--data", "s", "--models", "lenet"], "lenet is not one of"),
                                  (2, ["--data", "s", "--threads", "9999"], "9999"),
                                  (2, ["--data", "s", "--models", "dogcat,chips", "--weights", "w"], "--weights"),
                                  (1, ["--data", "s", "--tensorflow-python", "/bin/false"],
                                   "/bin/false cannot import")]:
            with self.subTest(words=words):
                done = self.compare(*words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(says, done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("ensurepip"), "this Python makes no environments")
    def test_without_a_network_it_says_what_to_do(self):
        done = self.compare("--data", "s", "--frameworks", "pytorch", PIP_INDEX_URL="http://127.0.0.1:9/")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--pytorch-python", done.stderr)
        self.assertFalse(os.path.exists(self.path("cache", "pytorch")), "what is not whole is removed")

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "needs numpy")
    def test_peers_read_the_pixels_and_weights_of_the_program(self):
        from images import made_pixels, write_bmp
        pixels = {label: made_pixels(label, 64) for label in (0, 1)}
        for label, name in enumerate(["cat", "dog"]):
            os.makedirs(self.path("s", name))
            write_bmp(self.path("s", name, "1.bmp"), pixels[label])
        self.expect(0, "data", "pack", "s", "s.ctpack", "--image-size", "64", "--validation-split", "0")
        job = module("job")
        read, labels = job.read_images(self.path("s.ctpack"), 2)
        for image, label in zip(read, labels):
            self.assertEqual(image.tolist(), pixels[label])
        self.expect(0, "train", "--data", "s", "--image-size", "64", "--validation-split", "0", "--steps", "1",
                    "--batch", "2", "--threads", "1", "--out", "run")
        graph, arrays = job.read_network(self.path("run", "weights.safetensors"))
        self.assertEqual([layer["filters"] for layer in graph["layers"] if layer["type"] == "convolution"],
                         [32, 64, 128, 128])
        info = json.loads(self.expect(0, "info", "--image-size", "64", "--json", "-").stdout)
        self.assertEqual(sum(a.size for a in arrays.values()), info["model"]["parameters"])


if __name__ == "__main__":
    unittest.main()

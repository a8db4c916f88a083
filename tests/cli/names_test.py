"""Names from folders, lists, files and flags: any name that is trained can be used, and none steers a terminal."""
import csv
import io
import json
import os
import subprocess
import unittest

from formats import fields, read_arrays
from images import made_pixels, write_bmp
from page import Page
from program import PROGRAM, ProgramTest

NET = {"format": "cputrain model 1", "name": "tiny",
       "recipe": {"image_size": 16, "batch": 8, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.01},
       "layers": [{"name": "stem", "type": "convolution", "filters": 2, "kernel": 3}, {"type": "relu"},
                  {"type": "global_average_pool"}, {"type": "dense", "units": "classes"}, {"type": "softmax"}]}
# What folders may be called: all but "/" and a zero byte.
ODD = ["tab\tname", "line\nAll is well", "esc\x1b[2J", "bell\x07", "C1 \u009b31m", "turned \u202etxt.exe",
       "quote\"d, 'so'", "back\\slash\\n", "=cmd()", " blank ", "x" * 200, "\u732b", "Ka\u0308se", "\U0001f431",
       "\u2028", "\x7f", "-dash"]
# As a cell of CSV has them: on one line, and no formula.
CELLS = {name: ("'" if name[0] in "=-" else "") + "".join(
    {"\t": "\\t", "\n": "\\n"}.get(c, c if c.isprintable() else f"\\{'x%02x' if c < chr(128) else 'u%04x'}" % ord(c))
    for c in name) for name in ODD}
UNSAFE = [*(c for name in ODD for c in name if c in "\t\x1b\x07\u009b\u202e\u2028\x7f"), "All is well\n",
          "\nAll is well"]


def onnx_properties(path):
    """metadata_props (field 14) of a ModelProto."""
    with open(path, "rb") as f:
        model = f.read()
    return {p[1].decode(): p[2].decode() for p in (dict(fields(v)) for n, v in fields(model) if n == 14)}


class NamesTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("net.json", NET)
        self.tiny = ["--model", "net.json", "--threads", "1", "--micro-batch", "4"]

    def make(self, names, folder="d", each=2):
        for label, name in enumerate(names):
            where = os.path.join(os.fsencode(self.path(folder)), os.fsencode(name))
            os.makedirs(where)
            for i in range(each):
                write_bmp(os.path.join(where, b"%d.bmp" % i), made_pixels(7 * label + i, 16))

    def safe(self, done):
        """Nothing that a terminal obeys, in what is UTF-8."""
        for text in (done.stdout, done.stderr):
            for sign in UNSAFE:
                self.assertNotIn(sign, text)
        return done


class Classes(NamesTest):
    def test_any_name_is_trained_evaluated_predicted_exported_and_reported(self):
        self.make(ODD)
        names = sorted(ODD, key=str.encode)
        self.safe(self.expect(0, "--data", "d", *self.tiny, "--epochs", "1", "--validation-split", "0.5", "--out",
                              "run"))
        weights = ["--weights", "run/weights.safetensors"]
        self.assertEqual(json.loads(read_arrays(self.path("run/weights.safetensors"))[0]["classes"]), names)

        done = self.safe(self.expect(0, "eval", *weights, "--data", "d", "--confusion", "c.csv", "--page", "p.html",
                                     "--json", "e.json"))
        self.assertIn("\u732b", done.stdout)
        Page(self.text_of("p.html"))  # elements close, no attribute runs a script
        self.assertEqual([c["name"] for c in self.json_of("e.json")["classes"]], names)
        with open(self.path("c.csv"), newline="") as f:
            header, *rows = csv.reader(f)
        cells = [CELLS[name] for name in names]
        self.assertEqual((header[1:], [row[0] for row in rows]), (cells, cells))

        done = self.safe(self.expect(0, "predict", *weights, "d", "--top", "17"))
        self.assertEqual(len(done.stdout.splitlines()), 2 * len(ODD))
        done = self.safe(self.expect(0, "predict", *weights, "d", "--json", "p.json", "--top", "17"))
        self.assertEqual(len(done.stdout.splitlines()), 1 + len(ODD) + 1)  # a line a class, and the file's
        predictions = self.json_of("p.json")["predictions"]
        self.assertEqual(sorted(p["file"] for p in predictions), sorted(f"d/{n}/{i}.bmp" for n in ODD for i in (0, 1)))
        for p in predictions:
            self.assertEqual(sorted(p["probabilities"]), sorted(ODD))
            self.assertIn(p["class"], ODD)
        self.safe(self.expect(0, "predict", *weights, "d", "--csv", "p.csv"))
        text = self.text_of("p.csv")
        self.assertFalse(set(text) & {c for c in "".join(UNSAFE) if not c.isprintable()} - {"\n"})
        head, *rows = csv.reader(text.splitlines())  # a row is a line
        self.assertEqual(head, ["file", "class", *cells])
        self.assertEqual([(row[0], row[1]) for row in rows],
                         [("d/" + CELLS[n].lstrip("'") + p["file"][-6:], CELLS[p["class"]])
                          for p in predictions for n in [p["file"][2:-6]]])

        self.safe(self.expect(0, "export", *weights, "--safetensors", "t.safetensors", "--export-layout", "torch"))
        self.assertEqual(json.loads(read_arrays(self.path("t.safetensors"))[0]["classes"]), names)
        done = self.safe(self.run_program("export", *weights, "--onnx", "m.onnx"))
        if done.returncode == 0:
            self.assertEqual(json.loads(onnx_properties(self.path("m.onnx"))["classes"]), names)
        else:
            self.assertIn("ONNX", done.stderr)  # this build has none
        self.safe(self.expect(0, "report", "run", "--out", "rep"))

    def test_results_on_standard_output_are_escaped_and_whole(self):
        self.make(ODD)
        self.expect(0, "--data", "d", *self.tiny, "--steps", "1", "--out", "run")
        weights = ["--weights", "run/weights.safetensors", "--data", "d", "--validation-split", "0.5"]
        done = self.safe(self.expect(0, "eval", *weights, "--json", "-"))
        self.assertEqual(sorted(c["name"] for c in json.loads(done.stdout)["classes"]), sorted(ODD))
        done = self.safe(self.expect(0, "eval", *weights, "--confusion", "-"))
        self.assertEqual([len(row) for row in csv.reader(io.StringIO(done.stdout, newline=""), strict=True)],
                         [1 + len(ODD)] * (1 + len(ODD)))  # the table and nothing else
        for words in (["data", "info", "d"], ["data", "info", "d", "--json", "-"], ["data", "check", "d"],
                      ["data", "check", "d", "--json", "-"]):
            done = self.safe(self.expect(0, *words))
            if words[-1] == "-":
                self.assertEqual(sorted(c["name"] for c in json.loads(done.stdout)["classes"]), sorted(ODD))
        self.safe(self.expect(0, "data", "pack", "d", "d.ctpack", "--image-size", "16"))
        done = self.safe(self.expect(0, "data", "info", "d.ctpack", "--json", "-"))
        self.assertEqual(sorted(c["name"] for c in json.loads(done.stdout)["classes"]), sorted(ODD))

    def test_names_that_nothing_can_keep_are_refused_before_training(self):
        self.make([b"caf\xe9", b"tea"])
        done = self.expect(65, "--data", "d", *self.tiny, "--out", "run", says=["caf\\xe9", "UTF-8"])
        self.assertFalse(os.path.exists(self.path("run")))
        self.assertNotIn("Decoding", done.stderr)
        self.expect(65, "data", "info", "d", says=["caf\\xe9"])

    def test_an_output_without_a_class_gets_a_name_of_its_own(self):
        self.make(["class 2", "b"])
        self.expect(0, "--data", "d", *self.tiny, "--classes", "4", "--steps", "1", "--out", "run")
        done = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "d", "--validation-split",
                           "0.5", "--json", "-")
        names = [c["name"] for c in json.loads(done.stdout)["classes"]]
        self.assertEqual((names[:2], names[3], len(set(names))), (["b", "class 2"], "class 3", 4))

    def test_columns_stand_below_each_other(self):
        self.make(["\u732b\u732b", "cat", "Ka\u0308se"], each=4)
        self.expect(0, "--data", "d", *self.tiny, "--steps", "1", "--out", "run")
        lines = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "d", "--validation-split",
                            "0.5").stdout.splitlines()[:4]

        def columns(text):  # of a terminal
            return sum(0 if c == "\u0308" else 2 if c == "\u732b" else 1 for c in text)
        images = [columns(line[:line.index(" 2 " if i else "images") + (2 if i else 6)])
                  for i, line in enumerate(lines)]
        self.assertEqual(len(set(images)), 1, lines)


class Files(NamesTest):
    BAD = [b"\x1b]0;title\x07\x1b[2J.jpg", b"x\nAll is well.jpg", b"\xc2\x9b2J.jpg", "\u202egpj.jpg".encode(),
           b"caf\xe9.jpg", b"caf\xea.jpg", "\u732b.jpg".encode()]

    def setUp(self):
        super().setUp()
        self.make(["a", "b"], each=4)
        for name in self.BAD:
            with open(os.path.join(os.fsencode(self.path("d/a")), name), "w") as f:
                f.write("no image")

    def test_names_of_damaged_files_reach_no_terminal(self):
        for words, code in [(["data", "check", "d"], 65),
                            (["--data", "d", *self.tiny, "--steps", "1", "--out", "run"], 0),
                            (["data", "pack", "d", "d.ctpack", "--image-size", "16"], 0),
                            (["eval", "--weights", "run/weights.safetensors", "--data", "d", "--validation-split",
                              "0.5"], 0),
                            (["predict", "--weights", "run/weights.safetensors", "d"], 65)]:
            with self.subTest(words=words):
                done = self.safe(self.expect(code, *words))
                if code == 65:
                    for shown in ("\\x1b]0;title\\x07\\x1b[2J.jpg", "x\\nAll is well.jpg", "\\u009b2J.jpg",
                                  "caf\\xe9.jpg", "\u732b.jpg"):
                        self.assertIn(shown, done.stdout + done.stderr)

    def test_json_is_utf8_and_tells_files_apart(self):
        self.expect(0, "--data", "d", *self.tiny, "--steps", "1", "--out", "run")
        for words in (["data", "check", "d"], ["predict", "--weights", "run/weights.safetensors", "d"]):
            done = self.safe(self.expect(65, *words, "--json", "-"))
            result = json.loads(done.stdout)
            files = ([p["path"] for p in result["bad"]] if "bad" in result
                     else [p["file"] for p in result["predictions"]])
            for name in ("x\nAll is well", "\x1b]0;title\x07\x1b[2J", "\u202egpj", "caf\\xe9", "caf\\xea", "\u732b"):
                self.assertIn(f"d/a/{name}.jpg", files)
            self.assertEqual(len(set(files)), len(files))


class Flags(NamesTest):
    def test_values_of_flags_and_words_of_files_reach_no_terminal(self):
        odd = "x\x1b[2J\u009b\u202e\nAll is well"
        self.write("odd.json", {odd: 1})
        self.write("layers.json", {**NET, "layers": [{"type": "relu", odd: 3}]})
        self.write("typed.json", {**NET, "layers": [{"type": odd}]})
        self.write("raw.json", '{"a\x1b[2J": }')
        for code, *words in [(2, odd), (2, "--" + odd), (2, "--batch", odd), (65, "--data", odd), (2, "--model", odd),
                             (2, "--backend", odd), (2, "--augment", odd), (2, "--schedule", odd), (2, "--config", odd),
                             (2, "--config", "odd.json"), (2, "--config", "raw.json"), (65, "--model", "layers.json"),
                             (65, "--model", "typed.json"), (65, "--model", "raw.json"), (2, "data", odd),
                             (2, "bench", odd),
                             (65, "eval", "--weights", odd), (65, "report", odd), (65, "--data", "coco:" + odd),
                             (65, "predict", "--weights", odd, odd), (2, "--freeze", odd), (2, "--launcher", odd)]:
            with self.subTest(words=words):
                done = self.safe(self.run_program(*words))
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_bytes_that_are_no_utf8_are_shown(self):
        done = subprocess.run([PROGRAM, b"--data", b"caf\xe9"], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 65)
        self.assertIn(b"caf\\xe9", done.stderr)
        (done.stdout + done.stderr).decode()  # raises where it is no UTF-8

    def test_layers_of_odd_names_are_trained_and_told(self):
        layers = [dict(NET["layers"][0], name="s\x1b[2J\nAll is well"), *NET["layers"][1:]]
        self.write("net.json", {**NET, "layers": layers})
        self.make(["a", "b"], each=4)
        self.safe(self.expect(0, "info", "--model", "net.json"))
        self.safe(self.expect(0, "--data", "d", *self.tiny, "--steps", "1", "--out", "run", "--profile"))
        self.safe(self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "d", "--validation-split",
                              "0.5"))


if __name__ == "__main__":
    unittest.main()

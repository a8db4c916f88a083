"""Names of classes that look alike: said where they are two classes, and found where they are one written otherwise."""
import json
import os
import shutil
import unittest

from images import made_pixels, write_bmp
from tiny import TinyTest

# A pair of names, and how messages show them.
PAIRS = [(("cat", "cat "), r"'cat' and 'cat\x20'"), (("CAT", "cat"), "'CAT' and 'cat'"),
         (("caf\u00e9", "cafe\u0301"), r"'cafe\u0301' and 'caf\u00e9'"),
         (("cat", "cat\u00a0"), r"'cat' and 'cat\u00a0'"),
         (("cat", "ca\u200bt"), r"'cat' and 'ca\u200bt'"), (("01", "1"), "'01' and '1'")]


class AlikeNames(TinyTest):
    def add_list(self, name, labels, files):
        with open(self.path(name), "w") as f:
            f.writelines(f"{file},{label}\n" for file, label in zip(files, labels))

    def test_every_form_of_data_says_it(self):
        self.make("pictures", a=3, b=3)
        files = [f"pictures/{c}/{i}.bmp" for c in "ab" for i in range(3)]
        for number, (names, shown) in enumerate(PAIRS):
            with self.subTest(names=names):
                folder, row = f"d{number}", f"l{number}.csv"
                self.make(folder, **{names[0]: 2, names[1]: 2})
                # Blanks around a list's fields are none of the name, unless they are invisible.
                self.add_list(row, [names[0]] * 3 + [names[1]] * 3, files)
                coco = {"images": [{"id": i, "file_name": f} for i, f in enumerate(files)],
                        "categories": [{"id": 1, "name": names[0]}, {"id": 2, "name": names[1]}],
                        "annotations": [{"image_id": i, "category_id": 1 + i // 3} for i in range(6)]}
                self.write("c.json", coco)
                forms = [folder, "coco:c.json"] + ([] if names[1].strip() == names[0] else [row])
                for data in forms:
                    done = self.expect(0, "data", "info", data, "--json", "-", says=["look alike", shown])
                    self.assertEqual([sorted(group) for group in json.loads(done.stdout)["names_alike"]],
                                     [sorted(names)])

    def test_every_command_that_looks_at_data_says_it(self):
        self.make("d", **{"cat": 4, "cat ": 4, "dog": 4})
        says = ["warning: names of classes look alike", r"'cat' and 'cat\x20'"]
        self.expect(0, "data", "info", "d", says=says)
        done = self.expect(0, "data", "check", "d", "--json", "check.json", says=says)
        self.assertEqual(done.stderr.count("look alike"), 1)
        self.assertEqual(self.json_of("check.json")["names_alike"], [["cat", "cat "]])
        self.expect(0, "data", "pack", "d", "d.ctpack", "--image-size", "16", says=says)
        self.expect(0, "data", "info", "d.ctpack", says=says)
        self.tiny(0, "run", "d", "--steps", "1", says=says)
        self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "d", "--threads", "1", says=says)

    def test_names_in_files_of_records(self):
        self.write("data_batch_1.bin", b"".join(bytes([label]) + bytes(3072) for label in range(10)))
        self.write("batches.meta.txt", "\n".join(["plane", "Plane"] + [f"class{i}" for i in range(8)]) + "\n")
        self.expect(0, "data", "info", "cifar10:.", says=["'plane' and 'Plane'"])

    def test_names_in_names_of_files(self):
        os.mkdir(self.path("flat"))
        for number, name in enumerate(["Cat", "cat"] * 2):
            write_bmp(self.path("flat", f"{name}.{number}.bmp"), made_pixels(number, 16))
        self.expect(0, "data", "info", "flat", says=["'Cat' and 'cat'"])

    def test_parts_of_one_set_may_write_them_otherwise(self):
        composed, decomposed = "caf\u00e9", "cafe\u0301"
        self.make("d/train", **{composed: 3, "tea": 3})
        self.make("d/val", **{decomposed: 2, "Tea": 2})
        self.make("d/test", **{composed + " ": 1, "tea": 1})
        done = self.expect(0, "data", "info", "d", "--json", "-",
                           says=[r"'cafe\u0301' as 'caf\u00e9'", "'Tea' as 'tea'", r"'café\x20' as 'café'"])
        counts = [(c["name"], c["train"], c["validation"], c["test"]) for c in json.loads(done.stdout)["classes"]]
        self.assertEqual(counts, [(composed, 3, 2, 1), ("tea", 3, 2, 1)])
        with open(self.path("l.csv"), "w") as f:
            f.write("path,label,split\n")
            for part, names in (("train", [composed, "tea"]), ("val", [decomposed, "TEA"])):
                for name, folder in zip(names, (composed, "tea")):
                    f.write(f"d/train/{folder}/0.bmp,{name},{part}\n")
        done = self.expect(0, "data", "info", "l.csv", "--json", "-", says=["'TEA' as 'tea'"])
        self.assertEqual([c["validation"] for c in json.loads(done.stdout)["classes"]], [1, 1])
        # What may be either of two is not guessed.
        os.rename(self.path("d/val/Tea"), self.path("d/val/milk"))
        self.expect(65, "data", "info", "d", says=["'milk'", "no training images"])

    def test_weights_find_their_classes(self):
        """As where data went through another system: names in NFD, in capitals, with blanks."""
        composed = "caf\u00e9"
        self.make("d", **{composed: 6, "Tea": 6})
        self.tiny(0, "run", "d", "--epochs", "2", "--validation-split", "0.5")
        self.make("copy", **{composed: 6, "Tea": 6})
        os.rename(self.path("copy", composed), self.path("copy", "cafe\u0301"))
        os.rename(self.path("copy", "Tea"), self.path("copy", "TEA "))
        words = ["--validation-split", "0.99", "--seed", "5"]
        says = [r"'cafe\u0301' as 'caf\u00e9'", r"'TEA\x20' as 'Tea'"]
        whole = self.evaluate("d", *words)
        self.assertEqual(self.evaluate("copy", *words, says=says)["loss"], whole["loss"])
        # A training that goes on from the weights gives each class its own output.
        weights = ["--weights", "run/weights.safetensors"]
        self.tiny(0, "next", "copy", "--steps", "1", *weights, says=says)
        # Both ways to write a name at once: which is meant cannot be told.
        shutil.copytree(self.path("copy/TEA "), self.path("copy/tea"))
        self.expect(65, "eval", *weights, "--data", "copy", says=["which the weights do not know"])

    def test_a_copy_in_another_form_of_unicode_is_the_same_data(self):
        """Its fingerprint is that of the original, so that eval finds what training kept, and a resume goes on."""
        self.make("d", **{"\u00e9t\u00e9": 6, "a": 6})
        shutil.copytree(self.path("d"), self.path("copy"))
        os.rename(self.path("copy", "\u00e9t\u00e9"), self.path("copy", "e\u0301te\u0301"))
        prints = [json.loads(self.expect(0, "data", "info", d, "--json", "-").stdout)["fingerprint"]
                  for d in ("d", "copy")]
        self.assertEqual(*prints)
        # Three epochs in one go, and with the copy from the second on.
        self.expect(0, "--model", "tiny.json", "--threads", "1", "--data", "d", "--epochs", "3", "--out", "whole")
        self.expect(0, "--model", "tiny.json", "--threads", "1", "--data", "d", "--epochs", "1", "--out", "run")
        self.expect(0, "--model", "tiny.json", "--threads", "1", "--data", "copy", "--epochs", "3", "--out", "run",
                    "--resume", "auto", says=["Going on from"])
        hashes = [self.metrics(run, "summary")[-1]["weights_hash"] for run in ("whole", "run")]
        self.assertEqual(*hashes)
        self.evaluate("copy", run="run", says=["held out from training"])


if __name__ == "__main__":
    unittest.main()

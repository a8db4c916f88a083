"""A run's config.json: flags in their own types, and the same run again without a word more."""
import os
import re
import unittest

from tiny import TINY, TinyTest

MEASURED = ("Busy: ", "Steal: ", "Limit: ", "Straggler: ", "Lost: ")  # lines that come where the machine was busy


class Repeat(TinyTest):
    def said(self, done, run):
        """Lines of standard error, without what is measured: warnings as they are."""
        lines = [line for line in done.stderr.replace(self.path(run), "RUN").replace(run, "RUN").splitlines()
                 if not line.startswith(MEASURED)]
        return [line if line.startswith("warning") else re.sub(r"\d+(\.\d+)?", "#", line) for line in lines]

    def check(self, data, *words, warns=(), model="tiny.json"):
        """The first run, then its repeat: both say the same, and warn of what was given."""
        base = ["--threads", "1", "--verbose", "2", "--overwrite"]
        first = self.expect(0, "--model", model, "--data", data, "--out", "first", *base, *words)
        again = self.expect(0, "--config", "first/config.json", "--out", "again", "--overwrite")
        self.assertEqual(self.said(again, "again"), self.said(first, "first"))
        warned = [line for line in again.stderr.splitlines() if line.startswith("warning")]
        self.assertEqual(len(warned), len(warns), warned)
        for text, line in zip(warns, warned):
            self.assertIn(text, line)
        self.assertEqual(self.json_of("again", "config.json"), self.json_of("first", "config.json"))

    def make_cifar(self):
        os.mkdir(self.path("cifar"))
        for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
            with open(self.path("cifar", name + ".bin"), "wb") as f:
                for label in range(10):
                    f.write(bytes([label]) + bytes((label * 20 + i) % 256 for i in range(3072)))
        self.write("cifar/batches.meta.txt", "".join(f"class{i}\n" for i in range(10)))

    def test_every_kind_of_data(self):
        self.make("data", a=10, b=10)
        self.make("parts/train", a=6, b=6)
        self.make("parts/val", a=2, b=2)
        self.make_cifar()
        self.expect(0, "data", "pack", "data", "data.ctpack", "--image-size", "16", "--resize", "area", "--fit", "crop")
        self.expect(0, "data", "pack", "parts", "parts.ctpack", "--image-size", "16")
        self.check(self.path("data"))
        self.check(self.path("data"), "--validation-split", "0.3", "--resize", "area", "--fit", "pad", "--exif",
                   "ignore")
        self.check(self.path("parts"))
        self.check(self.path("data.ctpack"))
        self.check(self.path("parts.ctpack"))
        self.check("cifar10:" + self.path("cifar"), "--limit-train", "30", "--limit-val", "10")
        self.check("synthetic:20")

    def test_flags_of_many_kinds(self):
        self.make("data", a=10, b=10)
        data = self.path("data")
        self.check(data, "--epochs", "3", "--ema", "0.5", "--eval-every", "2", "--save-best", "--early-stopping", "3",
                   "--class-weights", "balanced", "--augment", "flip,shear:0.1", "--log-every", "1")
        self.check(data, "--epochs", "2", "--optimizer", "lars:momentum=0.8", "--schedule", "cosine",
                   "--warmup-epochs", "1", "--clip-norm", "1", "--no-shuffle", "--drop-last", "--accumulate", "2",
                   "--batch", "4", "--label-smoothing", "0.1", "--batch-growth", "1:2")
        self.expect(0, "--model", "tiny.json", "--data", data, "--threads", "1", "--out", "w")
        self.check(data, "--weights", self.path("w/weights.safetensors"), "--freeze", "all-but-head")
        self.check(data, "--weights", self.path("w/weights.safetensors"), "--backbone-lr", "0.001")

    def test_what_was_given_in_vain_is_told_again(self):
        self.check("synthetic:20", "--keep", "3", "--checkpoint-every", "0", "--fit", "crop", "--no-winograd", "--backend",
                   "reference", warns=["--fit crop changes nothing", "--keep 3 changes nothing",
                                       "--no-winograd changes nothing"])

    def test_what_a_recipe_has_is_not_asked_for(self):
        for schedule, words, warns in (("step:30:0.1", [], []),
                                       ("plateau:2", ["--limit-val", "0"], ["the schedule of long's recipe, plateau:2"])):
            self.write("long.json", {**TINY, "name": "long", "recipe": {**TINY["recipe"], "schedule": schedule}})
            self.check("synthetic:20", *words, warns=warns, model="long.json")
        # Another one is.
        self.expect(2, "--config", "first/config.json", "--schedule", "plateau:3", "--out", "other",
                    says=["--schedule plateau:3", "watches the loss of validation"])

    def test_types_are_those_of_the_flags(self):
        wanted = {"limit-val": 3, "label-smoothing": 0.1, "balanced": True, "steps": 2, "eval-every": 2, "clip-norm": 0.5,
                  "keep": 3, "save-best": True, "stall": "end=50s", "io-threads": 1, "prefetch": 0, "profile": True,
                  "no-winograd": True, "no-bind": True, "early-stopping": "3",
                  "checkpoint-every": "3", "cache": "memory", "on-nan": "skip", "allreduce": "ring"}
        given = {**wanted, "optimizer": "sgd:momentum=0.9,nesterov"}
        wanted.update(optimizer="sgd", momentum=0.9, nesterov=True)  # a figure each
        words = []
        for flag, value in given.items():
            words += ["--" + flag] + ([] if value is True else [str(value)])
        base = ["--model", "tiny.json", "--data", "synthetic:20", "--out", "run", "--overwrite"]
        variables = {"CPUTRAIN_" + flag.upper().replace("-", "_"): str(value).lower() for flag, value in given.items()}
        self.write("text.json", {flag: str(value).lower() for flag, value in given.items()})
        for ways, environment in ((words, {}), ([], variables), (["--config", "text.json"], {}),
                                 (["--config", "run/config.json"], {})):
            self.expect(0, *base, *ways, **environment)
            found = self.json_of("run", "config.json")
            self.assertEqual({flag: found[flag] for flag in wanted}, wanted)
            for flag, value in wanted.items():  # 1 and true are the same to Python
                self.assertEqual(isinstance(found[flag], bool), isinstance(value, bool), flag)


if __name__ == "__main__":
    unittest.main()

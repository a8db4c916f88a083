"""Which classes have images in the parts of the data, and what weights and checkpoints know of these parts."""
import json
import os
import unittest

from tiny import TinyTest

CLASSES = [f"c{n:02}" for n in range(20)]


class SmallClasses(TinyTest):
    """Twenty classes of five images: the tenth for validation is of ten of them."""

    def setUp(self):
        super().setUp()
        self.make("data", **{name: 5 for name in CLASSES})

    def parts(self, *words):
        """Classes with images for training, and with some for validation."""
        done = self.expect(0, "data", "info", "data", "--json", "-", *words)
        classes = json.loads(done.stdout)["classes"]
        return [{c["name"] for c in classes if c[part]} for part in ("train", "validation")]

    def test_the_seed_decides_and_no_name_does(self):
        by_seed = [self.parts("--seed", str(seed), "--limit-val", "3")[1] for seed in range(4)]
        self.assertEqual([len(part) for part in by_seed], [3] * 4)
        self.assertGreater(len({frozenset(part) for part in by_seed}), 1)
        for seed in range(3):
            for more in ((), ("--balanced",)):
                train, validation = self.parts("--seed", str(seed), "--limit-train", "8", *more)
                self.assertEqual((len(train), len(validation)), (8, 10))
                self.assertLessEqual(train, validation)

    def test_a_training_says_which_classes_a_part_lacks(self):
        train, validation = self.parts("--limit-train", "8")
        done = self.tiny(0, "run", "data", "--limit-train", "8")
        for part, held, what in (("training", train, "12"), ("validation", validation, "10")):
            line, = [each for each in done.stderr.splitlines() if f" is for {part} (" in each]
            missing = [name for name in CLASSES if name not in held]
            self.assertTrue(line.startswith(f"warning: no image of {what} of 20 classes ({', '.join(missing[:10])}"),
                            line)
        seen = [c for c in self.evaluate("data", says=["No image of 10 of 20 classes (", "is among them"])["classes"]
                if c["images"]]
        self.assertEqual({c["name"] for c in seen}, validation)
        for command in (["--model", "tiny.json", "--data", "data", "--dry-run", "--validation-split", "0.2"],
                        ["data", "info", "data", "--validation-split", "0.2"]):
            self.assertNotIn("no image of", self.expect(0, *command).stderr)

    def test_a_limit_of_eval_goes_by_the_seed(self):
        self.tiny(0, "run", "data", "--validation-split", "0.4")
        drawn = set()
        for seed in range(4):
            words = ("--seed", str(seed), "--validation-split", "0.4", "--limit-val", "4")
            drawn.add(tuple(c["name"] for c in self.evaluate("data", *words)["classes"] if c["images"]))
        self.assertGreater(len(drawn), 1)
        self.assertEqual({len(names) for names in drawn}, {4})


class KnownFiles(TinyTest):
    """Weights know the place where the files lay that they learnt from."""

    def test_files_that_changed_are_warned_of(self):
        says = ["warning", "learnt from files here, which have changed since", "too good"]
        self.make("data", ant=10, bee=10)
        self.make("second", others=1000, ant=6, bee=6)
        self.tiny(0, "run", "data")
        self.tiny(0, "next", "second", "--weights", "run")
        os.rename(self.path("data/ant/3.bmp"), self.path("data/ant/30.bmp"))
        self.tiny(0, "renamed", "data", "--weights", "run", says=says)
        self.make("data", bee=11)
        for run in ("run", "next", "renamed"):  # also where others came between
            self.tiny(0, "last", "data", "--weights", run, says=says)
            self.evaluate("data", run=run, says=["warning", "files here have changed since training"])
        for words in (("--validation-split", "0"), ("--limit-val", "0")):
            self.assertNotIn("too good", self.tiny(0, "last", "data", "--weights", "run", *words).stderr)
        self.assertNotIn("too good", self.tiny(0, "last", "second", "--weights", "run").stderr)

    def test_parts_of_the_data_keep_them_apart(self):
        self.make("data/train", ant=8, bee=8)
        self.make("data/val", range(20, 23), ant=1, bee=1)
        self.tiny(0, "run", "data")
        self.make("data/train", ant=9)
        self.assertNotIn("too good", self.tiny(0, "next", "data", "--weights", "run").stderr)


class ImagesThatLieElsewhere(TinyTest):
    """Weights know some images that they learnt from, wherever these lie."""
    LEARNT = "learnt from images that are for validation here, such as"

    def learnt(self, data, run, *words):
        """What a training with these weights and `eval` say of it."""
        told = self.tiny(0, "next", data, "--weights", run, *words).stderr
        if words:  # images of another size, at which `eval` does not look
            return self.LEARNT in told
        looked = self.expect(0, "eval", "--weights", run, "--data", data, "--threads", "1").stderr
        self.assertEqual(self.LEARNT in told, "training learnt from images among them, such as" in looked, looked)
        return self.LEARNT in told

    def test_folders_that_somebody_put_together(self):
        self.make("parts/train", range(16), ant=1, bee=1)
        self.make("parts/val", range(16, 20), ant=1, bee=1)
        self.tiny(0, "run", "parts")
        for name, train, val, others, learnt in (("one_less", range(15), range(16, 20), 0, False),
                                                 ("swapped", range(4, 20), range(4), 0, True),
                                                 ("one_of_them", range(1, 16), (0, 16, 17, 18, 19), 0, True),
                                                 ("other_images", range(5, 20), range(4), 1000, False)):
            with self.subTest(name):
                self.make(f"{name}/train", train, others, ant=1, bee=1)
                self.make(f"{name}/val", val, others, ant=1, bee=1)
                self.assertEqual(self.learnt(name, "run"), learnt)
        with self.subTest("weights that learnt again, from other images"):
            self.tiny(0, "again", "other_images", "--weights", "run")
            self.assertTrue(self.learnt("swapped", "again"))
            self.assertFalse(self.learnt("one_less", "again"))

    def test_files_that_were_packed_by_another_seed(self):
        self.make("data", ant=20, bee=20)
        self.tiny(0, "folder", "data", "--seed", "1")
        for name, side, seed in (("one", 16, 1), ("large", 20, 1), ("two", 16, 2), ("large_two", 20, 2)):
            self.expect(0, "data", "pack", "data", f"{name}.ctpack", "--image-size", str(side), "--seed", str(seed))
        self.tiny(0, "packed", "one.ctpack")
        for run in ("folder", "packed"):
            for name, learnt in (("two", True), ("large_two", True), ("large", False), ("one", False)):
                with self.subTest(run=run, data=name):
                    words = ["--image-size", "20"] if "large" in name else []
                    self.assertEqual(self.learnt(f"{name}.ctpack", run, *words), learnt)


if __name__ == "__main__":
    unittest.main()

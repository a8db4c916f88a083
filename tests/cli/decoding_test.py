"""Images that are decoded while the first epoch trains: the curve is that of a training whose images were all decoded
before, also where some are damaged, and where it is stopped and goes on."""
import os
import unittest

from program import needs_mpi
from tiny import TinyTest

WORDS = ["--model", "tiny.json", "--data", "data", "--threads", "1", "--log-every", "1", "--reproducible"]
MEANWHILE = "decoded while the first epoch trains"


class Decoding(TinyTest):
    def setUp(self):
        super().setUp()
        self.make("data", cat=60, dog=60)

    def train(self, run, *words, says=(), code=0, **options):
        done = self.expect(code, *WORDS, "--out", run, *words, says=says, **options)
        return done.stdout + done.stderr

    def curve(self, run):
        """Losses by step, of validation by epoch, and the weights."""
        steps, epochs = self.metrics(run, "step"), self.metrics(run, "epoch")
        self.assertEqual([s["step"] for s in steps], list(range(1, len(steps) + 1)))
        return ([s["loss"] for s in steps], [e["val_loss"] for e in epochs],
                self.metrics(run, "summary")[0]["weights_hash"])

    def break_images(self, *names):
        for name in names:
            with open(self.path("data", name), "r+b") as f:
                f.truncate(500)

    def undrawn(self):
        """An image whose damage a training finds after it has begun: it is none of those that are decoded before."""
        for i in range(60):
            name = f"dog/{i}.bmp"
            whole = self.bytes_of("data", name)
            self.break_images(name)
            text = self.train("tried", "--epochs", "1", "--overwrite")
            if MEANWHILE in text:
                return name
            self.write(self.path("data", name), whole)
        return self.fail("all images are decoded before the first step")

    def test_same_curve(self):
        text = self.train("first", "--epochs", "3", "--decode", "first", says=["120 images at 16x16 ready in"])
        self.assertNotIn(MEANWHILE, text)
        expected = self.curve("first")
        for words in ([], ["--prefetch", "0"], ["--io-threads", "3"]):
            self.train("meanwhile", "--epochs", "3", "--overwrite", *words, says=[MEANWHILE])
            self.assertEqual(self.curve("meanwhile"), expected, words)

    @needs_mpi
    def test_same_curve_on_several_ranks(self):
        self.train("first", "--epochs", "2", "--augment", "flip", "--decode", "first")
        for ranks in (3, 7):
            run = f"ranks{ranks}"
            self.train(run, "--epochs", "2", "--augment", "flip", says=[MEANWHILE], ranks=ranks)
            self.assertEqual(self.curve(run), self.curve("first"), run)

    def test_few_images_are_there_before_the_first_step(self):
        text = self.train("run", "--limit-train", "50", "--limit-val", "10", says=["60 images at 16x16 ready in"])
        self.assertNotIn(MEANWHILE, text)

    def test_damage_found_after_the_beginning(self):
        name = self.undrawn()
        for ranks in (0, 2):
            if ranks and not os.environ.get("CPUTRAIN_MPIRUN"):
                continue
            run = f"run{ranks}"
            text = self.train(run, "--epochs", "2", ranks=ranks,
                              says=[f"'data/{name}' cannot be read: truncated", "the training begins anew without",
                                    f"skipping data/{name}: truncated", "skipped 1 damaged file: 1 truncated"])
            self.assertEqual(text.count("begins anew"), 1, text)
            self.assertEqual(text.count("skipping"), 1, text)
        self.train("first", "--epochs", "2", "--decode", "first", says=["skipped 1 damaged file"])
        for run in (run for run in ("run0", "run2") if os.path.exists(self.path(run))):
            self.assertEqual(self.curve(run), self.curve("first"), run)
            self.assertEqual(self.metrics(run, "summary")[0]["training"]["damaged images"],
                             self.metrics("first", "summary")[0]["training"]["damaged images"])
            self.assertEqual([n for n in os.listdir(self.path(run)) if n.startswith("ckpt-")],
                             [n for n in os.listdir(self.path("first")) if n.startswith("ckpt-")])

    def test_a_class_without_an_image_that_can_be_read(self):
        os.makedirs(self.path("data", "owl"))
        for i in range(3):  # most probably none of them is decoded before the first step
            self.write(self.path("data", "owl", f"{i}.bmp"), b"no image")
        text = self.train("run", code=65, says=["'owl'"])
        self.assertEqual(text.count("cputrain: "), 1, text)

    def test_resume_within_the_first_epoch(self):
        self.train("whole", "--epochs", "2", "--decode", "first")
        self.train("run", "--epochs", "2", "--steps", "5")
        self.train("run", "--epochs", "2", "--resume", "auto", says=["Going on from", "5 steps", MEANWHILE])
        self.assertEqual(self.curve("run"), self.curve("whole"))

    def test_resume_without_damaged_images(self):
        self.undrawn()
        self.train("whole", "--epochs", "2")
        self.train("run", "--epochs", "2", "--steps", "5")
        text = self.train("run", "--epochs", "2", "--resume", "auto",
                          says=["Going on from", "skipped 1 damaged file"])
        self.assertNotIn(MEANWHILE, text)
        self.assertNotIn("begins anew", text)
        self.assertEqual(self.curve("run"), self.curve("whole"))

    def test_damage_found_by_a_resume_of_the_first_epoch(self):
        """The file broke meanwhile, and kept its length."""
        name = self.undrawn()
        self.make("data", dog=60)
        self.train("run", "--epochs", "2", "--steps", "5")
        with open(self.path("data", name), "r+b") as f:
            f.write(b"XX")
        self.train("run", "--epochs", "2", "--resume", "auto", says=["Going on from", "begins anew", "skipped 1"])
        self.train("first", "--epochs", "2", "--decode", "first")
        self.assertEqual(self.curve("run"), self.curve("first"))

    def test_damage_of_what_no_step_asks_for(self):
        """Steps of 50 of 120 images leave 20 out, and so does a training that ends within its first epoch."""
        self.undrawn()
        for words in (["--epochs", "2", "--batch", "50", "--drop-last"], ["--steps", "1"]):
            self.train("first", *words, "--overwrite", "--decode", "first", says=["skipped 1 damaged file"])
            for more in ([], ["--cache", "none"], ["--io-threads", "1", "--cache", "disk"]):
                self.train("run", *words, *more, "--overwrite", says=["begins anew", "skipped 1 damaged file"])
                self.assertEqual(self.curve("run"), self.curve("first"), words + more)

    def test_damage_after_the_first_epoch(self):
        """A file that was whole once has changed: what was learnt stays."""
        name = self.undrawn()
        self.make("data", dog=60)
        self.train("run", "--epochs", "1")
        with open(self.path("data", name), "r+b") as f:
            f.write(b"XX")
        text = self.train("run", "--epochs", "2", "--resume", "auto", code=65,
                          says=[f"'data/{name}' cannot be read: not an image", "Stopped after step"])
        self.assertNotIn("begins anew", text)
        with open(self.path("data", name), "r+b") as f:
            f.write(b"BM")
        self.train("run", "--epochs", "2", "--resume", "auto")
        self.train("whole", "--epochs", "2")
        self.assertEqual(self.curve("run"), self.curve("whole"))

    def test_images_elsewhere_than_in_memory(self):
        self.train("memory", "--epochs", "2", "--cache", "memory")
        os.mkdir(self.path("room"))
        for ranks in (0, 3) if os.environ.get("CPUTRAIN_MPIRUN") else (0,):
            for words, says in ((["--cache", "disk"], f"they lie in a file in {self.path('room')}"),
                                (["--cache", "none"], "none is kept"),
                                (["--cache", "none", "--decode", "first"], "Decoding makes some")):
                with self.subTest(ranks=ranks, words=words):
                    self.train("run", "--epochs", "2", "--overwrite", *words, says=[says], ranks=ranks,
                               TMPDIR=self.path("room"))
                    self.assertEqual(self.curve("run"), self.curve("memory"))
                    self.assertEqual([n for n in os.listdir(self.path("room")) if "images" in n], [])

    def test_damage_of_images_that_are_not_kept(self):
        name = self.undrawn()
        self.train("first", "--epochs", "2", "--decode", "first")
        for words in (["--cache", "none"], ["--cache", "disk"], ["--cache", "none", "--decode", "first"]):
            text = self.train("run", "--epochs", "2", "--overwrite", *words, says=[f"skipping data/{name}"])
            self.assertEqual("begins anew" in text, "first" not in words, text)
            self.assertEqual(self.curve("run"), self.curve("first"))


if __name__ == "__main__":
    unittest.main()

"""Photographs that EXIF turns, from folder to answers."""
import json
import os
import unittest

from images import made_pixels, stored, write_png
from tiny import TinyTest


class Photographs(TinyTest):
    def setUp(self):
        super().setUp()
        for label in ("cat", "dog"):
            for i in range(16):
                shown = made_pixels(sum(label.encode()) + i, 20)[:13]
                for folder in ("upright", "turned"):
                    os.makedirs(self.path(folder, label), exist_ok=True)
                orientation = i % 8 + 1
                write_png(self.path("upright", label, f"{i:02}.png"), shown)
                write_png(self.path("turned", label, f"{i:02}.png"), stored(shown, orientation), orientation)

    def losses(self, run):
        return [step["loss"] for step in self.metrics(run, "step")]

    def train(self, out, data, *words, **options):
        self.tiny(0, out, data, "--log-every", "1", *words, **options)
        return self.losses(out)

    def test_they_are_learnt_evaluated_and_predicted_as_viewers_show_them(self):
        upright = self.train("up", "upright", "--epochs", "2")
        self.assertEqual(self.train("run", "turned", "--epochs", "2"), upright)
        self.assertEqual(self.json_of("run/config.json")["exif"], "apply")
        every = ["--validation-split", "0"]
        loss = self.evaluate("turned", *every)["loss"]
        self.assertEqual(loss, self.evaluate("upright", *every)["loss"])
        self.assertNotEqual(loss, self.evaluate("turned", *every, "--exif", "ignore", says=["are not upright"])["loss"])

        def answers(data, *words):
            done = self.expect(0, "predict", "--weights", "run/weights.safetensors", "--json", "-", *words,
                               data + "/cat/")
            return [p["probabilities"] for p in json.loads(done.stdout)["predictions"]]
        self.assertEqual(answers("turned"), answers("upright"))
        self.assertNotEqual(answers("turned", "--exif", "ignore"), answers("upright"))

        ignored = self.train("old", "turned", "--epochs", "2", "--exif", "ignore",
                             says=["14 of 16 images of class 'cat'", "are not upright"])
        self.assertNotEqual(ignored, upright)
        kept = self.metrics("old", "epoch")[-1]["val_loss"]
        self.assertAlmostEqual(self.evaluate("turned", run="old")["loss"], kept, delta=1e-6 * kept)
        self.assertNotEqual(self.evaluate("turned", "--exif", "apply", run="old")["loss"], kept)

    def test_another_choice_than_that_of_weights_is_warned_of(self):
        self.train("old", "turned", "--exif", "ignore", "--no-save-best")
        run, says = ["--weights", "old"], "warning: --weights old/weights.safetensors learnt from photographs read with " \
                                          "--exif ignore; here it is --exif apply ("
        files = ["turned/cat/01.png"]
        commands = {"train": (["--model", "tiny.json", "--data", "turned", "--threads", "1", "--out", "new", "--overwrite",
                               *run], []),
                    "eval": (["eval", *run, "--data", "turned", "--threads", "1"], ["--exif", "apply"]),
                    "predict": (["predict", *run, *files], ["--exif", "apply"])}
        for name, (words, more) in commands.items():
            with self.subTest(name):
                done = self.expect(0, *words, *more, says=[says])
                self.assertEqual(done.stderr.count("learnt from"), 1, done.stderr)
                self.assertNotIn("learnt from", self.expect(0, *words, "--exif", "ignore").stderr)
        # Made-up images have none, and imported weights do not say what they learnt from.
        self.assertNotIn("learnt from", self.tiny(0, "new", "synthetic:32", *run).stderr)
        self.change_weights("old", lambda metadata, tensors: metadata.pop("exif"))
        self.assertNotIn("learnt from", self.tiny(0, "new", "turned", *run).stderr)
        self.assertNotIn("learnt from", self.tiny(0, "new", "synthetic:32", *run).stderr)
        self.tiny(0, "made", "synthetic:32")
        self.assertNotIn("learnt from", self.tiny(0, "new", "turned", "--weights", "made", "--exif", "ignore").stderr)

    def test_weights_that_never_saw_exif_are_not_compared(self):
        os.mkdir(self.path("c"))
        for name in ("data_batch_1.bin", "test_batch.bin"):
            with open(self.path("c", name), "wb") as f:
                f.write(b"".join(bytes([i % 10]) + bytes((i * 7 + k) % 256 for k in range(3072)) for i in range(20)))
        self.tiny(0, "cifar", "cifar10:c")
        words = ["--weights", "cifar", "--partial", "--exif"]
        for exif in ("apply", "ignore"):
            self.assertNotIn("learnt from photographs", self.tiny(0, "new", "turned", *words, exif).stderr)
        self.tiny(0, "again", "turned", *words, "ignore")
        self.tiny(0, "new", "turned", "--weights", "again", says=["learnt from photographs read with --exif ignore"])

    def test_a_resumed_run_goes_on_as_it_began(self):
        words = ["--model", "tiny.json", "--data", "turned", "--threads", "1", "--log-every", "1", "--out", "run"]
        whole = self.train("whole", "turned", "--epochs", "2", "--exif", "ignore")
        self.expect(0, *words, "--epochs", "1", "--exif", "ignore")
        self.expect(2, *words, "--epochs", "2", "--resume", "auto", "--exif", "apply",
                    says=["exif: ignore in the checkpoint, apply here"])
        self.expect(0, *words, "--epochs", "2", "--resume", "auto", says=["goes on with --exif ignore"])
        self.assertEqual(self.losses("run"), whole)
        self.assertEqual(self.json_of("run/config.json")["exif"], "ignore")

    def test_a_check_counts_them(self):
        report = json.loads(self.expect(0, "data", "check", "turned", "--json", "-").stdout)
        self.assertEqual((report["turned_by_exif"], report["flaws"]), (28, []))
        done = self.expect(0, "data", "check", "turned", "--exif", "ignore", "--json", "report.json",
                           says=["turns, which --exif ignore leaves as they are stored: 28",
                                 "cat: 14 of 16 (turned/cat/01.png"])
        self.assertEqual(done.returncode, 0)
        rows = self.json_of("report.json")["flaws"]
        self.assertEqual([(row["flaw"], row["class"], row["images"], row["of"]) for row in rows],
                         [("not turned", "cat", 14, 16), ("not turned", "dog", 14, 16)])
        self.expect(0, "data", "check", "upright", says=["32 can be used"])

    def test_a_packed_file_says_how_it_was_made(self):
        for made, asked in (("apply", "ignore"), ("ignore", "apply")):
            self.expect(0, "data", "pack", "turned", f"{made}.ctpack", "--image-size", "16", "--exif", made)
            for command in ("info", "check"):
                self.expect(0, "data", command, f"{made}.ctpack", "--exif", asked,
                            says=[f"warning: the file was packed with --exif {made}, and --exif {asked} changes "
                                  "nothing"])
                done = self.expect(0, "data", command, f"{made}.ctpack", "--exif", made)
                self.assertNotIn("packed with", done.stderr)


if __name__ == "__main__":
    unittest.main()

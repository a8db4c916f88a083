"""A small training that is ended and goes on, for tests."""
import glob
import os

from tiny import TINY, TinyTest

# With momentum, augmentation and dropout, so that much would show that was not restored.
LAYERS = [*TINY["layers"][:2], {"type": "dropout", "rate": 0.3}, *TINY["layers"][2:]]
WORDS = ["--model", "tiny.json", "--data", "data", "--threads", "1", "--batch", "10", "--log-every", "1",
         "--optimizer", "adam", "--augment", "flip", "--backend", "reference"]
STEPS = 5  # of an epoch: 45 images for training


class ResumeTest(TinyTest):
    def setUp(self):
        super().setUp()
        self.write("tiny.json", {**TINY, "layers": LAYERS})
        self.make("data", cat=25, dog=25)

    def go(self, code, run, *words, says=(), **options):
        return self.expect(code, *WORDS, "--out", run, *words, says=says, **options)

    def points(self, run):
        return sorted(int(os.path.basename(f)[5:]) for f in glob.glob(self.path(run, "ckpt-*")))

    def same(self, run, other):
        """All that a training says but times and memory."""
        for kind in ("step", "epoch", "summary"):
            lines = [[{k: v for k, v in m.items() if k not in ("seconds", "budget", "settled", "straggler", "stolen",
                       "cpu_wait", "images_per_second", "val_seconds", "training_seconds", "weights", "program",
                       "from_features", "trying", "peak_rank_bytes", "peak_node_bytes", "checkpoint_seconds")}
                      for m in self.metrics(r, kind)] for r in (run, other)]
            self.assertEqual(*lines)
        for log in ("training.csv", "history.json"):
            self.assertEqual(self.text_of(run, log), self.text_of(other, log))

"""The example program, which trains through the library, on a made-up CIFAR-10."""
import os
import random
import subprocess
import unittest

from program import MPIRUN, ProgramTest, mpirun

EXAMPLE = os.environ["EXAMPLE_PROGRAM"]
PIXELS = 32 * 32
MODEL = "model.json"
NETWORK = {"format": "cputrain model 1", "name": "colours",
           "recipe": {"image_size": 32, "batch": 20, "epochs": 1, "optimizer": "adam", "learning_rate": 0.02},
           "layers": [{"type": "convolution", "filters": 8, "kernel": 3}, {"type": "relu"},
                      {"type": "global_average_pool"}, {"type": "dense", "units": "classes"}, {"type": "softmax"}]}


def records(labels):
    """Each class is a colour of its own, so that a few steps are enough to learn it."""
    file = bytearray()
    for label in labels:
        file.append(label)
        for plane in range(3):
            bright = 200 if label % 3 == plane else 40
            file += bytes(bright + random.randrange(30) for _ in range(PIXELS))
    return bytes(file)


class TrainCifar10Test(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write(MODEL, NETWORK)

    def make_data(self):
        random.seed(5)
        os.mkdir(self.path("cifar"))
        for name, images in (("data_batch_1.bin", 360), ("test_batch.bin", 60)):
            self.write(self.path("cifar", name), records([i % 3 for i in range(images)]))
        self.write(self.path("cifar", "batches.meta.txt"), "".join(f"class{i}\n" for i in range(10)))

    def train(self, *words, ranks=0):
        launch = mpirun(ranks) if ranks else []
        return subprocess.run([*launch, EXAMPLE, *words], cwd=self.folder, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def accuracy(self, weights):
        text = self.expect(0, "eval", "--weights", weights, "--data", "cifar10:cifar").stdout
        return float(text.split("accuracy: ")[1].split()[0])

    def test_weights_of_the_example_are_the_programs(self):
        self.make_data()
        run = self.train("cifar", MODEL, "out.safetensors")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("Epoch 2", run.stdout)
        self.assertGreater(self.accuracy("out.safetensors"), 0.6)  # of three classes: chance has 1/3

    @unittest.skipUnless(MPIRUN, "this build has no MPI")
    def test_ranks_train_one_model(self):
        self.make_data()
        run = self.train("cifar", MODEL, "out.safetensors", ranks=3)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.count("Epoch 2"), 1)
        self.assertGreater(self.accuracy("out.safetensors"), 0.6)

    def test_what_is_wrong_is_said(self):
        run = self.train("nowhere", MODEL, "out.safetensors")
        self.assertEqual(run.returncode, 65)
        self.assertIn("nowhere", run.stderr)


if __name__ == "__main__":
    unittest.main()

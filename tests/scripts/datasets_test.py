"""The scripts that fetch data sets, without a net: what is there is checked, and what to do is said."""
import os
import shutil
import subprocess
import unittest

from program import ProgramTest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "datasets")


class Datasets(ProgramTest):
    def script(self, code, name, *words, says=()):
        done = subprocess.run([os.path.join(SCRIPTS, name), *words], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout)
        for word in says:
            self.assertIn(word, done.stdout)

    def file(self, path, size=0, text=""):
        path = self.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
            if size:
                f.truncate(size)

    def test_wrong_words_end_with_2(self):
        self.script(2, "cifar10", says=["needs the folder"])
        self.script(2, "cifar10", "--nothing", "d", says=["--nothing"])
        self.script(2, "cifar10", "a", "b", says=["b is one word too many"])
        self.script(0, "cifar10", "--help", says=["--offline"])

    def test_missing_files_are_named(self):
        for name, says in [("cifar10", "cifar-10-binary.tar.gz"), ("cifar100", "cifar-100-binary.tar.gz"),
                           ("mnist", "train-images-idx3-ubyte.gz"), ("inaturalist", "train_val2017.zip"),
                           ("fashion-mnist", "train-images-idx3-ubyte.gz")]:
            with self.subTest(name=name):
                self.script(69, name, "--offline", "none", says=[says, "without --offline"])
        self.assertFalse(os.path.exists(self.path("none")))

    def test_a_licence_that_needs_a_click_is_explained(self):
        self.script(69, "dogs-vs-cats", "d", says=["train.zip", "accept the rules", "1. ", "4. "])
        self.script(69, "chips", "d", says=["archive.zip", "1. "])
        self.script(69, "inaturalist", "d", says=["186 GB", "--yes"])

    def test_a_whole_set_passes_and_a_cut_file_does_not(self):
        for n in range(1, 6):
            self.file(f"c/cifar-10-batches-bin/data_batch_{n}.bin", 30730000)
        self.file("c/cifar-10-batches-bin/test_batch.bin", 30730000)
        self.file("c/cifar-10-batches-bin/batches.meta.txt", text="x")
        self.script(0, "cifar10", "--offline", "c", says=["--data cifar10:c"])
        self.file("c/cifar-10-batches-bin/data_batch_4.bin", 30729999)
        self.script(65, "cifar10", "--offline", "c", says=["data_batch_4.bin", "30730000"])

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_a_fetched_file_is_compared_with_its_sum(self):
        self.file("mirror/train-images-idx3-ubyte.gz", text="not the file")
        self.script(65, "mnist", "--from", "file://" + self.path("mirror"), "m",
                    says=["f68b3c2dcbeaaa9fbdd348bbdeb94873"])
        self.script(65, "mnist", "--offline", "m", says=["remove it"])
        self.script(69, "fashion-mnist", "--from", "file://" + self.path("no mirror"), "f",
                    says=["cannot be fetched"])

    def test_folders_are_counted(self):
        root = "chips/Pepsico RnD Potato Lab Dataset"
        for part, kind, count in [("Train", "Defective", 369), ("Train", "Non-Defective", 400),
                                  ("Test", "Defective", 92), ("Test", "Non-Defective", 100)]:
            for n in range(count):
                self.file(f"{root}/{part}/{kind}/{n}.jpg")
        self.script(0, "chips", "chips", says=["--expand six"])
        os.remove(self.path(root, "Test/Defective/7.jpg"))
        self.script(65, "chips", "chips", says=["91 files", "92"])
        self.file("i/train2017.json"), self.file("i/val2017.json")
        for n in range(13):
            os.makedirs(self.path(f"i/train_val_images/{n}"))
        self.script(0, "inaturalist", "--offline", "i", says=["inat:i"])
        os.rmdir(self.path("i/train_val_images/3"))
        self.script(65, "inaturalist", "i", says=["12 super categories"])


if __name__ == "__main__":
    unittest.main()

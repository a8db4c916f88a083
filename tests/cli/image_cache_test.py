"""Where decoded images lie changes no curve, whatever the data; what cannot be had is said."""
import gzip
import json
import os
import struct
import subprocess
import unittest

from images import made_pixels
from program import PROGRAM
from tiny import TinyTest

WORDS = ["--model", "tiny.json", "--threads", "1", "--log-every", "1", "--reproducible", "--epochs", "2"]
PLACES = ("memory", "disk", "none")


class ImageCache(TinyTest):
    def curve(self, run, *words, code=0, says=(), **options):
        done = self.expect(code, *WORDS, "--out", run, "--overwrite", *words, says=says, **options)
        if code:
            return done.stderr
        return [m["loss"] for m in self.metrics(run, "step")], self.metrics(run, "summary")[0]["weights_hash"]

    def expect_same_curves(self, *words, ranks=0):
        expected = self.curve("first", *words, "--decode", "first", ranks=ranks)
        for place in PLACES:
            for decode in ("first", "meanwhile"):
                with self.subTest(place=place, decode=decode):
                    self.assertEqual(self.curve("run", *words, "--cache", place, "--decode", decode, ranks=ranks), expected)

    def flat_pixels(self, seed, side):
        return bytes(value for row in made_pixels(seed, side) for pixel in row for value in pixel)

    def test_idx(self):
        os.mkdir(self.path("data"))
        for part, count in (("train", 130), ("t10k", 20)):
            pixels = b"".join(self.flat_pixels(i, 28)[:28 * 28] for i in range(count))
            head = struct.pack(">IIII", 0x803, count, 28, 28)
            self.write(f"data/{part}-images-idx3-ubyte.gz", gzip.compress(head + pixels))
            labels = bytes(i % 10 for i in range(count))
            self.write(f"data/{part}-labels-idx1-ubyte", struct.pack(">II", 0x801, count) + labels)
        self.expect_same_curves("--data", "idx:data")

    def test_cifar(self):
        os.mkdir(self.path("data"))
        self.write("data/batches.meta.txt", b"".join(b"class%d\n" % i for i in range(10)))
        for name, count in (("data_batch_1.bin", 100), ("data_batch_2.bin", 40), ("test_batch.bin", 20)):
            self.write(f"data/{name}", b"".join(bytes([i % 10]) + self.flat_pixels(i, 32) for i in range(count)))
        self.expect_same_curves("--data", "cifar10:data")

    def test_a_class_whose_images_are_all_broken(self):
        self.make("data", cat=50, dog=50, owl=40)
        for i in range(40):
            with open(self.path("data/owl", f"{i}.bmp"), "r+b") as f:
                f.truncate(300)
        allow = ["--data", "data", "--allow-empty-classes"]
        expected = self.curve("first", *allow, "--decode", "first", says=["'owl'", "skipped 40 damaged files"])
        for place in PLACES:
            with self.subTest(place=place):
                text = self.curve("refused", "--data", "data", "--cache", place, code=65, says=["'owl'"])
                self.assertEqual(text.count("cputrain: "), 1, text)
                self.assertEqual(self.curve("run", *allow, "--cache", place, says=["skipped 40 damaged files"]), expected)

    def test_two_trainings_in_one_folder(self):
        """Their files have no names, so that they cannot meet."""
        os.mkdir(self.path("room"))
        self.make("data", cat=60, dog=60)
        expected = [self.curve("first", "--data", "data", "--seed", str(seed)) for seed in (1, 2)]
        running = [subprocess.Popen([PROGRAM, *WORDS, "--data", "data", "--cache", "disk", "--seed", str(seed), "--out",
                                     f"run{seed}"], cwd=self.folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": self.path("room")})
                   for seed in (1, 2)]
        for seed, process in zip((1, 2), running):
            self.addCleanup(process.kill)
            _, said = process.communicate(timeout=100)
            self.assertEqual(process.returncode, 0, said)
            self.assertIn(f"they lie in a file in {self.path('room')}", said)
            run = f"run{seed}"
            self.assertEqual(([m["loss"] for m in self.metrics(run, "step")],
                              self.metrics(run, "summary")[0]["weights_hash"]), expected[seed - 1])
        self.assertEqual(os.listdir(self.path("room")), [])

    def test_why_tmpdir_is_passed_over(self):
        self.make("data", cat=40, dog=40)
        self.write("file", "")
        for folder, says in ((self.path("missing"), "cannot be written to (No such file or directory)"),
                             (self.path("file"), "cannot be written to"), ("/dev/shm", "lies in memory")):
            if folder == "/dev/shm" and not os.path.ismount(folder):
                continue
            with self.subTest(folder=folder):
                self.curve("run", "--data", "data", "--cache", "disk", TMPDIR=folder,
                           says=["they lie in a file in ", f"TMPDIR is passed over: {folder} {says}"])
        self.curve("run", "--data", "data", "--cache", "disk", TMPDIR=self.path(),
                   says=[f"they lie in a file in {self.path()} (TMPDIR names another folder)"])

    def limited(self, limit, *words):
        done = self.run_program(*WORDS, "--data", "data", "--out", "run", "--overwrite", *words,
                                launch=["bash", "-c", f'ulimit {limit}; exec "$@"', "bash"])
        return done.returncode, done.stderr

    def test_limits_are_named(self):
        self.make("data", cat=40, dog=40)
        code, text = self.limited("-f 8", "--cache", "disk", "--image-size", "64")
        self.assertEqual((code, text.count("cputrain: ")), (2, 1), text)
        self.assertIn("'ulimit -f' lets no file be longer than 8.19 kB", text)
        for words, said in (([], False), (["--decode", "meanwhile"], True), (["--decode", "first"], False)):
            code, text = self.limited("-v 4000000", *words)
            self.assertEqual(code, 0, text)
            self.assertEqual("--decode meanwhile changes nothing under 'ulimit -v' or '-d'" in text, said, text)
            self.assertIn("80 images at 16x16 ready in", text)

    def test_packed_files_lie_where_they_are(self):
        self.make("data", cat=40, dog=40)
        self.expect(0, "data", "pack", "data", "d.ctpack", "--image-size", "16")
        for words in (["--cache", "disk"], ["--decode", "meanwhile"], ["--decode", "first"]):
            self.curve("run", "--data", "d.ctpack", *words,
                       says=[f"{' '.join(words)} changes nothing for a packed file"])

    def test_threads_for_images(self):
        self.make("data", cat=60, dog=60)
        expected = self.curve("one", "--data", "data", "--io-threads", "1")
        for threads in ("2", "7"):
            for place in PLACES:
                self.assertEqual(self.curve("run", "--data", "data", "--cache", place, "--io-threads", threads), expected)
        self.curve("run", "--data", "data", "--io-threads", "0", code=2, says=["--io-threads", "1"])

    def test_other_commands(self):
        """Trainings of a sweep take the flag; benchmarks keep their images in memory and have none."""
        self.make("data", cat=40, dog=40)
        for place in PLACES:
            done = self.expect(0, "sweep", "--model", "tiny.json", "--data", "data", "--np", "1", "--batch", "8", "--steps", "2",
                               "--cache", place, "--out", f"sweep-{place}")
            self.assertNotIn("failed", done.stdout + done.stderr)
            configs = [os.path.join(path, "config.json") for path, _, names in os.walk(self.path(f"sweep-{place}"))
                       if "config.json" in names]
            self.assertTrue(configs)
            for config in configs:
                with open(config) as f:
                    self.assertEqual(json.load(f)["cache"], place)
        self.expect(2, "bench", "step", "--cache", "none", says=["--cache"])


if __name__ == "__main__":
    unittest.main()

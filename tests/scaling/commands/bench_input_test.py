"""`bench input`: what it measures, what it says of it, and what it refuses."""
import json
import os
import unittest

from images import made_pixels, write_bmp
from program import ProgramTest, needs_mpi

QUICK = ["--repeat", "1", "--threads", "1", "--image-size", "32"]


class BenchInput(ProgramTest):
    def synth(self, folder, images, form):
        self.expect(0, "data", "synth", folder, "--images", str(images), "--image-size", "48", "--format", form)

    def bench(self, *words, **options):
        done = self.expect(0, "bench", "input", *QUICK, "--json", "-", *words, **options)
        return json.loads(done.stdout)

    def test_json_has_every_stage_with_its_limit(self):
        self.synth("s", 24, "jpeg")
        bench = self.bench("--data", "s", "--augment", "vflip,crop:2", "--resize", "nearest")
        with self.subTest("what was measured"):
            # A tenth is kept for validation.
            self.assertEqual((bench["bench"], bench["images"], bench["left_out"]), ("input", 22, 0))
            self.assertAlmostEqual(bench["megapixels"], 22 * 48 * 48 / 1e6, places=9)
            taken = [(bench[k]) for k in ("image_size", "threads", "repeats", "augment", "resize", "exif")]
            self.assertEqual(taken, [32, 1, 1, "vflip,crop:2", "nearest", "apply"])
        info = json.loads(self.expect(0, "info", "--json", "-").stdout)
        self.assertEqual((bench["cpu"], bench["cpu_id"]), (info["machine"]["cpu"], info["machine"]["cpu_id"]))
        names = [stage["name"] for stage in bench["stages"]]
        self.assertEqual(names, ["decode", "decode, resize", "decode, resize, augment",
                                 "batches from the cache", "batches, augmented"])
        for stage in bench["stages"]:
            with self.subTest(stage["name"]):
                rate, limit = stage["images_per_second"], stage["limit"]["images_per_second"]
                self.assertGreater(rate["min"], 0)
                # One round: its ratio is that of the two rates.
                self.assertAlmostEqual(stage["fraction_of_limit"]["median"], rate["median"] / limit["median"], places=6)
                self.assertEqual(stage["images_per_second_per_thread"], rate["median"])
                if stage["name"].startswith("decode"):
                    self.assertEqual(stage["limit"]["name"], "libjpeg-turbo alone")
                    self.assertAlmostEqual(stage["megapixels_per_second_per_thread"],
                                           rate["median"] * 48 * 48 / 1e6, places=6)
                else:
                    # A copy reads and writes 32 x 32 x 3 bytes.
                    self.assertAlmostEqual(limit["median"] * 2 * 32 * 32 * 3 / (bench["limit"]["triad_gbs"] * 1e9), 1,
                                           places=6)

    def test_rounds_are_spread_and_the_table_is_for_people(self):
        self.synth("s", 12, "jpeg")
        done = self.expect(0, "bench", "input", *QUICK, "--data", "s", "--repeat", "3", "--io-threads", "2",
                           "--validation-split", "0", "--json", "r.json",
                           says=["12 JPEG files of s", "medians of 3 rounds", "2 threads", "libjpeg-turbo alone"])
        bench = self.json_of("r.json")
        for stage in bench["stages"]:
            rate = stage["images_per_second"]
            self.assertLessEqual(rate["min"], rate["median"])
            self.assertLessEqual(rate["median"], rate["max"])
            self.assertAlmostEqual(stage["images_per_second_per_thread"], rate["median"] / 2, places=6)
            self.assertIn(stage["name"], done.stdout)

    def test_other_images_are_left_out_and_counted(self):
        self.synth("s", 12, "jpeg")
        for i in range(3):
            write_bmp(self.path("s", sorted(os.listdir(self.path("s")))[0], f"{i}.bmp"), made_pixels(i, 16))
        bench = self.bench("--data", "s", "--validation-split", "0")
        self.assertEqual((bench["images"], bench["left_out"]), (12, 3))
        limited = self.bench("--data", "s", "--validation-split", "0", "--limit-train", "5")
        self.assertEqual(limited["images"] + limited["left_out"], 5)

    def test_what_cannot_be_measured_ends_with_2(self):
        self.synth("p", 6, "png")
        self.synth("s", 6, "jpeg")
        self.expect(0, "data", "pack", "s", "s.ctpack", "--image-size", "32")
        for words, says in [([], ["bench input needs --data"]),
                            (["--data", "p"], ["--data p", "none", "JPEG"]),
                            (["--data", "synthetic:20"], ["none", "JPEG"]),
                            (["--data", "s.ctpack"], ["none", "JPEG"]),
                            (["--data", "s", "--io-threads", "0"], ["--io-threads 0"]),
                            (["--data", "s", "--repeat", "0"], ["--repeat 0"]),
                            (["--data", "s", "--augment", "crop:99"], ["--augment", "crop"]),
                            (["--data", "s", "--batch", "4"], ["--batch"])]:
            with self.subTest(words=words):
                done = self.expect(2, "bench", "input", *QUICK, *words, says=says)
                self.assertEqual(done.stdout, "")
        self.expect(65, "bench", "input", "--data", "nowhere", says=["nowhere"])

    @needs_mpi
    def test_ranks_are_refused_once(self):
        self.synth("s", 6, "jpeg")
        done = self.expect(2, "bench", "input", *QUICK, "--data", "s", ranks=2, says=["one process, not 2"])
        self.assertEqual(done.stderr.count("one process"), 1)


if __name__ == "__main__":
    unittest.main()

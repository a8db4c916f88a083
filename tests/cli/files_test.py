"""What a run leaves on disk, and what happens when it cannot."""
import json
import os
import subprocess
import unittest

from program import SMALL, ProgramTest


class RunFolder(ProgramTest):
    def test_holds_what_is_documented(self):
        self.train("run", "--epochs", "2")
        self.assertEqual(sorted(os.listdir(self.path("run"))),
                         [".lock", "best.safetensors", "ckpt-000000006", "config.json", "environment.json", "history.json", "metrics.jsonl",
                          "train", "training.csv", "validation", "weights.safetensors"])
        self.assertEqual(sorted(os.listdir(self.path("run/ckpt-000000006"))),
                         ["MANIFEST", "best.safetensors", "model.safetensors", "optimizer.safetensors",
                          "ranks.safetensors", "state.json"])
        self.assertEqual(self.json_of("run/config.json")["batch"], 20)
        environment = self.json_of("run/environment.json")
        self.assertIn("host", environment["machine"])
        info = json.loads(self.expect(0, "info", "--json", "-").stdout)
        self.assertEqual(environment["machine"]["cpu_id"], info["machine"]["cpu_id"])
        version = self.expect(0, "--version").stdout.strip()
        self.assertEqual(version, f"cputrain {environment['cputrain']} ({environment['build']})")
        self.assertEqual(len(self.metrics("run", "epoch")), 2)
        self.assertEqual(self.metrics("run", "summary")[0]["outcome"], "finished")

    def test_without_out_it_names_itself(self):
        self.expect(0, *SMALL, "--steps", "1")
        names = os.listdir(self.path("runs"))
        self.assertEqual(len(names), 1)
        self.assertRegex(names[0], r"^\d{8}-\d{6}-dogcat-np1-b20$")

    def test_an_earlier_run_is_safe_unless_overwritten(self):
        self.train("run", "--steps", "1")
        self.expect(2, *SMALL, "--steps", "1", "--out", "run", says=["run holds a run", "--overwrite"])
        self.train("run", "--steps", "2", "--overwrite")
        self.assertEqual(len(self.metrics("run", "step")), 2)

    def test_a_place_that_cannot_be_written_ends_with_74(self):
        open(self.path("file"), "w").close()
        self.expect(74, *SMALL, "--steps", "1", "--out", "file/run", says=["file/run"])

    def test_a_full_disk_ends_with_74_and_leaves_nothing_half_written(self):
        disk = self.path("disk")
        os.mkdir(disk)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk],
                               stderr=subprocess.PIPE, text=True)
        if mount.returncode != 0:
            self.skipTest("cannot mount a small file system: " + mount.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", disk])
        # The weights are 2.5 MB, the disk has 1. While a thread fills it, a line of metrics may find it full first.
        done = self.expect(74, *SMALL, "--steps", "1", "--out", disk + "/run", says=["No space left on device"])
        self.assertRegex(done.stderr, disk + "/run/.*(weights.safetensors|metrics.jsonl)")
        self.assertLessEqual(set(os.listdir(disk + "/run")),
                             {".lock", "config.json", "environment.json", "history.json", "metrics.jsonl", "train",
                              "training.csv", "validation"})
        with open(disk + "/run/metrics.jsonl") as f:
            lines = f.readlines()
        for line in lines[:-1] if "metrics.jsonl" in done.stderr else lines:
            json.loads(line)


class Weights(ProgramTest):

    def test_predict_names_classes_and_unreadable_files(self):
        self.train("run", "--steps", "2")
        self.write("p.ppm", "no image")
        self.write("dot.bmp", b"BM" + bytes.fromhex("3a000000 00000000 36000000 28000000 01000000 01000000"
                                                    "01001800 00000000 04000000 00000000 00000000 00000000"
                                                    "00000000 ff000000"))
        done = self.expect(65, "predict", "--weights", "run/weights.safetensors", "--json", "-",
                           "dot.bmp", "p.ppm", says=["p.ppm"])
        good, bad = json.loads(done.stdout)["predictions"]
        self.assertAlmostEqual(sum(good["probabilities"].values()), 1, places=5)
        self.assertIn(good["class"], good["probabilities"])
        self.assertIn("error", bad)


if __name__ == "__main__":
    unittest.main()

"""What a person types, right and wrong: one message, the documented exit code."""
import json
import os
import re
import shutil
import subprocess
import unittest

from program import MPIRUN, PROGRAM, ProgramTest, ROOT, SMALL, needs_mpi


class Usage(ProgramTest):
    def test_wrong_words_end_with_2_and_name_the_thing(self):
        for words, says in [(["--batch", "0"], ["--batch 0"]), (["--bacth", "8"], ["--bacth", "batch"]),
                            (["trian"], ["did you mean train"]), (["--model", "dogcart"], ["dogcat"]),
                            (["--image-size", "8"], ["--image-size 8"]),
                            (["--optimizer", "adam:rho=0.5"], ["adam has no figure rho"]),
                            (["data", "pack", "photos"], ["data pack needs"])]:
            with self.subTest(words=words):
                done = self.expect(2, *words, says=says)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    @needs_mpi
    def test_ranks_say_it_once_and_leave(self):
        done = self.expect(2, "--batch", "0", ranks=3, says=["--batch 0"])
        self.assertEqual(done.stderr.count("--batch 0"), 1)
        done = self.expect(65, "--data", self.path("nowhere"), ranks=3, says=["nowhere"])
        self.assertEqual(done.stderr.count("nowhere"), 1)

    def test_version_says_what_was_built_and_how(self):
        text = self.expect(0, "--version").stdout
        found = re.fullmatch(r"cputrain (\S+) \(commit ([0-9a-f]{7,40}|unknown)(-dirty)?, (\w+)\)\n", text)
        self.assertTrue(found, text)
        with open(os.path.join(ROOT, "CMakeLists.txt")) as f:
            self.assertIn(f"project(cputrain VERSION {found[1]} ", f.read())
        with open(os.path.join(os.path.dirname(os.path.realpath(PROGRAM)), "CMakeCache.txt")) as f:
            self.assertIn(f"\nCMAKE_BUILD_TYPE:STRING={found[4]}\n", f.read())
        if found[2] != "unknown" and shutil.which("git"):
            kind = subprocess.run(["git", "cat-file", "-t", found[2]], cwd=ROOT, text=True, stdout=subprocess.PIPE)
            self.assertEqual(kind.stdout, "commit\n")

    def test_info_describes_the_papers_network(self):
        done = self.expect(0, "info", "--model", "dogcat", "--json", "-")
        model = json.loads(done.stdout)["model"]
        self.assertEqual(model["parameters"], 13217985)
        self.assertEqual(model["layers"][1]["output"], [254, 254, 32])
        self.assertEqual([model["layers"][1][key] for key in ("filters", "kernel", "stride", "padding")],
                         [32, 3, 1, "valid"])
        self.assertEqual(model["recipe"], {"batch": 128, "optimizer": "rmsprop", "state_arrays": 1})
        self.assertIn("13,217,985", self.expect(0, "info").stdout)

    def test_bench_step_measures_its_limit_in_the_same_run(self):
        done = self.expect(0, "bench", "step", *SMALL, "--repeat", "3", "--json", "-")
        bench = json.loads(done.stdout)
        rate, limit = bench["images_per_second"], bench["limit"]["fma_gflops"]
        self.assertLessEqual(rate["min"], rate["median"])
        self.assertLessEqual(rate["median"], rate["max"])
        self.assertAlmostEqual(bench["fraction_of_peak"], bench["gflops"] / limit, places=9)
        self.assertGreater(sum(layer["forward_seconds"] for layer in bench["layers"]), 0)
        self.assertGreaterEqual(bench["repeats"], 3)
        self.assertGreaterEqual(bench["left_out"], 0)
        self.assertTrue(0 <= bench["stolen"] <= 1, bench["stolen"])
        self.assertLessEqual(bench["every_step"]["min"], rate["min"])
        self.assertGreaterEqual(bench["every_step"]["max"], rate["max"])
        cpus = bench["cpu_seconds_per_image"]["min"] * rate["max"]
        self.assertTrue(0 < cpus < bench["threads"] + 1, f"{cpus} CPUs at once")
        if bench["left_out"]:
            self.assertLessEqual(bench["stolen"], 0.02)

    def test_a_batch_larger_than_the_data_is_one_step_and_a_warning(self):
        done = self.expect(0, *SMALL, "--batch", "1000", "--epochs", "2", "--out", "run",
                           says=["--batch 1000 is larger"])
        self.assertIn("1/1", done.stdout)

    def test_a_config_means_the_same_in_any_folder(self):
        self.expect(0, "data", "synth", "d", "--images", "12", "--image-size", "32")
        layers = [{"type": "convolution", "filters": 2, "kernel": 3}, {"type": "relu"}, {"type": "global_average_pool"},
                  {"type": "dense", "units": "classes"}, {"type": "softmax"}]
        self.write("net.json", {"format": "cputrain model 1", "layers": layers})
        words = ["--image-size", "64", "--batch", "6", "--threads", "1", "--steps", "1"]
        self.expect(0, *words, "--data", "d", "--model", "net.json", "--out", "a")
        self.expect(0, *words, "--data", "d/../d", "--model", "./net.json", "--weights", "a/weights.safetensors",
                    "--timeline", "t.json", "--out", "b", CPUTRAIN_RESIZE="nearest")
        config = self.json_of("b/config.json")
        here = os.path.realpath(self.folder)
        self.assertEqual([config[k] for k in ("data", "model", "weights", "timeline")],
                         [f"{here}/{name}" for name in ("d", "net.json", "a/weights.safetensors", "t.json")])
        os.mkdir(self.path("elsewhere"))
        os.remove(self.path("t.json"))
        done = subprocess.run([PROGRAM, "--config", "../b/config.json", "--out", "c"], cwd=self.path("elsewhere"),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.json_of("elsewhere/c/config.json"), config)
        self.train("s", "--steps", "1")
        config = self.json_of("s/config.json")
        self.assertEqual((config["data"], config["model"]), ("synthetic:60", "dogcat"))

    def test_a_variable_that_means_nothing_ends_with_2(self):
        self.expect(2, *SMALL, CPUTRAIN_BACTH="8", says=["CPUTRAIN_BACTH", "did you mean --batch"])
        self.expect(0, *SMALL, "--dry-run", CPUTRAIN_CONFUSION="c.csv", CPUTRAIN_PLATFORM="here")

    def test_scripts_and_tests_set_only_variables_that_the_program_knows(self):
        ours = set()
        for folder in ("scripts", "tests"):
            for place, _, files in os.walk(os.path.join(ROOT, folder)):
                for name in files:
                    with open(os.path.join(place, name), errors="replace") as f:
                        text = f.read()
                    if text.startswith("#!/bin/bash") or name.endswith(".sh"):
                        ours |= set(re.findall(r"\bCPUTRAIN_[A-Z_]+\b(?!:BOOL)", text))  # but options of a cache
                    ours |= set(re.findall(r"environ(?:\.get\(|\[)\"(CPUTRAIN_[A-Z_]+)\"", text))
                    if name == "CMakeLists.txt" or name.endswith(".cmake"):
                        ours |= set(re.findall(r"[\";](CPUTRAIN_[A-Z_]+)=\$", text))
        ours.discard("CPUTRAIN_")
        self.assertGreater(len(ours), 4)
        self.expect(0, "export", "--model", "dogcat", "--model-file", "net.json", **dict.fromkeys(ours, "1"))


class Silence(ProgramTest):
    def test_verbose_0_prints_nothing_but_warnings(self):
        words = [*SMALL, "--verbose", "0", "--steps", "2", "--profile"]
        for ranks in (0, 2) if MPIRUN else (0,):
            done = self.expect(0, *words, "--out", f"r{ranks}", ranks=ranks, OMP_NUM_THREADS="1")
            lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
            self.assertEqual((done.stdout, lines), ("", []))
        done = self.expect(0, *words, "--out", "w", "--batch", "1000", "--sharding", "generator")
        self.assertEqual(done.stdout, "")
        self.assertTrue(all(line.startswith("warning: ") for line in done.stderr.splitlines()), done.stderr)
        for word in ("--batch 1000 is larger", "--sharding generator"):
            self.assertIn(word, done.stderr)
        self.assertEqual(self.expect(2, *words, "--batch", "0", says=["--batch 0"]).stdout, "")

    def test_damaged_images_are_said_at_any_level(self):
        self.expect(0, "data", "synth", "d", "--images", "12", "--image-size", "64")
        self.write(self.path("d", os.listdir(self.path("d"))[0], "bad.jpg"), "no image")
        done = self.expect(0, *SMALL, "--data", "d", "--steps", "1", "--out", "r", "--verbose", "0",
                           "--expand", "six-leaky")
        self.assertEqual(done.stdout, "")
        for word in ("skipping", "skipped", "turns of training"):
            self.assertIn("warning: " + word, done.stderr)


class Watchers(ProgramTest):
    """What watches the validation needs one, whatever takes it away."""

    FLAGS = (["--target-accuracy", "0.5"], ["--early-stopping", "1"], ["--save-best"], ["--schedule", "plateau"])

    def refused(self, watcher, *words, **options):
        done = self.expect(2, "--image-size", "64", "--batch", "4", "--threads", "1", *watcher,
                           "--out", "run", *words, says=[watcher[0] + " ", "of validation"], **options)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_without_images_for_validation_it_ends_with_2(self):
        self.expect(0, "data", "synth", "d", "--images", "12", "--image-size", "64")
        self.expect(0, "data", "pack", "d", "p.ctpack", "--image-size", "64", "--validation-split", "0")
        self.expect(0, "data", "synth", "one", "--images", "2", "--image-size", "64")
        self.write("config.json", {"validation-split": 0})
        absences = (["--data", "d", "--validation-split", "0"], ["--data", "d", "--validation-split", "0.01"],
                    ["--data", "d", "--limit-val", "0"], ["--data", "p.ctpack", "--validation-split", "0"],
                    ["--data", "one", "--validation-split", "0.5"],
                    ["--data", "synthetic:60", "--validation-split", "0"],
                    ["--data", "d", "--config", "config.json"], ["--data", "d", "--validation-split", "0", "--dry-run"])
        for watcher, words in [(self.FLAGS[0], a) for a in absences] + [(w, absences[0]) for w in self.FLAGS[1:]]:
            with self.subTest(watcher=watcher, words=words):
                self.assertNotIn("ready in", self.refused(watcher, *words))  # known before anything is decoded
                self.assertFalse(os.path.exists(self.path("run")))
        self.assertNotIn("ready in", self.refused(self.FLAGS[0], "--data", "d", CPUTRAIN_VALIDATION_SPLIT="0"))
        if MPIRUN:
            said = self.refused(self.FLAGS[0], "--data", "d", "--validation-split", "0", ranks=2)
            self.assertEqual(said.count(self.FLAGS[0][0]), 2)

    def test_nor_with_images_that_nobody_can_read(self):
        self.expect(0, "data", "synth", "d/train", "--images", "12", "--image-size", "64")
        for name in os.listdir(self.path("d/train")):
            os.makedirs(self.path("d/validation", name))
            self.write(self.path("d/validation", name, "1.jpg"), "no image")
        self.expect(65, "--image-size", "64", "--data", "d", "--threads", "1", "--target-accuracy", "0.5", "--out",
                    "run", says=["of 2 validation images none can be read"])


if __name__ == "__main__":
    unittest.main()

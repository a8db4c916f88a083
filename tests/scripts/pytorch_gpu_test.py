"""scripts/peers/pytorch_gpu.py: its words, its order and budget, and processes that hang or die."""
import importlib.util
import json
import os
import stat
import subprocess
import sys
import unittest
from unittest import mock

from program import ProgramTest

sys.dont_write_bytecode = True
PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "peers")
SCRIPT = os.path.join(PEERS, "pytorch_gpu.py")
DAY = os.path.join(PEERS, "..", "gpu", "day")
sys.path.insert(0, PEERS)
import gpu_modes
import pytorch_gpu

# In the place of the process that trains: answers by what its request says.
STAND_IN = """
import json, sys, time
print(json.dumps({"versions": {"pytorch": "none"}, "device": {"type": "stand-in"}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request["engine"] == "hangs":
        time.sleep(600)
    if request["engine"] == "dies":
        sys.exit("memory is gone")
    answer = {"status": "failed", "reason": "CUDA error: broken"} if request["engine"] == "breaks" else {
        "status": "measured", "batch_asked": request["batch"]}
    print(json.dumps(answer), flush=True)
"""


class Clock:
    def __init__(self):
        self.time = 100.0

    def __call__(self):
        return self.time


class Plan(unittest.TestCase):
    def test_time_is_shared_out_until_it_is_over(self):
        clock = Clock()
        budget = gpu_modes.Budget(100, 60, now=clock)
        compiled, eager = gpu_modes.Mode("compiled", "bf16"), gpu_modes.Mode("eager", "bf16")
        self.assertEqual((budget.of(compiled), budget.of(eager)), (60, 30))
        self.assertEqual(budget.of(gpu_modes.Mode("eager", "float32")), 60, "cuDNN searches long")
        clock.time += 80
        self.assertEqual((budget.left(), budget.of(compiled), budget.of(eager)), (20, 20, 20))
        clock.time += 18
        self.assertIsNone(budget.of(eager), "2 s are too few to begin")


class Script(ProgramTest):
    def script(self, *words, **environment):
        return subprocess.run([sys.executable, SCRIPT, *words], cwd=self.folder, text=True, timeout=250,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment})

    def test_wrong_words_have_their_message(self):
        good = ["--json", "f.json", "--seconds", "9"]
        for code, words, says in [(2, [], "--json"), (2, ["--json", "f.json"], "--seconds"),
                                  (2, ["--json", "", "--seconds", "9"], "its name is empty"),
                                  (2, [*good, "--seconds", "-1"], "above 0"), (2, [*good, "--seconds", "x"], "above 0"),
                                  (2, [*good, "--batches", "0,8"], "from 1"), (2, [*good, "--batches", "8,"], "from 1"),
                                  (2, [*good, "--device", "tpu"], "tpu"),
                                  (2, [*good, "--modes", "eager-bf16"], "eager-bf16 is no mode; there are eager-tf32"),
                                  (2, [*good, "--model", "nix.json"], "nix.json"),
                                  (74, ["--json", "nowhere/f.json", "--seconds", "9"], "cannot be written")]:
            with self.subTest(words=words):
                done = self.script(*words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(says, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_device_keeps_its_place(self):
        """As root, a file could take it."""
        if not stat.S_ISCHR(os.stat("/dev/full").st_mode):
            self.skipTest("/dev/full is no device here")
        done = self.script("--json", "/dev/full", "--seconds", "9")
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))

    def test_a_bad_model_file_ends_with_65(self):
        for text, says in (("garbage", "it is no JSON"), ("[]", "it lacks"), ("{}", "it lacks"),
                           ("\xff", "it is no JSON"), ('{"input": {}, "recipe": {}, "layers": 3}', "it lacks")):
            with self.subTest(text=text):
                with open(self.path("m.json"), "w", encoding="latin-1") as f:
                    f.write(text)
                done = self.script("--json", "f.json", "--seconds", "9", "--model", "m.json", "--device", "cpu")
                self.assertEqual((done.returncode, done.stdout), (65, ""), done.stderr)
                self.assertRegex(done.stderr, rf"\Apytorch_gpu: --model m.json cannot be used \({says}.*\n\Z")
                self.assertEqual(os.listdir(self.folder), ["m.json"])

    def test_without_pytorch_or_a_gpu_it_is_skipped(self):
        done = self.script("--json", "f.json", "--seconds", "60")
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        told = self.json_of("f.json")
        self.assertEqual((told["status"], told["results"]), ("skipped", []))
        self.assertRegex(told["reason"], "no PyTorch|no CUDA device")
        self.assertIn(told["reason"], done.stdout)

    def test_its_model_is_that_of_the_program(self):
        self.expect(0, "export", "--model", "dogcat", "--model-file", "m.json")
        with open(os.path.join(PEERS, "dogcat.json")) as f:
            self.assertEqual(json.load(f), self.json_of("m.json"))

    def test_modes_that_are_asked_for_go_in_their_order(self):
        words = ["pytorch_gpu.py", "--json", "f", "--seconds", "9", "--batches", "32,256", "--modes",
                 "layers-tf32,compiled-bf16-channels-last"]
        with mock.patch.object(sys, "argv", words):
            order = pytorch_gpu.order_of(pytorch_gpu.arguments())
        self.assertEqual([(mode.name(), batch) for mode, batch in order],
                         [("layers-tf32", 256), ("compiled-bf16-channels-last", 256), ("layers-tf32", 32),
                          ("compiled-bf16-channels-last", 32)])

    def test_the_modes_of_a_day_are_known(self):
        known = {mode.name() for mode, _ in gpu_modes.order([32, 256], quick=False)}
        with mock.patch.object(sys, "path", [DAY, *sys.path]):
            import pytorch_steps
        for twin in pytorch_steps.TWINS:
            self.assertLessEqual({*twin.modes, *twin.quick}, known)
            self.assertIn("compiled-bf16-channels-last", twin.modes)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
    def test_a_resnet_has_the_parameters_of_the_program(self):
        self.expect(0, "export", "--model", "resnet50v2", "--model-file", "resnet.json")
        done = self.script("--json", "f.json", "--seconds", "120", "--device", "cpu", "--quick", "--batches", "2",
                           "--modes", "eager-bf16-channels-last", "--image-size", "64", "--threads", "1", "--model",
                           "resnet.json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result, = self.json_of("f.json")["results"]
        info = json.loads(self.expect(0, "info", "--model", "resnet50v2", "--json", "-").stdout)
        self.assertEqual(result["parameters"], info["model"]["parameters"])

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs PyTorch")
    def test_it_trains_in_pytorch(self):
        done = self.script("--json", "f.json", "--seconds", "120", "--mode-seconds", "30", "--device", "cpu", "--quick",
                           "--batches", "2", "--image-size", "48", "--threads", "1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        results = {r["mode"]: r for r in self.json_of("f.json")["results"]}
        self.assertEqual(results["graphs-bf16-channels-last"]["status"], "skipped")
        eager = results["eager-bf16-channels-last-deterministic"]
        self.assertEqual((eager["status"], eager["same_bits"]), ("measured", True))
        self.assertGreater(eager["images_per_second"]["max"], 0)
        for error in eager["product_errors"].values():  # numbers of bf16 have 8 bits
            self.assertTrue(2 ** -12 < error < 2 ** -7, error)
        info = json.loads(self.expect(0, "info", "--image-size", "48", "--json", "-").stdout)
        self.assertEqual(eager["parameters"], info["model"]["parameters"])


class Processes(ProgramTest):
    """With a process of ours in the place of the one that trains."""

    def setUp(self):
        super().setUp()
        self.write("gpu_worker.py", STAND_IN)
        self.script, pytorch_gpu.Worker.SCRIPT = pytorch_gpu.Worker.SCRIPT, self.path("gpu_worker.py")
        sys.argv, self.words = ["pytorch_gpu.py", "--json", "f", "--seconds", "100", "--mode-seconds", "2"], sys.argv
        self.journal = pytorch_gpu.Journal(self.path("f.json"), {})
        a = pytorch_gpu.arguments()
        self.measurement = pytorch_gpu.Measurement(a, self.journal, gpu_modes.Budget(100, 2))

    def tearDown(self):
        self.measurement.end()
        pytorch_gpu.Worker.SCRIPT, sys.argv = self.script, self.words
        super().tearDown()

    def of(self, engine):
        result = self.measurement.of(gpu_modes.Mode(engine, "bf16"), 8)
        self.assertEqual((result["engine"], result["batch"]), (engine, 8))
        return result

    def test_each_failure_costs_itself_alone(self):
        for engine, reason in [("hangs", "took longer than its 2 s"),
                               ("dies", "its process ended with 1: memory is gone"), ("breaks", "CUDA error: broken")]:
            failed = self.of(engine)
            self.assertEqual((failed["status"], failed["reason"]), ("failed", reason))
            self.assertIsNone(self.measurement.worker, "a new process takes the next mode")
            good = self.of("eager")
            self.assertEqual((good["status"], good["reason"], good["batch_asked"]), ("measured", None, 8))
        self.assertEqual(self.journal.told["versions"], {"pytorch": "none"})

    def test_the_file_is_whole_after_each_mode(self):
        self.journal.add(self.of("eager"))
        told = self.json_of("f.json")
        self.assertEqual([r["status"] for r in told["results"]], ["measured"])
        self.assertEqual(told["status"], "running")


if __name__ == "__main__":
    unittest.main()

"""scripts/gpu_day as a whole: a pack, its day on the emulated device from another folder, what is collected of it."""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

from gpu_day_folder import SCRIPT, STAND_INS, why_no_pack
from program import MPIRUN, PROGRAM
import collect
from collect import without_names
import expected
import order

BUILD = os.path.dirname(PROGRAM)
MOST_BYTES = 55e6


def gpu_day(*words):
    return subprocess.run([sys.executable, "-B", SCRIPT, *words], text=True, stdin=subprocess.DEVNULL, timeout=240,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@unittest.skipIf(why_no_pack(PROGRAM), why_no_pack(PROGRAM))
class Day(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = holder.name
        made = gpu_day("pack", cls.path("made"), "--no-build", "--build", BUILD, "--cifar", cls.cifar())
        if made.returncode:
            raise AssertionError(made.stdout + made.stderr)
        os.rename(cls.path("made"), cls.path("elsewhere"))  # where it was made is not where it runs

    @classmethod
    def cifar(cls):
        """Files of CIFAR-10's form, of images that nobody can compress."""
        os.mkdir(cls.path("cifar"))
        for name, images in (("data_batch_1.bin", 2000), ("test_batch.bin", 500)):
            with open(cls.path("cifar", name), "wb") as file:
                for number in range(images):
                    file.write(bytes([number % 10]) + os.urandom(3 * 32 * 32))
        return cls.path("cifar")

    @classmethod
    def path(cls, *parts):
        return os.path.join(cls.folder, *parts)

    def setUp(self):
        self.temporary = self.path("tmp-" + self.id().rpartition(".")[2])
        os.mkdir(self.temporary)

    def run_day(self, *words, **environment):
        """With next to nothing in the environment, from the root."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.folder, "TMPDIR": self.temporary,
                       **environment}
        return subprocess.run([self.path("elsewhere", "run"), *words], cwd="/", text=True, env=environment, timeout=280,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def with_stand_ins(self, *words, **environment):
        return self.run_day(*words, CPUTRAIN_EMULATED="plain", CPUTRAIN_DAY_TOOLS=STAND_INS,
                            CPUTRAIN_DAY_PYTHON=os.path.join(STAND_INS, "pytorch"),
                            STAND_IN_LOG=self.path("asked"), **environment)

    def result_of(self, out):
        with open(os.path.join(out, "day.json")) as file:
            day = json.load(file)
        return day, {step["name"]: step for step in day["steps"]}

    def assert_nothing_is_left(self):
        self.assertEqual(os.listdir(self.temporary), [])
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    self.assertNotIn(f"TMPDIR={self.temporary}\0".encode(), file.read(), f"process {name} is left")
            except OSError:
                pass  # no process, or one that has just ended

    def test_a_pack_may_travel(self):
        size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(self.path("elsewhere"))
                   for name in names)
        self.assertLess(size, MOST_BYTES)
        with tarfile.open(self.path("elsewhere", "bundle.tar.xz")) as tar:
            data = sum(member.size for member in tar
                       if member.name.startswith(("expected/", "cifar10/")) or member.name == "photographs.ctpack")
        self.assertGreater(data, 10e6, "images of CIFAR-10 are in it")
        self.assertLess(data, expected.MOST_BYTES)
        again = gpu_day("pack", self.path("elsewhere"), "--no-build", "--build", BUILD)
        self.assertEqual(again.returncode, 2, again.stderr)
        self.assertIn("is not an empty folder", again.stderr)

    def test_a_day_on_the_emulated_device(self):
        out = self.path("out")
        done = self.with_stand_ins("--quick", "--seconds", "240", out)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assert_nothing_is_left()
        day, steps = self.result_of(out)
        self.check_files(out)
        self.check_steps(steps, done.stdout)
        self.check_tools(day, steps)
        self.check_collected(out, day)

    def check_files(self, out):
        names = os.listdir(out)
        self.assertLessEqual(len(names), 8, names)
        for name in names:
            self.assertRegex(name, r"^[A-Za-z0-9._-]+$")
            self.assertLess(os.path.getsize(os.path.join(out, name)), 16 << 20)
        with open(os.path.join(out, "log.txt")) as log:
            self.assertNotIn(self.temporary, log.read(), "names of folders say nothing")

    def check_steps(self, steps, said):
        self.assertEqual(list(steps), [step.name for step in order.steps()])
        page = said[said.index("cputrain's day with a GPU"):]
        self.assertLess(len(page), 14_000)
        self.assertIn("Why warps wait, by ncu", page)
        self.assertIn("predicted", page)
        for name, step in steps.items():
            self.assertIn(f"  {name} ", page)
            self.assertIn(step["outcome"], ("ok", "skipped"), step)
        able = ["machine", "libraries", "info", "curve beside the CPU's", "same hash again", "1 CPU",
                "ncu dogcat bf16", "ncu dogcat tf32", "ncu resnet50v2 bf16", "PyTorch begins to compile",
                "PyTorch has compiled", "PyTorch dogcat 256", "PyTorch resnet50v2 128",
                "selftest", "selftest again", "selftest beside emulated", "curve in tf32", "curve in bf16"]
        able += ["2 ranks on one device", "2 ranks with and without graphs", "a rank is killed",
                 "CPU ranks"] if MPIRUN else []
        able += [f"compute-sanitizer {tool}" for tool in ("memcheck", "racecheck", "initcheck", "synccheck")]
        for name in able:
            self.assertEqual(steps[name]["outcome"], "ok", steps[name])
        measured = [f"bench {what} {name}" for what in ("step", "kernels") for name in ("exact", "tf32", "bf16")]
        measured += ["bench step resnet50v2 bf16", "bench step resnet50v2 tf32"]
        for name in ("device tests", *measured):
            self.assertEqual(steps[name]["outcome"], "skipped", steps[name])
            self.assertRegex(steps[name]["text"], "emulated|built where nvcc is")

    def check_tools(self, day, steps):
        with open(self.path("asked")) as asked:
            for line in asked:
                self.assertRegex(line, r"^(-L|--query-gpu=[\w.,]+ --format=csv(,noheader,nounits -lms 2000)?)$",
                                 "nvidia-smi may change settings")
        self.assertNotIn("0123-456789abcdef", json.dumps(day), "a GPU's number says nothing")
        self.assertEqual(set(day["facts"]["ncu"]), {"dogcat bf16", "dogcat tf32", "resnet50v2 bf16"})
        gemm, _, pool = day["facts"]["ncu"]["dogcat bf16"]["launches"]
        self.assertEqual((gemm["kernel"], gemm["microseconds"]), ("gemm Forward 128x128", 1234.5))
        self.assertEqual((pool["kernel"], pool["microseconds"]), ("max_pool_backward", 500))
        self.assertEqual(gemm["metrics"]["L2 Cache Throughput"], 41.5)
        self.assertIn("waits for mio_throttle 2", steps["ncu dogcat bf16"]["text"])
        usage = {row["step"]: row for row in day["facts"]["usage"]["steps"]}
        self.assertEqual(list(usage), list(steps))
        self.assertGreater(usage["curve beside the CPU's"]["cpus"], 0)
        self.assertEqual(usage["curve beside the CPU's"]["gpus"],
                         [{"gpu": 0, "percent": 97, "mib": 5120, "watts": 612.5}])
        self.assertRegex(day["facts"]["usage"]["samples"][-1], r"^\d+ 0 97 5120 612\.5$")
        figures = {figure["what"]: figure["measured"] for figure in day["figures"]}
        self.assertEqual(figures["PyTorch compiled-bf16, batch 256"], 12000)
        self.assertEqual(figures["PyTorch resnet50v2 128x128 compiled-bf16, batch 128"], 12000)
        self.assertNotIn("PyTorch graphs-bf16, batch 256", figures)
        self.assertRegex(steps["compute-sanitizer racecheck"]["text"], "large in bf16: 0 hazards.*; no control: ")
        self.assertIn("1 failed: graphs-bf16-channels-last at batch 256 (out of memory)",
                      steps["PyTorch dogcat 256"]["text"])

    def check_collected(self, out, day):
        place = self.path("gpu-emulated")
        with open(os.path.join(out, "summary.txt"), "a") as file:
            file.write("GPU 0: (UUID: GPU-3f2504e0-4f89-11d3-9a0c-0305e82c3301)\n")
        done = gpu_day("collect", out, place)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gpu-emulated/README.md", done.stdout)
        with open(os.path.join(place, "README.md")) as file:
            readme = file.read()
        with open(os.path.join(place, "summary.txt")) as file:
            summary = file.read()
        self.assertIn("GPU 0: (UUID: GPU-...)", summary)
        for step in day["steps"]:
            self.assertIn(f"| {step['name']} | {step['outcome']} |", readme)
        with open(os.path.join(out, "cells.json")) as ours, open(os.path.join(place, "cells.json")) as collected:
            self.assertEqual(json.loads(without_names(ours.read())), json.load(collected))
        self.assertRegex(readme, r"\n\| batch \| 1 CPU \|")
        if any(row["seconds"] >= collect.LONG for row in day["facts"]["usage"]["steps"]):
            self.assertRegex(readme, r"\n\| [^|]+ \| [\d.]+ \| [\d.]+ \| 0 \| 97 \| 5,120 \| 612 \| [\d.]+ \|")
        reported = subprocess.run([PROGRAM, "report", out, "--out", self.path("report")], capture_output=True)
        self.assertEqual(reported.returncode, 0, reported.stderr)
        for name in re.findall(r"\]\((\S+)\)", readme):
            self.assertTrue(os.path.exists(os.path.join(place, name)), name)
        self.assertEqual(gpu_day("collect", out, place).returncode, 2, "results are not mixed")

    def test_its_time_is_over(self):
        out = self.path("short")
        done = self.with_stand_ins("--seconds", "20", out, STAND_IN_SECONDS="60")
        self.assert_nothing_is_left()
        _, steps = self.result_of(out)
        self.assertEqual(steps["CPU ranks"]["text"], "out of time", done.stdout)
        self.assertEqual(steps["CPU ranks"]["outcome"], "not run")

    def test_words_and_missing_devices_have_their_message(self):
        mixed = self.path("mixed")
        os.mkdir(mixed)
        shutil.copy(SCRIPT, mixed)
        for code, words, environment, says in [
                (77, [self.path("none")], {"PATH": "/usr/bin:/bin"}, "no GPU is here"),
                (2, [self.path("none")], {"CPUTRAIN_EMULATED": "checked"}, "`plain` alone"),
                (2, [mixed], {"CPUTRAIN_EMULATED": "plain"}, "is not an empty folder"),
                (2, ["--seconds", "600", "x"], {}, "20 to 570"), (2, [], {}, "OUT"),
                (2, ["--fast", "x"], {}, "--fast")]:
            with self.subTest(words=words):
                if code == 77 and (os.path.exists("/dev/nvidia0") or shutil.which("nvidia-smi")):
                    self.skipTest("a GPU is here")
                done = self.run_day(*words, **environment)
                self.assertEqual(done.returncode, code, done.stdout)
                self.assertIn(says, done.stdout)
        self.assertFalse(os.path.exists(self.path("none")))


if __name__ == "__main__":
    unittest.main()

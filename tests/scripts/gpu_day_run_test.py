"""A pack's `run` where something is wrong: its words, a damaged pack, signals. The pack holds a program that waits."""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import unittest

from gpu_day_folder import ROOT, SCRIPT
from program import ProgramTest
import order

DAY = os.path.join(ROOT, "scripts", "gpu", "day")
STEPS = len(list(order.steps()))
SECONDS = 30  # at most, for what takes one or two


def until(condition, what):
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {SECONDS} s: {what}")
        time.sleep(0.05)


class Folder(ProgramTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("tmp"))

    def assert_says_once(self, done, code, says):
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertIn(says, done.stdout)
        self.assertNotIn("Traceback", done.stdout)


class Run(Folder):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("pack"))
        shutil.copytree(DAY, self.path("pack", "day"), ignore=shutil.ignore_patterns("run", "__pycache__"))
        shutil.copy(os.path.join(DAY, "run"), self.path("pack"))
        os.mkdir(self.path("bin"))
        self.tool("bin/cputrain", f"#!/bin/sh\n: > {self.path('began')}\nsetsid sleep 1000 &\nsleep 1000\n")
        with tarfile.open(self.archive(), "w:xz") as tar:
            tar.add(self.path("bin"), "bin")
        self.write_about()

    def archive(self):
        return self.path("pack", "bundle.tar.xz")

    def write_about(self, missing=()):
        with open(self.archive(), "rb") as file:
            content = file.read()
        about = {"commit": "abc", "program": "cputrain", "missing": list(missing),
                 "bundle": {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}}
        self.write(self.path("pack", "pack.json"), about)

    def start(self, *words, **environment):
        environment = {"PATH": os.environ["PATH"], "TMPDIR": self.path("tmp"), "CPUTRAIN_EMULATED": "plain",
                       **environment}
        process = subprocess.Popen([sys.executable, self.path("pack", "run"), *words], text=True, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        return process

    def run_day(self, *words, **environment):
        process = self.start(*words, **environment)
        said, _ = process.communicate(timeout=SECONDS)
        return subprocess.CompletedProcess(words, process.returncode, said)

    def left(self):
        """Processes of this test's days."""
        found = []
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if f"TMPDIR={self.path('tmp')}\0".encode() in file.read():
                        found.append(name)
            except OSError:
                pass  # no process, or one that has just ended
        return found

    def test_a_killed_day_leaves_nothing(self):
        process = self.start("--only", "info", self.path("out"))
        until(lambda: os.path.exists(self.path("began")), "the program began")
        self.assertEqual(len(os.listdir(self.path("tmp"))), 1)
        process.kill()
        process.wait()
        until(lambda: not self.left(), "its processes ended")
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_folders_of_dead_days_are_removed_and_others_are_not(self):
        import workplace
        for name in ("cputrain-day-dead", "cputrain-day-other", "cputrain-day-alive", "cputrain-day-of-somebody"):
            os.mkdir(self.path("tmp", name))
        for name in ("cputrain-day-dead", "cputrain-day-other"):
            workplace.locked(self.path("tmp", name)).close()
        left = ["cputrain-day-alive", "cputrain-day-of-somebody"]
        if os.geteuid() == 0:  # another user's stays
            os.chown(self.path("tmp", "cputrain-day-other"), 12345, 12345)
            left.append("cputrain-day-other")
        with workplace.locked(self.path("tmp", "cputrain-day-alive")):
            self.run_day("--only", "libraries", self.path("out"))
        self.assertEqual(sorted(os.listdir(self.path("tmp"))), left)

    def test_a_signal_ends_the_day_and_its_summary_says_so(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(number.name):
                out = self.path(number.name)
                process = self.start("--only", "info,machine", out)
                until(lambda: os.path.exists(self.path("began")), "the program began")
                process.send_signal(number)
                said, _ = process.communicate(timeout=SECONDS)
                done = subprocess.CompletedProcess([], process.returncode, said)
                self.assert_says_once(done, code, f"1 ok, 0 failed, {STEPS - 2} skipped, 1 not run")
                with open(os.path.join(out, "day.json")) as file:
                    steps = {step["name"]: (step["outcome"], step["text"]) for step in json.load(file)["steps"]}
                self.assertEqual(steps["info"], ("not run", f"the day was ended by {number.name}"))
                self.assertEqual(steps["probes"], ("skipped", "not asked for"))
                self.assertEqual((os.listdir(self.path("tmp")), self.left()), ([], []))
                os.remove(self.path("began"))

    def test_a_signal_while_the_pack_is_unpacked(self):
        self.write(self.path("bin", "large"), bytes(64 << 20))
        with tarfile.open(self.archive(), "w:xz", preset=0) as tar:
            tar.add(self.path("bin"), "bin")
        self.write_about()
        process = self.start("--only", "info", self.path("out"))
        until(lambda: any("large" in names for _, _, names in os.walk(self.path("tmp"))), "it is unpacked")
        process.terminate()
        said, _ = process.communicate(timeout=SECONDS)
        done = subprocess.CompletedProcess([], process.returncode, said)
        self.assert_says_once(done, 143, f"0 ok, 0 failed, {STEPS - 1} skipped, 1 not run")
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_wrong_words(self):
        for words, says in ((["--only", "info,nonsense", "x"], "has 'nonsense'. The steps are: machine, libraries,"),
                            (["--only", "", "x"], "has ''. The steps are"), ([""], "OUT is empty")):
            with self.subTest(words=words):
                self.assert_says_once(self.run_day(*words), 2, says)

    def test_a_pack_without_the_device(self):
        self.write_about(["the emulated device"])
        self.assert_says_once(self.run_day(self.path("out")), 77, "made without the emulated device")
        self.assertFalse(os.path.exists(self.path("out")))

    def test_a_damaged_pack(self):
        def flip(content):
            return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]

        with open(self.archive(), "rb") as file:
            content = file.read()
        for damaged, says in ((content[:-5], "bytes of"), (flip(content), "another SHA-256"), (b"", "has 0 bytes")):
            with self.subTest(says):
                with open(self.archive(), "wb") as file:
                    file.write(damaged)
                self.assert_says_once(self.run_day(self.path("out")), 65, says)
        for name in ("bundle.tar.xz", "pack.json", "day/order.py"):
            with self.subTest(name):
                os.remove(self.path("pack", name))
                self.assert_says_once(self.run_day(self.path("out")), 65, "is damaged")
        self.assertFalse(os.path.exists(self.path("out")))

    def test_nothing_can_be_written(self):
        self.assert_says_once(self.run_day("/proc/out"), 74, "cannot write /proc/out")
        self.write(self.path("bin", "large"), os.urandom(1 << 20))
        with tarfile.open(self.archive(), "w:xz") as tar:
            tar.add(self.path("bin"), "bin")
        self.write_about()
        words = ["bash", "-c", f"ulimit -f 512; exec '{sys.executable}' '{self.path('pack', 'run')}' '{self.path('out')}'"]
        done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
                              env={"PATH": os.environ["PATH"], "TMPDIR": self.path("tmp"), "CPUTRAIN_EMULATED": "plain"})
        self.assert_says_once(done, 74, "File too large")
        self.assertEqual((os.listdir(self.path("out")), os.listdir(self.path("tmp"))), ([], []))

    def test_two_days_at_once_do_not_share_a_folder(self):
        days = [self.start("--only", "libraries", self.path("out")) for _ in range(3)]
        said = [day.communicate(timeout=SECONDS)[0] for day in days]
        refused = [text for text, day in zip(said, days) if day.returncode == 2]
        self.assertEqual(len(refused), 2, said)
        for text in refused:
            self.assertIn("shall not be mixed", text)


class Script(Folder):
    """scripts/gpu_day, which makes packs and collects."""

    def gpu_day(self, *words):
        return subprocess.run([sys.executable, "-B", SCRIPT, *words], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)

    def test_a_pack_that_cannot_be_made(self):
        self.assert_says_once(self.gpu_day("pack", "/proc/x", "--no-build"), 74, "gpu_day: /proc/x: ")
        done = self.gpu_day("pack", self.path("pack"), "--no-build", "--build", "/nonexist")
        self.assert_says_once(done, 1, "/nonexist/cputrain is not there")
        self.assertFalse(os.path.exists(self.path("pack")))
        done = self.gpu_day("pack", self.path("pack"), "--cifar", "/nonexist")  # at once: nothing is built
        self.assert_says_once(done, 1, "--cifar /nonexist: data_batch_1.bin is not there")
        self.assertFalse(os.path.exists(self.path("pack")))

    def test_the_steps_are_listed(self):
        done = self.gpu_day("steps")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout, "\n".join(order.table()) + "\n")
        with open("/dev/full", "w") as full:
            done = subprocess.run([sys.executable, "-B", SCRIPT, "steps"], text=True, stdout=full,
                                  stderr=subprocess.PIPE, timeout=SECONDS)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertRegex(done.stderr, "^gpu_day: standard output cannot be written .*\n$")

    def test_a_day_that_cannot_be_collected(self):
        os.mkdir(self.path("out"))
        for text in ("{", "{}", "[]", '{"device": "a GPU"}'):
            with self.subTest(text):
                self.write(self.path("out", "day.json"), text)
                done = self.gpu_day("collect", self.path("out"), self.path("place"))
                self.assert_says_once(done, 65, "day.json is damaged or of a day that never began")
                self.assertFalse(os.path.exists(self.path("place")))

    def test_a_folder_that_cannot_be_written(self):
        day = {"device": "a GPU", "emulated": False, "quick": False, "date": "today", "seconds": 1, "steps": [],
               "figures": [], "facts": {}, "packed": {"program": "cputrain", "commit": "abc"}}
        os.mkdir(self.path("out"))
        self.write(self.path("out", "day.json"), day)
        self.assert_says_once(self.gpu_day("collect", self.path("out"), "/proc/x"), 74, "gpu_day: /proc/x: ")
        done = self.gpu_day("collect", self.path("out"), self.path("out", "day.json"))
        self.assert_says_once(done, 2, "is not an empty folder")


if __name__ == "__main__":
    unittest.main()

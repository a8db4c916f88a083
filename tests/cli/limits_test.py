"""Limits of the system by ulimit."""
import os
import pwd
import subprocess
import unittest

from program import MPIRUN, PROGRAM, SMALL, ProgramTest, as_root, mpirun, needs_mpi

DOCUMENTED = {0, 2, 70, 74}  # codes that a limit may end with: src/logging/README.md, "Exit codes"
CODES_OF_SIGNALS = range(128, 160)


def unused_user():
    """The number of a user that nobody is and no process belongs to: `ulimit -u` counts threads of all of them."""
    taken = {owner_of(f"/proc/{entry}") for entry in filter(str.isdigit, os.listdir("/proc"))}
    return str(next(user for user in range(61_184 + os.getpid() % 4000, 65_520)
                    if user not in taken and not has_name(user)))


def owner_of(path):
    try:
        return os.stat(path).st_uid
    except OSError:
        return None  # it has ended


def has_name(user):
    try:
        return pwd.getpwuid(user) is not None
    except KeyError:
        return False


class Ulimit(ProgramTest):
    def limited(self, limit, *words, ranks=0, user=None):
        """Runs under `ulimit LIMIT`; the exit code and what was said."""
        launch = mpirun(ranks) if ranks else []
        line = f'ulimit -c 0; ulimit {limit}; exec "$@"'
        become = ["setpriv", "--reuid", user, "--clear-groups"] if user else []
        done = self.run_program(*map(str, words), launch=[*become, "bash", "-c", line, "bash", *launch], timeout=200,
                                HOME=self.folder)
        return done.returncode, done.stdout + done.stderr

    def check(self, code, text, what):
        self.assertIn(code, DOCUMENTED, f"{what}: {text}")
        if code:
            self.assertIn("cputrain: ", text, what)
            self.assertNotIn("please report", text, what)

    def temporary_files(self):
        return [name for _, folders, files in os.walk(self.folder) for name in folders + files if ".tmp" in name]

    def test_files_that_may_not_grow(self):
        self.train("run", "--steps", "1")
        weights = "run/weights.safetensors"
        images = self.path("p")
        self.expect(0, "data", "synth", images, "--images", "40", "--image-size", "64")
        for words in ([*SMALL, "--steps", "1", "--out", "other"],
                      [*SMALL, "--steps", "1", "--out", "run", "--overwrite"],
                      ["data", "pack", images, "p.ctpack", "--image-size", "64"],
                      ["export", "--weights", weights, "--onnx", "m.onnx"],
                      ["export", "--weights", weights, "--safetensors", "m.safetensors"]):
            with self.subTest(words=words):
                code, text = self.limited("-f 200", *words)
                self.assertEqual(code, 74, text)
                self.assertIn("ulimit -f", text)
                self.assertEqual(self.temporary_files(), [])
                self.assertTrue(os.path.exists(self.path(weights)))

    def test_a_report_that_may_not_grow(self):
        self.train("run", "--steps", "1")
        code, text = self.limited("-f 20", "report", "run", "--out", "r")
        self.assertEqual(code, 74, text)
        self.assertEqual(self.temporary_files(), [])

    STACKS = "-s 8192; ulimit "  # of a thread; a shell may have others, which would decide what fits

    def test_addresses(self):
        limits = (70_000, 100_000, 150_000, 180_000, 200_000, 220_000, 300_000)
        # Below that the system cannot load the libraries, or they cannot begin.
        limits = [n for n in limits if self.limited(f"{self.STACKS}-v {n}", "--version")[0] == 0]
        self.assertGreater(len(limits), 3)
        for kilobytes in limits:
            code, text = self.limited(f"{self.STACKS}-v {kilobytes}", *SMALL[:-2], "--threads", "4", "--steps", "1",
                                      "--out", f"v{kilobytes}")
            self.check(code, text, f"ulimit -v {kilobytes}")
        code, text = self.limited(f"{self.STACKS}-v 400000", *SMALL[:-2], "--threads", "64", "--steps", "1", "--out",
                                  "v")
        self.assertEqual(code, 2, text)
        self.assertIn("ulimit -v 400000", text)

    def test_a_plan_agrees_with_training_about_addresses(self):
        for kilobytes in (200_000, 600_000, 4_000_000):
            words = ["--image-size", "64", "--data", "synthetic:6000", "--steps", "1", "--limit-val", "0",
                     "--threads", "2", "--out", f"w{kilobytes}"]
            plan, _ = self.limited(f"-v {kilobytes}", *words, "--dry-run")
            code, text = self.limited(f"-v {kilobytes}", *words)
            self.assertEqual(plan, code, text)
            self.check(code, text, f"ulimit -v {kilobytes}")

    def test_stacks_data_and_open_files(self):
        for limit in ("-s 100", "-s 1000000", "-s unlimited", "-d 100000", "-d 200000", "-n 10", "-n 20", "-n 40"):
            code, text = self.limited(limit, *SMALL[:-2], "--threads", "2", "--steps", "1", "--out", "o" + limit[1:])
            self.check(code, text, f"ulimit {limit}")

    @as_root
    def test_processes_of_another_user(self):
        os.chmod(self.folder, 0o777)
        user = unused_user()
        if subprocess.run(["setpriv", "--reuid", user, "--clear-groups", "test", "-x", PROGRAM]).returncode:
            self.skipTest("another user cannot reach the program")
        os.environ["XDG_CACHE_HOME"] = self.path("cache")
        for threads in (1, 2, 3, 5, 10, 40):
            limit = f"-u {threads}"
            code, text = self.limited(limit, *SMALL[:-2], "--threads", "4", "--steps", "1", "--out", f"u{threads}",
                                      user=user)
            self.check(code, text, f"ulimit {limit}")
            if code:
                self.assertIn("ulimit -u", text)
        if MPIRUN:
            self.ranks_of_another_user(user)

    def ranks_of_another_user(self, user):
        """What one rank could have, two cannot: they see it together, and no library ends them."""
        refused = False
        for threads in (20, 28, 36, 60):
            code, text = self.limited(f"-u {threads}", *SMALL[:-2], "--threads", "4", "--io-threads", "1", "--steps",
                                      "1", "--out", f"ranks{threads}", ranks=2, user=user)
            self.assertNotIn("libgomp", text)
            self.assertNotIn(code, CODES_OF_SIGNALS, text)
            if "more threads and can have" in text:
                refused = True
                self.assertEqual((code, text.count("cputrain: ")), (2, 1), text)
        self.assertTrue(refused)

    @needs_mpi
    def test_ranks(self):
        # mpirun has a code of its own where it cannot start; signals of ranks must not be the reason.
        code, text = self.limited("-f 200", *SMALL, "--steps", "1", "--out", "f", ranks=2)
        self.assertEqual(code, 2, text)
        self.assertIn("ulimit -f", text)
        for limit in ("-v 300000", "-v 600000", "-n 40"):
            code, text = self.limited(limit, *SMALL, "--steps", "1", "--out", "m" + limit[1:], ranks=2)
            self.assertNotIn("signal", text.lower().replace("ulimit", ""), f"{limit}: {text}")
            self.assertNotIn(code, CODES_OF_SIGNALS, f"{limit}: {text}")
            self.assertEqual(self.temporary_files(), [])


if __name__ == "__main__":
    unittest.main()

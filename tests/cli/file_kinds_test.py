"""Links, pipes and devices where files are read or written; a folder that two users may write."""
import json
import os
import re
import stat
import subprocess
import threading
import unittest

from program import PROGRAM, SMALL, ProgramTest
from tiny import TinyTest

ALL_LOGS = ["--log-format", "mlperf", "--profile", "--save-best", "--checkpoint-every", "1"]
RUN_FILES = ["config.json", "environment.json", "metrics.jsonl", "training.csv", "history.json", "weights.safetensors",
             "profile.json", "mlperf.log", "best.safetensors"]


def kind(path):
    return stat.S_IFMT(os.lstat(path).st_mode)


class FileKinds(TinyTest):
    def setUp(self):
        super().setUp()
        self.make("data", cat=6, dog=6)
        self.write("target", "mine")

    def expect_own_files(self, run):
        for name in RUN_FILES:
            self.assertEqual(kind(self.path(run, name)), stat.S_IFREG, name)
        for folder in ("train", "validation"):
            self.assertEqual(kind(self.path(run, folder)), stat.S_IFDIR, folder)
        self.assertEqual(self.text_of("target"), "mine")

    def test_what_stands_in_a_prepared_folder_is_replaced(self):
        os.mkdir(self.path("elsewhere"))
        for run, place in (("links", lambda path: os.symlink("../target", path)), ("pipes", os.mkfifo)):
            os.mkdir(self.path(run))
            for name in RUN_FILES:
                place(self.path(run, name))
            for folder in ("train", "validation"):
                os.symlink("../elsewhere", self.path(run, folder))
            self.tiny(0, run, "data", *ALL_LOGS)
            self.expect_own_files(run)
        self.assertEqual(os.listdir(self.path("elsewhere")), [])

    def test_a_resume_neither_follows_nor_cuts_what_links_lead_to(self):
        resume = ["--model", "tiny.json", "--data", "data", "--threads", "1", "--out", "run", "--resume", "auto"]
        self.expect(0, *resume, *ALL_LOGS)
        events = [name for name in os.listdir(self.path("run/train"))]
        logs = ["metrics.jsonl", "training.csv", "mlperf.log", *(f"train/{name}" for name in events)]
        for name in logs:
            os.remove(self.path("run", name))
            os.symlink(self.path("target"), self.path("run", name))
        self.expect(0, *resume, *ALL_LOGS, "--epochs", "3",
                    says=[f"{name} is a link, or no regular file" for name in logs])
        self.expect_own_files("run")
        self.assertTrue(self.text_of("run/training.csv").startswith("epoch,"), "a file that begins has its heading")

    def read_through_pipe(self, *words):
        """What PROGRAM WORDS pipe gives its reader."""
        pipe, got = self.path("pipe"), []
        os.mkfifo(pipe)

        def read():
            with open(pipe, "rb") as f:
                got.append(f.read())

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        self.expect(0, *words, pipe)
        reader.join(30)
        self.assertEqual(kind(pipe), stat.S_IFIFO)
        os.remove(pipe)
        return got[0]

    def test_a_pipe_or_device_that_a_person_named_is_written_to(self):
        self.tiny(0, "run", "data")
        export = ["export", "--weights", "run/weights.safetensors"]
        evaluate = ["eval", "--weights", "run/weights.safetensors", "--data", "data", "--threads", "1"]
        formats = {"--safetensors": export, "--model-file": export, "--json": evaluate,
                   "--timeline": ["--model", "tiny.json", "--data", "data", "--threads", "1", "--out", "timed"]}
        if "onnx" in self.expect(0, "info").stdout.lower():
            formats["--onnx"] = export
        for flag, command in formats.items():
            bytes_read = self.read_through_pipe(*command, flag)
            self.assertGreater(len(bytes_read), 100, flag)
            if flag in ("--json", "--timeline", "--model-file"):
                json.loads(bytes_read)
        self.assertEqual(self.expect(2, "data", "pack", "data", "/dev/null").returncode, 2)
        os.mkfifo(self.path("p.ctpack"))
        self.expect(2, "data", "pack", "data", "p.ctpack", "--image-size", "16", says=["is no regular file"])

        os.symlink("target", self.path("link"))
        self.expect(0, *export, "--safetensors", "link")
        self.assertEqual(kind(self.path("link")), stat.S_IFLNK)
        self.assertGreater(os.path.getsize(self.path("target")), 100)

        try:
            os.mknod(self.path("null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            open(self.path("null"), "w").close()
        except OSError:
            return  # no device of our own: those of the machine are not tried
        for flag, command in formats.items():
            self.expect(0, *command, *(["--overwrite"] if flag == "--timeline" else []), flag, "null")
            self.assertEqual(kind(self.path("null")), stat.S_IFCHR, flag)

    def test_standard_output_by_its_name_goes_where_the_shell_sent_it(self):
        self.tiny(0, "run", "data")
        self.write("all", "before\n")
        subprocess.run(f"{PROGRAM} export --weights run/weights.safetensors --model-file /dev/stdout >>all", shell=True,
                       cwd=self.folder, check=True, timeout=60)
        text = self.text_of("all")
        self.assertTrue(text.startswith("before\n{"), text)
        self.assertIn("to be changed and used as --model", text, "what is printed afterwards is there, too")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be two users")
    def test_a_folder_whose_lock_is_another_users_is_not_written(self):
        os.chmod(self.folder, 0o755)
        os.chmod(os.environ["XDG_CACHE_HOME"], 0o777)
        if subprocess.run(["test", "-x", PROGRAM], user=1002, group=1002, extra_groups=[], cwd=self.folder).returncode != 0:
            self.skipTest("the program is not another user's to start")
        self.tiny(0, "run", "data")
        os.makedirs(self.path("s"))
        for folder, lock in (("run", ".lock"), ("s", "lock")):
            open(self.path(folder, lock), "a").close()
            os.chown(self.path(folder, lock), 1001, 1001)
            os.chmod(self.path(folder, lock), 0o644)
            os.chmod(self.path(folder), 0o777)

        def contents():
            return {os.path.join(folder, name): os.lstat(os.path.join(folder, name)).st_ino
                    for folder, _, names in os.walk(self.path("run")) for name in names}

        def as_other(words):
            return subprocess.run([PROGRAM, *words], user=1002, group=1002, extra_groups=[], cwd=self.folder,
                                  timeout=60, stdin=subprocess.DEVNULL, capture_output=True, text=True)

        before = contents()
        train = ["--model", "tiny.json", "--data", "data", "--threads", "1", "--out", "run"]
        for words in ([*train, "--overwrite"], [*train, "--resume", "auto"],
                      ["sweep", "--data", "synthetic:20", "--model", "tiny.json", "--np", "1", "--batch", "4", "--out",
                       "s"]):
            done = as_other(words)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertRegex(done.stderr, r"cannot lock .*lock, which belongs to user .*1001")
            self.assertEqual(contents(), before)
        self.assertEqual(os.listdir(self.path("s")), ["lock"])
        # The lock can be had now; the checkpoint and the folders of events are still another's.
        os.chmod(self.path("run/.lock"), 0o666)
        for words in ([*train, "--overwrite"], [*train, "--resume", "auto", "--epochs", "2"]):
            done = as_other(words)
            self.assertEqual(done.returncode, 74, done.stdout + done.stderr)
            self.assertRegex(done.stderr, "cannot write run/.*Permission denied")
            self.assertEqual(contents(), before)

    def test_only_a_file_system_without_locks_is_written_without_one(self):
        """Where strace has the system refuse the lock."""
        if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
            self.skipTest("strace cannot trace here")
        os.mkdir(self.path("run"))
        open(self.path("run/.lock"), "w").close()
        for error, code, says in (("EIO", 2, "Input/output error"), ("EPERM", 2, "Operation not permitted"),
                                  ("ENOLCK", 0, "has no locks (No locks available)"),
                                  ("EOPNOTSUPP", 0, "has no locks (Operation not supported)")):
            self.tiny(code, "run", "data", says=[says], launch=[
                "strace", "-o", "trace", "-P", self.path("run/.lock"), "-e", "trace=fcntl", "-e",
                f"inject=fcntl:error={error}"])
            self.assertEqual(os.path.exists(self.path("run/config.json")), code == 0)

    def test_trainings_that_start_at_once_have_a_folder_each(self):
        command = [PROGRAM, "--model", "tiny.json", "--data", "data", "--threads", "1", "--checkpoint-every", "0"]
        started = [subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True) for _ in range(6)]
        texts = [process.communicate(timeout=120)[0] for process in started]
        self.assertEqual([process.returncode for process in started], [0] * 6, texts)
        folders = {re.search(r"Run folder: (\S+)", text)[1] for text in texts}
        self.assertEqual(len(folders), 6)
        for folder in folders:
            self.assertTrue(os.path.exists(self.path(folder, "weights.safetensors")))


class NoRegularFiles(ProgramTest):
    """Whatever names a file: pipes, devices and folders are refused at once, and said to be none."""

    def test_every_flag(self):
        os.mkfifo(self.path("pipe"))
        os.mkfifo(self.path("pipe.json"))
        os.mkfifo(self.path("pipe.csv"))
        os.mkfifo(self.path("pipe.ctpack"))
        os.mkdir(self.path("empty"))
        self.train("run", "--steps", "1")
        weights = "run/weights.safetensors"
        for words in (["--config", "pipe", "--dry-run"], ["--config", "/dev/zero", "--dry-run"],
                      ["--config", "empty", "--dry-run"],
                      [*SMALL, "--model", "pipe.json", "--dry-run"], [*SMALL, "--weights", "pipe", "--steps", "1"],
                      [*SMALL, "--weights", "/dev/zero", "--steps", "1"], ["info", "--model", "pipe.json"],
                      ["eval", "--weights", "pipe", *SMALL[:4]], ["eval", "--weights", "empty", *SMALL[:4]],
                      ["predict", "--weights", "pipe", "x.jpg"], ["predict", "--weights", weights, "pipe"],
                      ["export", "--weights", "pipe", "--onnx", "x.onnx"],
                      ["--data", "pipe", "--dry-run"], ["--data", "pipe.csv", "--dry-run"],
                      ["--data", "pipe.ctpack", "--dry-run"], ["data", "info", "pipe"],
                      ["report", "run", "--reference", "pipe", "--out", "r"],
                      ["simulate", "--platform", "pipe", "--costs", "pipe", "--out", "s"]):
            with self.subTest(words=words):
                done = self.run_program(*words, timeout=30)
                self.assertIn(done.returncode, (2, 65), done.stderr)
                self.assertNotIn("please report", done.stderr)


if __name__ == "__main__":
    unittest.main()

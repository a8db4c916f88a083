"""Disks that are full, read-only or gone: said, and nothing that was there is lost."""
import os
import shutil
import subprocess
import unittest

from program import PROGRAM
from trainings import WORDS, FaultTest


def can_mount():
    done = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    return done.returncode == 0


class Disks(FaultTest):
    def on_small_disk(self, kilobytes, script):
        """Runs a script where `run` is a small file system; `train` in it is the program with its words. Returns what
        it said; the file system's files are in `kept` afterwards."""
        train = " ".join([PROGRAM, *WORDS])
        text = f"""mkdir run && mount -t tmpfs -o size={kilobytes}k none run || exit 77
                   train() {{ {train} "$@"; }}
                   {script}
                   code=$?
                   cp -a run kept
                   exit $code"""
        return subprocess.run(["unshare", "-m", "bash", "-c", text], cwd=self.folder, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self):
        """What was kept goes on elsewhere, to the end that it would have had."""
        epochs = str(max([30, *(step // 7 + 2 for step in self.points("kept"))]))  # of 7 steps
        self.wait(self.start("--epochs", epochs, out="whole"), 0)
        shutil.move(self.path("kept"), self.path("run"))
        self.wait(self.start("--epochs", epochs, "--resume", "auto"), 0)
        self.assert_same_end("run", "whole")

    @unittest.skipUnless(can_mount(), "this user cannot mount")
    def test_a_full_disk(self):
        done = self.on_small_disk(600, "train --steps 10 || exit; head -c 1G /dev/zero >run/ballast; "
                                       "train --steps 40 --resume auto; code=$?; rm run/ballast; (exit $code)")
        self.assertEqual(done.returncode, 74, done.stdout)
        self.assertIn("No space left", done.stdout)
        self.finish()

    @unittest.skipUnless(can_mount(), "this user cannot mount")
    def test_a_disk_that_becomes_read_only(self):
        done = self.on_small_disk(2000, "train --steps 10 || exit; mount -o remount,ro run; "
                                        "train --steps 40 --resume auto")
        self.assertEqual(done.returncode, 74, done.stdout)
        self.finish()

    def test_a_failure_may_end_the_training_at_once(self):
        process = self.start("--epochs", "1000000", "--on-checkpoint-failure", "stop")
        self.until(process, lambda: self.points())
        os.rename(self.path("run"), self.path("kept"))
        self.wait(process, 74)
        self.finish()

    def test_a_folder_that_is_removed(self):
        process = self.start("--epochs", "1000000")
        self.until(process, lambda: self.points())
        os.rename(self.path("run"), self.path("gone"))
        self.wait(process, 74)
        self.assertIn("cannot write", self.said(process))
        os.rename(self.path("gone"), self.path("kept"))
        self.finish()


if __name__ == "__main__":
    unittest.main()

"""scripts/supervise: what it starts again and what it does not, with stand-ins, and with a real training."""
import glob
import os
import shutil
import signal
import subprocess
import time
import unittest

from metadata import Google, Service
from program import OPEN_MPI, PROGRAM, MPIRUN, ProgramTest
from supervised import SCRIPT, WAIT, SupervisedTest


class Supervised(SupervisedTest):
    def test_restarts_until_it_is_done_and_resumes(self):
        code, said = self.supervise(["save(5); launcher_killed()", "save(10); os._exit(76)", "os._exit(0)"])
        self.assertEqual(code, 0, said)
        words = ["-np", "4", "./cputrain", "--out", "run", "--resume", "auto",
                 "--on-failure", "shrink"]
        self.assertEqual([call[0] for call in self.calls()], [words] * 3)
        self.assertIn("exit code 137; restart 1 in 1 s (allowed in a row without progress: 10)", said)
        self.assertEqual([line[:11] for line in said.splitlines()], ["supervise: "] * 2)
        # The launcher's files: in a folder of the script, new for each start, and gone now.
        folders = {call[1]["OMPI_MCA_orte_tmpdir_base"] for call in self.calls()}
        self.assertEqual(len(folders), 1)
        self.assertTrue(folders.pop().startswith(self.path("tmp")))

    def test_what_a_restart_would_not_mend_ends_it(self):
        for code in (0, 2, 64, 65, 126, 127, 130):
            self.again()
            self.assertEqual(self.supervise([f"os._exit({code})"])[0], code)
            self.assertEqual(len(self.calls()), 1)

    def test_a_full_disk_is_tried_three_times_more(self):
        for words, starts in (([], 4), (["--max-restarts", "1"], 2)):
            self.again()
            code, said = self.supervise(["os._exit(74)"], *words)
            self.assertEqual((code, len(self.calls())), (74, starts), said)
            self.assertIn(f"restart 1 in 1 s (allowed in a row without progress: {starts - 1})", said)

    def test_starts_in_vain_have_growing_waits_and_progress_begins_them_anew(self):
        vain = ["os._exit(137)"] * 8
        code, said = self.supervise([*vain, "save(5); os._exit(1)", "os._exit(1)", "os._exit(0)"])
        self.assertEqual((code, len(self.calls())), (0, 11), said)
        self.assertEqual(self.waits(), [1, 4, 8, 16, 32, 60, 60, 1])
        self.assertEqual(said.count("restart 1 in 1 s"), 2)
        # Lines of metrics.jsonl are progress, too, but not those that were cut off and made again.
        more = "open('run/metrics.jsonl', 'a').write('{}\\n'); os._exit(1)"
        anew = "save(3); open('run/metrics.jsonl', 'w').write('{}\\n'); os._exit(74)"
        self.again()
        code, said = self.supervise([more, more, more, anew], "--max-restarts", "2")
        self.assertEqual((code, len(self.calls())), (74, 5), said)
        self.assertIn("restarts in a row without progress: 2 (exit code 74, step 5 saved in run)", said)

    def test_no_more_restarts_than_allowed_however_the_flag_is_written(self):
        for words, starts in ((["--max-restarts", "1"], 2), (["--max-restarts=03", "--grace=08"], 4),
                              (["--max_restarts=0"], 1)):
            self.again()
            code, said = self.supervise(["os._exit(1)"], *words)
            self.assertEqual((code, len(self.calls())), (1, starts), said)
            self.assertIn(f"given up, restarts in a row without progress: {starts - 1} (", said)

    def test_signals_are_passed_on_as_what_saves(self):
        for number, seen, expected in ((signal.SIGUSR1, "SIGUSR1", 75), (signal.SIGTERM, "SIGUSR1", 75),
                                       (signal.SIGHUP, "SIGUSR1", 75), (signal.SIGINT, "SIGINT", 130)):
            self.again()
            script = self.start([WAIT])
            self.wait_for("ready")
            # Ctrl-C comes to the terminal's whole group.
            (os.killpg if number == signal.SIGINT else os.kill)(script.pid, number)
            said = script.communicate(timeout=240)[1]
            self.assertEqual(script.returncode, expected, said)
            self.assertEqual(self.text_of("signals"), seen + "\n")
            self.assertEqual(len(self.calls()), 1)
            self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_a_training_that_does_not_end_is_ended(self):
        for saves, expected in (("save(5); ", 75), ("", 1)):
            self.again()
            script = self.start([saves + WAIT.replace("75", "None")], "--grace", "1")
            self.wait_for("ready")
            script.terminate()
            said = script.communicate(timeout=240)[1]
            self.assertEqual(script.returncode, expected, said)
            self.assertEqual(self.text_of("signals"), "SIGUSR1\nSIGTERM\n")
            shutil.rmtree(self.path("run"), ignore_errors=True)

    def test_a_signal_between_two_starts_ends_it(self):
        self.tool("sleep", "#!/bin/bash\n[[ $1 != 1 ]] || touch ready\nexec /bin/sleep 600\n")
        for saves, expected in (("", 137), ("save(5); ", 75)):  # 75 where there is something to go on with
            self.again()
            script = self.start([saves + "os._exit(137)"])
            self.wait_for("ready")
            script.terminate()
            script.communicate(timeout=240)
            self.assertEqual((script.returncode, len(self.calls())), (expected, 1))

    def test_75_that_nobody_asked_for_is_a_failure_like_others(self):
        code, said = self.supervise(["save(5); os._exit(75)", "os._exit(0)"])
        self.assertEqual((code, len(self.calls())), (0, 2), said)

    def test_a_notice_of_the_cloud_ends_it_in_time(self):
        service = Service(Google)
        self.addCleanup(service.close)
        script = self.start([WAIT], watch="auto", CPUTRAIN_METADATA_URL=service.url)
        self.wait_for("ready")
        service.notice = True
        said = script.communicate(timeout=240)[1]
        self.assertEqual(script.returncode, 75, said)
        self.assertIn("gcp takes this VM", said)
        self.assertEqual(self.text_of("signals"), "SIGUSR1\n")

    def test_folders_for_temporary_files(self):
        self.write("file", "")
        for folder in (self.path("nowhere"), self.path("file"), "/proc"):
            self.again()
            code, said = self.supervise(["os._exit(0)"], TMPDIR=folder)
            self.assertEqual(code, 0, said)
            self.assertIn(f"{folder} takes no file; temporary files go to /tmp", said)
            folders = self.calls()[0][1]
            self.assertTrue(folders["OMPI_MCA_orte_tmpdir_base"].startswith("/tmp/cputrain-supervise."), folders)
            self.assertFalse(os.path.exists(os.path.dirname(folders["OMPI_MCA_orte_tmpdir_base"])))
        for nothing in ("", None):
            self.again()
            code, said = self.supervise(["os._exit(0)"], TMPDIR=nothing)
            self.assertEqual((code, said), (0, ""))

    def test_wrong_use(self):
        good = ["--", "mpirun", "--out", "run"]
        for words in ([], ["--"], ["--watch", "ibm", *good], ["--fast", *good], ["--max-restarts", "-1", *good],
                      ["--max-restarts=", *good], ["--max-restarts", "--watch", "none", *good], ["x", *good],
                      ["--grace", "long", *good], ["--cool-down=x", *good], ["--min-ranks=0", *good], ["--", "./cputrain"],
                      ["--", "no-such-program", "--out", "run"],
                      ["--hostfile", "nothing", *good], [*good, "--resume", "run/ckpt-5"]):
            done = subprocess.run([SCRIPT, *words], cwd=self.folder, capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "PATH": self.folder + ":" + os.environ["PATH"]})
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("supervise", done.stderr)
        self.assertFalse(os.path.exists(self.path("calls")))


@unittest.skipUnless(OPEN_MPI, "needs Open MPI's mpirun")
class RealTraining(ProgramTest):
    def children(self, parent):
        """By name, without what has ended."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    name, _, rest = f.read().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if int(rest.split()[1]) == parent and rest.split()[0] != "Z":
                found[int(pid)] = name
        return found

    def launcher_of(self, script):
        [launcher] = [pid for pid, name in self.children(script.pid).items()
                      if name.startswith(("mpirun", "mpiexec", "orterun", "prterun"))]
        return launcher

    def supervise(self, words, out):
        script = subprocess.Popen([SCRIPT, "--watch", "none", "--", *MPIRUN, "-np", "2", PROGRAM, *words,
                                   "--checkpoint-every", "4", "--out", out], cwd=self.folder, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(script.stderr.close)
        self.addCleanup(script.terminate)
        return script

    def test_a_training_of_which_a_part_is_killed_ends_as_if_nothing_had_happened(self):
        words = ["--image-size", "64", "--data", "synthetic:120", "--batch", "20", "--threads", "1", "--epochs", "16",
                 "--limit-val", "0", "--log-every", "1", "--optimizer", "sgd", "--reproducible"]
        self.expect(0, *words, "--out", "whole", ranks=2)
        for killed, says in (("launcher", "restart 1 in 1 s"), ("rank", "1 of 2 ranks go on"),
                             ("supervise", "it is taken over")):
            script = self.supervise(words, killed)
            end = time.time() + 240
            while not glob.glob(self.path(killed, "ckpt-*", "MANIFEST")):
                self.assertLess(time.time(), end)
                time.sleep(0.02)
            if killed == "launcher":
                os.kill(self.launcher_of(script), signal.SIGKILL)
            elif killed == "rank":
                os.kill(max(self.children(self.launcher_of(script))), signal.SIGKILL)
            else:
                script.kill()
                script.wait()
                script = self.supervise(words, killed)
            said = script.stderr.read()
            self.assertEqual(script.wait(120), 0, said)
            self.assertIn(says, said)
            self.assertEqual("ranks lost" in said, killed == "rank", said)
            self.assertEqual([step["step"] for step in self.metrics(killed, "step")], list(range(1, 97)))
            for resumed in self.metrics(killed, "resume"):
                self.assertGreater(resumed["lost_seconds"], 0)
            self.assertEqual(self.metrics(killed, "summary")[-1]["weights_hash"],
                             self.metrics("whole", "summary")[-1]["weights_hash"])


if __name__ == "__main__":
    unittest.main()

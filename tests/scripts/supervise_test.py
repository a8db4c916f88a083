"""scripts/supervise: with stand-ins for mpirun and ssh that do what a test wants, and with a real training."""
import glob
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from metadata import Google, Service
from program import OPEN_MPI, PROGRAM, MPIRUN, ProgramTest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SCRIPT = os.path.join(ROOT, "scripts", "supervise")
# Starts after starts: each does what the next line of the file `plan` says, and writes down how it was called.
STAND_IN = r"""#!/usr/bin/env python3
import json, os, signal, sys, time
with open("calls", "a") as f:
    f.write(json.dumps([sys.argv[1:], {k: v for k, v in os.environ.items() if "tmpdir_base" in k}]) + "\n")
with open("calls") as f:
    n = len(f.readlines())
with open("plan") as f:
    plan = f.read().splitlines()
for i, a in enumerate(sys.argv):
    if a == "--hostfile":
        with open(sys.argv[i + 1]) as f, open("hosts-seen", "a") as seen:
            seen.write(f.read().replace("\n", ";") + "\n")
os.makedirs(os.environ.get("OMPI_MCA_orte_tmpdir_base", ".") + "/ompi.host.0/pid.1", exist_ok=True)
def save(step):
    os.makedirs(f"run/ckpt-{step:08}", exist_ok=True)
    open(f"run/ckpt-{step:08}/MANIFEST", "w").close()
def on(number, code):
    def end(*_):
        with open("signals", "a") as f:
            f.write(signal.Signals(number).name + "\n")
        if code is not None:
            os._exit(code)
    signal.signal(number, end)
exec(plan[min(n, len(plan)) - 1])
"""
TRAINING = ["mpirun", "-np", "4", "./cputrain", "--out", "run"]
WAIT = "on(signal.SIGUSR1, 75); on(signal.SIGTERM, 1); on(signal.SIGINT, 1); open('ready', 'w').close(); time.sleep(60)"


class Supervised(ProgramTest):
    def setUp(self):
        super().setUp()
        self.tool("mpirun", STAND_IN)
        os.mkdir(self.path("tmp"))

    def tool(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), 0o755)

    def start(self, plan, *flags, words=TRAINING, watch="none", **environment):
        with open(self.path("plan"), "w") as f:
            f.write("\n".join(plan))
        return subprocess.Popen(
            [SCRIPT, "--watch", watch, *flags, "--", *words], cwd=self.folder, text=True, start_new_session=True,
            # Whoever was started in the background has Ctrl-C ignored, and hands that on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PATH": self.folder + ":" + os.environ["PATH"], "TMPDIR": self.path("tmp"),
                 **environment})

    def supervise(self, plan, *flags, timeout=60, **options):
        """Exit code and what it said."""
        script = self.start(plan, *flags, **options)
        self.addCleanup(script.kill)
        _, said = script.communicate(timeout=timeout)
        self.assertEqual(os.listdir(self.path("tmp")), [])
        return script.returncode, said

    def calls(self):
        with open(self.path("calls")) as f:
            return [json.loads(line) for line in f]

    def again(self):
        for name in ("calls", "signals", "ready", "hosts-seen"):
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))

    def wait_for(self, name):
        end = time.time() + 30
        while not os.path.exists(self.path(name)):
            self.assertLess(time.time(), end)
            time.sleep(0.02)

    def test_restarts_until_it_is_done_and_resumes(self):
        code, said = self.supervise(["save(5); os._exit(137)", "save(10); os._exit(76)", "os._exit(0)"])
        self.assertEqual(code, 0, said)
        words = ["-np", "4", "./cputrain", "--out", "run", "--resume", "auto"]
        self.assertEqual([call[0] for call in self.calls()], [words] * 3)
        self.assertIn("exit code 137; restart 1 of 20", said)
        # The launcher's files: in a folder of the script, new for each start, and gone now.
        folders = {call[1]["OMPI_MCA_orte_tmpdir_base"] for call in self.calls()}
        self.assertEqual(len(folders), 1)
        self.assertTrue(folders.pop().startswith(self.path("tmp")))

    def test_what_a_restart_would_not_mend_ends_it(self):
        for code in (0, 2, 64, 65, 130):
            self.again()
            self.assertEqual(self.supervise([f"os._exit({code})"])[0], code)
            self.assertEqual(len(self.calls()), 1)

    def test_two_starts_without_progress_end_it(self):
        code, said = self.supervise(["save(5); os._exit(1)", "os._exit(1)", "save(3); os._exit(74)", "os._exit(0)"])
        self.assertEqual((code, len(self.calls())), (74, 3), said)
        self.assertIn("two starts in a row got no further (exit code 74, step 5 saved in run)", said)
        # Lines of metrics.jsonl are progress, too, but not those that were cut off and made again.
        self.again()
        more = "open('run/metrics.jsonl', 'a').write('{}\\n'); os._exit(1)"
        anew = "open('run/metrics.jsonl', 'w').write('{}\\n'); os._exit(1)"
        code, said = self.supervise([more, more, anew, anew])
        self.assertEqual((code, len(self.calls())), (1, 4), said)

    def test_no_more_restarts_than_allowed(self):
        code, said = self.supervise(["save(n); os._exit(1)"], "--max-restarts", "1")
        self.assertEqual((code, len(self.calls())), (1, 2), said)
        self.assertIn("after 1 restarts", said)

    def test_signals_are_passed_on_as_what_saves(self):
        for number, seen, expected in ((signal.SIGUSR1, "SIGUSR1", 75), (signal.SIGTERM, "SIGUSR1", 75),
                                       (signal.SIGHUP, "SIGUSR1", 75), (signal.SIGINT, "SIGINT", 130)):
            self.again()
            script = self.start([WAIT])
            self.wait_for("ready")
            # Ctrl-C comes to the terminal's whole group.
            (os.killpg if number == signal.SIGINT else os.kill)(script.pid, number)
            said = script.communicate(timeout=30)[1]
            self.assertEqual(script.returncode, expected, said)
            with open(self.path("signals")) as f:
                self.assertEqual(f.read(), seen + "\n")
            self.assertEqual(len(self.calls()), 1)
            self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_a_training_that_does_not_end_is_ended(self):
        for saves, expected in (("save(5); ", 75), ("", 1)):
            self.again()
            script = self.start([saves + WAIT.replace("75", "None")], "--grace", "1")
            self.wait_for("ready")
            script.terminate()
            said = script.communicate(timeout=60)[1]
            self.assertEqual(script.returncode, expected, said)
            with open(self.path("signals")) as f:
                self.assertEqual(f.read(), "SIGUSR1\nSIGTERM\n")
            shutil.rmtree(self.path("run"), ignore_errors=True)

    def test_a_signal_between_two_starts_ends_it(self):
        for saves, expected in (("", 137), ("save(5); ", 75)):  # 75 where there is something to go on with
            self.again()
            script = self.start([saves + "open('ready', 'w').close(); os._exit(137)"])
            self.wait_for("ready")
            time.sleep(0.5)
            script.terminate()
            script.communicate(timeout=30)
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
        said = script.communicate(timeout=30)[1]
        self.assertEqual(script.returncode, 75, said)
        self.assertIn("gcp takes this VM", said)
        with open(self.path("signals")) as f:
            self.assertEqual(f.read(), "SIGUSR1\n")

    def ssh(self, noticed=""):
        """A stand-in; hosts are down where a file down-HOST is. The last word is the command for the host."""
        self.tool("ssh", '#!/bin/bash\nhost=${@: -2:1} command=${@: -1}\n[[ ! -e down-$host ]] || exit 255\n'
                  f'[[ $command == *preemption* ]] || exit 0\n[[ $host == "{noticed}" ]] || exec sleep 60\n'
                  "echo gcp takes $host away\n")

    def down(self, host):
        open(self.path("down-" + host), "w").close()

    def test_hosts_that_do_not_answer_are_left_out(self):
        with open(self.path("hosts"), "w") as f:
            f.write("# ours\nvm-0 slots=2\nvm-1 slots=4  # the large one\nvm-2 slots=2\n")
        self.ssh()
        self.down("vm-1")
        for flags, launch in ((["--hostfile", "hosts"], []), ([], ["--hostfile", "hosts"])):
            self.again()
            code, said = self.supervise(["os._exit(0)"], *flags,
                                        words=["mpirun", *launch, "-np", "8", "./cputrain", "--out=run"])
            self.assertEqual(code, 0, said)
            self.assertIn("without vm-1, which did not answer: 2 of 3 hosts, 4 of 8 ranks", said)
            words = self.calls()[0][0]
            self.assertEqual(words[words.index("-np") + 1], "4")
            with open(self.path("hosts-seen")) as f:
                self.assertEqual(f.read(), "vm-0 slots=2;vm-2 slots=2;\n")
        with open(self.path("hosts")) as f:
            self.assertIn("vm-1 slots=4", f.read())
        self.again()
        self.supervise(["os._exit(0)"], words=["mpirun", "--host", "vm-0:2,vm-1:4,vm-2", "-np", "6", "./cputrain",
                                               "--out", "run"])
        words = self.calls()[0][0]
        self.assertEqual((words[words.index("--host") + 1], words[words.index("-np") + 1]), ("vm-0:2,vm-2:1", "3"))

    def test_hosts_that_answer_again_are_back(self):
        with open(self.path("hosts"), "w") as f:
            f.write("vm-0\nvm-1\n")
        self.ssh()
        self.down("vm-1")
        code, said = self.supervise(["os.remove('down-vm-1'); save(n); os._exit(1)", "os._exit(0)"],
                                    "--hostfile", "hosts")
        self.assertEqual(code, 0, said)
        self.assertIn("without vm-1", said)
        with open(self.path("hosts-seen")) as f:
            self.assertEqual(f.read(), "vm-0;\nvm-0;vm-1;\n")

    def test_where_no_host_answers_it_waits_for_them(self):
        self.ssh()
        self.down("vm-0")
        code, said = self.supervise(["os._exit(0)"], "--max-restarts", "2",
                                    words=["mpirun", "--host", "vm-0:2", "./cputrain", "--out", "run"])
        self.assertEqual(code, 1, said)
        self.assertEqual(said.count("no host answers"), 3)
        self.assertFalse(os.path.exists(self.path("calls")))

    def test_notices_of_other_hosts_count_as_well(self):
        with open(self.path("hosts"), "w") as f:
            f.write("vm-0\nvm-1\n")
        self.ssh(noticed="vm-1")
        service = Service(Google)
        self.addCleanup(service.close)
        code, said = self.supervise([WAIT], "--hostfile", "hosts", watch="gcp", CPUTRAIN_METADATA_URL=service.url)
        self.assertEqual(code, 75, said)
        self.assertIn("gcp takes vm-1 away", said)

    def test_wrong_use(self):
        for words in ([], ["--"], ["--watch", "ibm", "--", "x", "--out", "run"], ["--fast", "--", "x", "--out", "run"],
                      ["--max-restarts", "-1", "--", "x", "--out", "run"], ["--", "./cputrain"],
                      ["--grace", "long", "--", "x", "--out", "run"],
                      ["--hostfile", "nothing", "--", "x", "--out", "run"],
                      ["--", "x", "--out", "run", "--resume", "run/ckpt-5"]):
            done = subprocess.run([SCRIPT, *words], cwd=self.folder, capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("supervise", done.stderr)


@unittest.skipUnless(OPEN_MPI, "needs Open MPI's mpirun")
class RealTraining(ProgramTest):
    def kill_launcher_of(self, parent):
        """How many were killed."""
        killed = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    name, _, rest = f.read().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if name.startswith(("mpirun", "mpiexec", "orterun")) and int(rest.split()[1]) == parent:
                os.kill(int(pid), signal.SIGKILL)
                killed += 1
        return killed

    def test_a_training_whose_launcher_is_killed_ends_as_if_nothing_had_happened(self):
        words = ["--image-size", "64", "--data", "synthetic:120", "--batch", "20", "--threads", "1", "--epochs", "16",
                 "--limit-val", "0", "--log-every", "1", "--optimizer", "sgd", "--reproducible"]
        self.expect(0, *words, "--out", "whole", ranks=2)
        script = subprocess.Popen([SCRIPT, "--watch", "none", "--", *MPIRUN, "-np", "2", PROGRAM, *words,
                                   "--checkpoint-every", "4", "--out", "run"], cwd=self.folder, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(script.communicate)
        self.addCleanup(script.terminate)
        end = time.time() + 60
        while not glob.glob(self.path("run", "ckpt-*", "MANIFEST")):
            self.assertLess(time.time(), end)
            time.sleep(0.02)
        self.assertEqual(self.kill_launcher_of(script.pid), 1)
        _, said = script.communicate(timeout=120)
        self.assertEqual(script.returncode, 0, said)
        self.assertIn("restart 1 of 20", said)
        self.assertEqual([step["step"] for step in self.metrics("run", "step")], list(range(1, 97)))
        self.assertEqual(self.metrics("run", "summary")[-1]["weights_hash"],
                         self.metrics("whole", "summary")[-1]["weights_hash"])


if __name__ == "__main__":
    unittest.main()

"""The scripts for clouds, with stand-ins for the clouds' programs that write down how they are called."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import unittest

from program import ProgramTest, ROOT

TOOLS = ["gcloud", "aws", "ssh", "scp", "ssh-keygen", "curl", "tar"]
# Answers of the AWS tool, by what is asked; $WAITS is a command during which a signal comes.
STAND_IN = r"""#!/bin/bash
each() { seq -f "$1" -s ' ' 0 $((VMS - 1)); }
printf '%q ' "${0##*/}" "$@" >>"$CALLS"; echo >>"$CALLS"
case "${0##*/} $*" in
  *"$FAILS"*) exit 1 ;;
  # No command that ends well may be running when the signal comes: bash would go on behind it.
  *"$WAITS"*) : >"$CALLS.waiting"; exec sleep 60 ;;
  *"$SIGNALS_IN"*) kill -INT 0 ;;&  # the group, as the terminal does
  aws*create-security-group*) echo sg-0 ;;
  aws*describe-images*) echo ami-0 ;;
  aws*run-instances*) each i-%g ;;
  aws*Name=tag:Name*) each i-%g ;;
  aws*PublicIp*) each 192.0.2.1%g ;;
  aws*PrivateIp*) each 10.0.0.1%g ;;
  curl*) echo 192.0.2.1 ;;
  ssh-keygen*) touch "${@: -1}" "${@: -1}.pub" ;;
esac
"""
SWEEP = ["--vms", "2", "--", "--np", "1,2", "--data", "my images"]


class Clouds(ProgramTest):
    def setUp(self):
        super().setUp()
        for tool in (*TOOLS, "git"):  # which packs the whole project
            self.tool(tool, "#!/bin/sh\n" if tool == "git" else STAND_IN)

    def run_script(self, cloud, *words, fails="nothing fails", waits="", signals_in="no signal comes"):
        """Exit code, commands that were printed, commands that were run; names made alike."""
        calls = os.path.join(self.folder, "calls")
        open(calls, "w").close()
        script = subprocess.Popen(
            [os.path.join(ROOT, "scripts", "cloud", cloud), "--results",
             os.path.join(self.folder, "results"), *words], text=True, start_new_session=True,
            # Whoever was started in the background has Ctrl-C ignored, and hands that on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PATH": self.folder + ":" + os.environ["PATH"], "CALLS": calls,
                 "FAILS": fails, "WAITS": waits or "nothing waits", "SIGNALS_IN": signals_in,
                 "CLOUD_PATIENCE": "0",
                 "VMS": words[words.index("--vms") + 1] if "--vms" in words else "1"})
        end = time.time() + 30
        while waits and not os.path.exists(calls + ".waiting") and time.time() < end:
            time.sleep(0.02)
        if waits:
            os.remove(calls + ".waiting")
            os.killpg(script.pid, signal.SIGINT)
        _, stderr = script.communicate(timeout=60)

        def alike(line):
            return re.sub(r"tmp\.\w+", "tmp", re.sub(r"-\d{4}-\d{6}\b", "-N", line))
        said = [alike(line[2:]) for line in stderr.splitlines() if line.startswith("+ ")]
        with open(calls) as f:
            ran = [alike(line) for line in f.read().splitlines()]
        return script.returncode, said, ran

    def ours(self, lines):
        """Without what is no cloud's: mkdir really runs."""
        return [" ".join(shlex.split(line)) for line in lines if shlex.split(line)[0] in TOOLS]

    def test_a_dry_run_prints_every_command_and_runs_none(self):
        os.remove(self.path("git"))  # that of the system runs
        for cloud in ("gcp", "aws"):
            code, printed, ran = self.run_script(cloud, "--dry-run", *SWEEP)
            self.assertEqual((code, ran), (0, []))
            code, said, ran = self.run_script(cloud, *SWEEP)
            self.assertEqual(code, 0)
            self.assertEqual(self.ours(ran), self.ours(said))
            self.assertEqual(said, printed)
            self.assertIn("\\'my\\ images\\'", "".join(said))  # quoted for two shells
            os.rmdir(os.path.join(self.folder, "results"))

    def test_vms_are_deleted_however_it_ends(self):
        for cloud, fails, last in (
                ("gcp", "scripts/build", "resource-policies delete"),
                ("gcp", "cputrain sweep", "resource-policies delete"),
                ("gcp", "instances create", "resource-policies delete"),
                ("aws", "scripts/build", "delete-key-pair"),
                ("aws", "cputrain sweep", "delete-key-pair"),
                ("aws", "instance-running", "delete-key-pair")):
            code, _, ran = self.run_script(cloud, *SWEEP, fails=fails)
            self.assertNotEqual(code, 0, fails)
            self.assertIn(last, ran[-1])
            gone = "instances delete" if cloud == "gcp" else "terminate-instances"
            self.assertTrue([line for line in ran if gone in line], ran)
            # What is finished is fetched where the sweep itself fails.
            self.assertEqual(any("work.tar.gz" in line for line in ran), fails == "cputrain sweep")
            if fails == "cputrain sweep":
                os.rmdir(os.path.join(self.folder, "results"))

    def test_ctrl_c_and_another_while_it_cleans_up(self):
        for cloud, waits, deletes, rest in (
                ("gcp", "instances create", "instances delete", "resource-policies delete"),
                ("gcp", "scripts/build", "instances delete", "resource-policies delete"),
                ("aws", "run-instances", "terminate-instances --instance-ids i-0 i-1", "delete-key-pair"),
                ("aws", "scripts/build", "terminate-instances --instance-ids i-0 i-1", "delete-key-pair")):
            code, _, ran = self.run_script(cloud, *SWEEP, waits=waits, signals_in=deletes)
            self.assertEqual(code, 130, (cloud, waits, ran))
            self.assertTrue([line for line in ran if deletes in line], ran)
            self.assertIn(rest, ran[-1])

    def test_what_was_not_made_is_not_deleted(self):
        _, _, ran = self.run_script("aws", *SWEEP, fails="create-key-pair")
        self.assertEqual(len(ran), 1)
        _, _, ran = self.run_script("aws", *SWEEP, fails="create-placement-group")
        self.assertFalse([line for line in ran if "terminate" in line])

    def test_a_training_goes_through_supervise_and_on_with_what_is_here(self):
        results = os.path.join(self.folder, "results")
        for cloud in ("gcp", "aws"):
            for vms, hosts in (("1", ""), ("2", "--hostfile hosts ")):
                words = ["--vms", vms, "--", "train", "--model", "chips", "--data", "my images"]
                code, printed, _ = self.run_script(cloud, "--dry-run", *words)
                self.assertEqual(code, 0)
                code, said, ran = self.run_script(cloud, *words)
                self.assertEqual((code, said), (0, printed))
                line, = [line for line in self.ours(ran) if "cputrain train" in line]
                self.assertIn(f"scripts/supervise --watch {cloud} -- mpirun {hosts}", line)
                self.assertTrue(line.endswith("./cputrain train --model chips --data 'my images' --out work"), line)
                self.assertFalse([line for line in said if "safetensors" in line])
                self.assertFalse([line for line in said if "mkdir" in line and "work" in line])
                # A folder of something else is not overwritten; a training's goes along.
                self.assertEqual(self.run_script(cloud, *words)[0], 2)
                open(os.path.join(results, "metrics.jsonl"), "w").close()
                code, said, ran = self.run_script(cloud, *words)
                self.assertEqual(code, 0)
                order = [i for i, line in enumerate(self.ours(ran))
                         if f"-C {results} ." in line or "mkdir cputrain/work" in line or "supervise" in line]
                self.assertEqual(len(order), 3, ran)
                shutil.rmtree(results)

    def test_lines_of_the_readme(self):
        with open(os.path.join(ROOT, "scripts", "cloud", "README.md")) as f:
            lines = [shlex.split(line) for line in re.findall(r"^(scripts/cloud/(?:gcp|aws) .*)", f.read(), re.M)]
        self.assertEqual(len(lines), 5)
        for line in lines:
            cloud, words = os.path.basename(line[0]), line[1:]
            code, printed, ran = self.run_script(cloud, *words)
            self.assertEqual((code, ran), (0, []), line)
            self.assertEqual("--min-cpu-platform" in "".join(printed), cloud == "gcp" and "--cpu" not in words)
            code, said, ran = self.run_script(cloud, *[word for word in words if word != "--dry-run"])
            self.assertEqual((code, said), (0, printed), line)
            self.assertTrue(ran)
            shutil.rmtree(os.path.join(self.folder, "results"), ignore_errors=True)

    def test_wrong_flags(self):
        for cloud in ("gcp", "aws"):
            for words in ([], ["--np", "1"], ["--vms", "0", "--"], ["--name", "A;b", "--"],
                          ["--machine", "", "--", "--np", "1"], ["--", "--out", "x"]):
                code, _, ran = self.run_script(cloud, *words)
                self.assertEqual((code, ran), (2, []), words)


if __name__ == "__main__":
    unittest.main()

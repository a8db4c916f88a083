"""The batch scripts, with stand-ins for Slurm's programs and ours that write down how they are called."""
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
STAND_IN = r"""#!/bin/bash
printf '%s\n' "${0##*/} $*" >>"$CALLS"
case "${0##*/} $*" in
  sbatch*) echo 17 ;;
  *--plan-only*) echo 'Plan: s/plan.txt, a line a training; `--task 1` to `--task 4` measure a cell each' ;;
  cputrain*--task* | mpirun* | srun*) exit "$CODE" ;;
esac
"""


class Slurm(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        shutil.copytree(os.path.join(ROOT, "scripts", "slurm"), os.path.join(self.folder, "scripts", "slurm"))
        for name in ("help.sh", "supervise"):
            shutil.copy(os.path.join(ROOT, "scripts", name), os.path.join(self.folder, "scripts"))
        for tool in ("sbatch", "scontrol", "cputrain", "mpirun", "srun"):
            with open(os.path.join(self.folder, tool), "w") as f:
                f.write(STAND_IN)
            os.chmod(os.path.join(self.folder, tool), 0o755)

    def run_script(self, name, *words, **environment):
        """Exit code, what it said, and the lines of its calls."""
        calls = os.path.join(self.folder, "calls")
        open(calls, "w").close()
        done = subprocess.run(
            ["bash", os.path.join(self.folder, "scripts", "slurm", name), *words], text=True, timeout=60,
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": self.folder + ":" + os.environ["PATH"], "CALLS": calls,
                 "SLURM_SUBMIT_DIR": self.folder, **environment})
        with open(calls) as f:
            return done.returncode, done.stdout, f.read().splitlines()

    def test_an_array_and_its_table_go_to_the_same_place(self):
        for given, shared in ((["--partition=x", "--account=me"], "--partition=x --account=me"),
                              (["--partition", "x", "-A", "me"], "--partition x -A me"),
                              (["-px", "--qos", "high"], "-px --qos high")):
            code, _, (plan, array, table) = self.run_script(
                "submit_array", "--nodes=1", *given, "--", "--np", "1,2", "--out", "s")
            self.assertEqual(code, 0)
            self.assertEqual(plan, "cputrain sweep --np 1,2 --out s --plan-only")
            self.assertIn("--nodes=1 " + shared, array)
            self.assertTrue(array.endswith("--array=1-4 scripts/slurm/sweep_array.sbatch s"), array)
            self.assertIn(f"--parsable {shared} --job-name=cputrain-table", table)
            self.assertNotIn("--nodes", table)
            self.assertIn("--dependency=afterany:17", table)
        _, _, calls = self.run_script("submit_array", "--", "--np", "1,2", "--out", "s", "--retry")
        self.assertTrue(calls[1].endswith("sweep_array.sbatch s --retry"), calls)
        self.assertNotIn("--retry", calls[2])
        for words in (["--nodes=1"], ["--partition", "--", "--out", "s"], ["--", "--np", "1"]):
            code, _, calls = self.run_script("submit_array", *words)
            self.assertEqual((code, calls), (2, []), words)

    def test_a_task_goes_back_into_the_queue_but_not_for_ever(self):
        job = {"SLURM_JOB_ID": "18", "SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "3"}
        task = "cputrain sweep --config s/sweep.json --task 3"
        code, said, calls = self.run_script("sweep_array.sbatch", "s", "--retry", CODE="75", **job)
        self.assertEqual((code, calls), (75, [task + " --retry", "scontrol requeue 17_3"]))
        # What it measured since then must not be measured again.
        for count in ("1", "19"):
            code, said, calls = self.run_script("sweep_array.sbatch", "s", "--retry", CODE="75",
                                                SLURM_RESTART_COUNT=count, **job)
            self.assertEqual((code, calls), (75, [task, "scontrol requeue 17_3"]))
        code, said, calls = self.run_script("sweep_array.sbatch", "s", CODE="75",
                                            SLURM_RESTART_COUNT="20", **job)
        self.assertEqual((code, calls), (75, [task]))
        self.assertIn("longer --time", said)
        code, said, calls = self.run_script("sweep_array.sbatch", "s", CODE="75", REQUEUES="21",
                                            SLURM_RESTART_COUNT="20", **job)
        self.assertEqual(calls[1], "scontrol requeue 17_3")
        for code in ("0", "3"):
            self.assertEqual(self.run_script("sweep_array.sbatch", "s", CODE=code, **job)[::2],
                             (int(code), [task]))

    def test_a_training_goes_through_supervise(self):
        job = {"SLURM_JOB_ID": "18", "SLURM_NTASKS": "4"}
        for code in ("0", "65"):
            done, said, calls = self.run_script("train.sbatch", "--model", "chips", "--out", "s", CODE=code, **job)
            self.assertEqual((done, len(calls)), (int(code), 1), said)
            self.assertTrue(calls[0].startswith("mpirun -np 4 "), calls)
            self.assertTrue(calls[0].endswith(" ./cputrain train --model chips --out s --resume auto"), calls)
        code, said, calls = self.run_script("train.sbatch", "--out", "s", CODE="0", SRUN_MPI="pmix", **job)
        self.assertRegex(calls[0], "^srun --mpi=pmix .*-n 4 .* ./cputrain train --out s --resume auto$")
        code, said, calls = self.run_script("train.sbatch", "--model", "chips", CODE="0", **job)
        self.assertEqual((code, calls), (2, []), said)


if __name__ == "__main__":
    unittest.main()

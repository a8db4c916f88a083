"""The batch scripts, with stand-ins for Slurm's programs and ours that write down how they are called."""
import os
import shutil
import subprocess
import unittest

from program import ProgramTest, ROOT

STAND_IN = r"""#!/bin/bash
[[ $* == show* ]] || printf '%s\n' "${0##*/} $*" >>"$CALLS"
case "${0##*/} $*" in
  sbatch*) echo 17 ;;
  'scontrol show hostnames n[1-3]') printf 'n1\nn2\nn3\n' ;;
  'scontrol show --oneliner job '*) [[ -z ${SAID-} ]] || echo "JobId=17 JobName=x $SAID Dependency=(null) Requeue=1" ;;
  'scontrol requeue '*) exit "${REQUEUE-0}" ;;
  *--extend*--plan-only*) echo 'Plan: s/plan.txt, a line a training; `--task 5` to `--task 6` measure a cell each' ;;
  *--plan-only*) echo 'Plan: s/plan.txt, a line a training; `--task 1` to `--task 4` measure a cell each' ;;
  'cputrain sweep'* | supervise* | mpirun* | srun*) exit "$CODE" ;;
esac
"""


class Slurm(ProgramTest):
    def setUp(self):
        super().setUp()
        for name in ("slurm", "supervision"):
            shutil.copytree(os.path.join(ROOT, "scripts", name), os.path.join(self.folder, "scripts", name))
        for name in ("help.sh", "supervise"):
            shutil.copy(os.path.join(ROOT, "scripts", name), os.path.join(self.folder, "scripts"))
        for tool in ("sbatch", "scontrol", "cputrain", "mpirun", "srun"):
            self.stand_in(tool)

    def stand_in(self, tool):
        with open(os.path.join(self.folder, tool), "w") as f:
            f.write(STAND_IN)
        os.chmod(os.path.join(self.folder, tool), 0o755)

    def run_script(self, name, *words, **environment):
        """Exit code, what it said, and the lines of its calls. A variable that is None is not set."""
        calls = os.path.join(self.folder, "calls")
        open(calls, "w").close()
        done = subprocess.run(
            ["bash", os.path.join(self.folder, "scripts", "slurm", name), *words], text=True, timeout=60,
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={k: v for k, v in {**os.environ, "PATH": self.folder + ":" + os.environ["PATH"], "CALLS": calls,
                                   "SLURM_SUBMIT_DIR": self.folder, **environment}.items() if v is not None})
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
        _, _, calls = self.run_script("submit_array", "--", "--np", "4", "--out", "s", "--extend")
        self.assertTrue(calls[1].endswith("--array=5-6 scripts/slurm/sweep_array.sbatch s"), calls)
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

    def test_a_cancelled_job_stays_out_of_the_queue(self):
        """JobState and Reason as `scontrol show job` has them in a job's last seconds."""
        one, task = {"SLURM_JOB_ID": "17", "SLURM_NTASKS": "1"}, {"SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "3"}
        self.stand_in("scripts/supervise")
        for script, words, job in (("train.sbatch", ["--out", "s"], one), ("sweep.sbatch", [], one),
                                   ("sweep_srun.sbatch", [], one), ("sweep_array.sbatch", ["s"], {**one, **task})):
            for said, back in (("JobState=RUNNING Reason=None", True),
                               ("JobState=SIGNALING Reason=None", True),
                               ("JobState=COMPLETING Reason=None", False),
                               ("JobState=CANCELLED Reason=None", False),
                               ("JobState=COMPLETING Reason=TimeLimit", True),  # it saved until its time was up
                               ("JobState=TIMEOUT Reason=TimeLimit", True),
                               ("JobState=PREEMPTED Reason=None", False),  # Slurm decides by PreemptMode
                               ("JobState=REQUEUED Reason=None", False),  # somebody else has put it back
                               ("", True)):  # no answer
                with self.subTest(script=script, said=said):
                    code, text, calls = self.run_script(script, *words, CODE="75", SAID=said, **job)
                    requeued = [call for call in calls if call.startswith("scontrol requeue")]
                    number = "17_3" if "SLURM_ARRAY_TASK_ID" in job else "17"
                    self.assertEqual((code, requeued), (75, [f"scontrol requeue {number}"] if back else []), text)
                    self.assertIn("goes back into the queue" if back else "not put back into the queue from here", text)
        code, text, _ = self.run_script("sweep.sbatch", CODE="75", REQUEUE="1", **one)
        self.assertEqual(code, 75, "Slurm does not take it back")
        self.assertIn("submit it again", text)

    def test_a_training_goes_through_supervise(self):
        job = {"SLURM_JOB_ID": "18", "SLURM_NTASKS": "4"}
        for code in ("0", "65"):
            done, said, calls = self.run_script("train.sbatch", "--model", "chips", "--out", "s", CODE=code, **job)
            self.assertEqual((done, len(calls)), (int(code), 1), said)
            self.assertTrue(calls[0].startswith("mpirun -np 4 "), calls)
            self.assertTrue(calls[0].endswith(" ./cputrain train --model chips --out s --resume auto --on-failure shrink"),
                            calls)
        code, said, calls = self.run_script("train.sbatch", "--out", "s", CODE="0", SRUN_MPI="pmix", **job)
        self.assertRegex(calls[0], "^srun --mpi=pmix .*-n 4 .* ./cputrain train --out s --resume auto --on-failure shrink$")
        code, said, calls = self.run_script("train.sbatch", "--model", "chips", CODE="0", **job)
        self.assertEqual((code, calls), (2, []), said)

    def started(self, **job):
        """How the ranks of a training were started by mpirun, and by srun."""
        job = {"SLURM_JOB_ID": "18", "CODE": "0", **{"SLURM_" + name: value for name, value in job.items()}}
        lines = []
        for interface in (None, "pmix"):
            code, said, calls = self.run_script("train.sbatch", "--out", "s", SRUN_MPI=interface, **job)
            lines.append(calls[0].split(" ./cputrain")[0] if code == 0 else said)
            self.assertIn(code, (0, 2), said)
        return lines

    def test_tasks_are_worked_out_from_what_slurm_says(self):
        for ranks, cpus, job in (
                ("4", "1", {"NTASKS": "4"}), ("4", "1", {"NPROCS": "4"}),
                ("8", "3", {"NTASKS": "08", "CPUS_PER_TASK": "3"}),
                ("96", "1", {"NTASKS_PER_NODE": "48", "NNODES": "2"}),
                ("96", "1", {"NTASKS_PER_NODE": "48", "JOB_NUM_NODES": "2"}),
                ("144", "1", {"NTASKS_PER_NODE": "48", "JOB_NODELIST": "n[1-3]"}),
                ("144", "1", {"NTASKS_PER_NODE": "48", "NODELIST": "n[1-3]"}),
                ("7", "1", {"TASKS_PER_NODE": "2(x3),1"}), ("5", "1", {"TASKS_PER_NODE": "5"}),
                ("10", "4", {"JOB_CPUS_PER_NODE": "16(x2),8", "CPUS_PER_TASK": "4"}),
                ("40", "1", {"JOB_CPUS_PER_NODE": "16(x2),8"}),
                ("1", "2", {"CPUS_PER_TASK": "2", "NNODES": "1", "JOB_NODELIST": "n1"}),
                ("3", "8", {"CPUS_PER_TASK": "8", "JOB_NODELIST": "n[1-3]"}),
                # Nodes that a few tasks have to themselves.
                ("4", "48", {"NTASKS": "4", "NNODES": "2", "JOB_CPUS_PER_NODE": "96(x2)"}),
                ("2", "6", {"NTASKS": "2", "NNODES": "1", "CPUS_ON_NODE": "12"}),
                ("2", "1", {"NTASKS": "2", "NNODES": "2", "JOB_CPUS_PER_NODE": "8,4", "CPUS_ON_NODE": "8"}),
                # A heterogeneous job of one part is none.
                ("4", "1", {"NTASKS": "4", "HET_SIZE": "1"})):
            with self.subTest(**job):
                by_mpirun, by_srun = self.started(**job)
                self.assertTrue(by_mpirun.startswith(f"mpirun -np {ranks} "), by_mpirun)
                self.assertEqual(by_srun, f"srun --mpi=pmix --cpu-bind=cores -n {ranks} -c {cpus}")

    def test_a_training_on_gpus_has_a_rank_for_each(self):
        # As Slurm says it of the guide's job: --nodes=2 --ntasks-per-node=4 --cpus-per-task=8 --gres=gpu:4.
        job = {"SLURM_JOB_ID": "18", "SLURM_NTASKS_PER_NODE": "4", "SLURM_NNODES": "2", "SLURM_CPUS_PER_TASK": "8",
               "SLURM_GPUS_ON_NODE": "4", "CUDA_VISIBLE_DEVICES": "0,1,2,3", "CODE": "0"}
        words = ["--backend", "cuda", "--out", "s"]
        _, said, calls = self.run_script("train.sbatch", *words, **job)
        self.assertTrue(calls[0].startswith("mpirun -np 8 "), said)
        self.assertIn(" ./cputrain train --backend cuda --out s --resume auto", calls[0])
        _, said, calls = self.run_script("train.sbatch", *words, SRUN_MPI="pmix", **job)
        self.assertRegex(calls[0], "^srun --mpi=pmix .*-n 8 -c 8 ./cputrain train --backend cuda --out s ", said)
        with open(os.path.join(ROOT, "scripts", "slurm", "README.md"), encoding="utf-8") as f:
            self.assertIn("--nodes=2 --ntasks-per-node=4 --cpus-per-task=8 --gres=gpu:4 --time=04:00:00 "
                          "scripts/slurm/train.sbatch --backend cuda", f.read())

    def test_parts_of_a_heterogeneous_job_have_a_command_each(self):
        for group in ("het", "pack"):
            part = group.upper() + "_GROUP_"
            job = {"SLURM_JOB_ID": "18", f"SLURM_{group.upper()}_SIZE": "2", "CODE": "0", f"SLURM_NTASKS_{part}0": "1",
                   f"SLURM_CPUS_PER_TASK_{part}0": "4", f"SLURM_TASKS_PER_NODE_{part}1": "2(x2)"}
            code, said, calls = self.run_script("train.sbatch", "--out", "s", SRUN_MPI="pmix", **job)
            train = "./cputrain train --out s --resume auto"
            self.assertEqual((code, calls), (0, [
                f"srun --mpi=pmix --cpu-bind=cores --{group}-group=0 -n 1 -c 4 {train}"
                f" : --{group}-group=1 -n 4 -c 1 {train}"]), said)
            code, said, calls = self.run_script("train.sbatch", "--out", "s", **job)
            self.assertEqual((code, calls), (2, []))
            self.assertIn("SRUN_MPI=pmix", said)

    def test_what_cannot_be_worked_out_is_one_sentence(self):
        for words, job in (("SLURM_NTASKS", {}), ("SLURM_NNODES", {"NTASKS_PER_NODE": "4"}),
                           ("SLURM_NTASKS", {"CPUS_PER_TASK": "2"}), ("SLURM_NTASKS is 4(x2)", {"NTASKS": "4(x2)"}),
                           ("SLURM_NTASKS", {"NTASKS": "0"}), ("2(x3),1", {"TASKS_PER_NODE": "two"}),
                           ("SLURM_NTASKS", {"NTASKS": "", "NNODES": ""})):
            for said in self.started(**job):
                self.assertIn(words, said)
                self.assertEqual((said.count("\n"), said[:14]), (1, "train.sbatch: "))
        task = {"SLURM_ARRAY_TASK_ID": "3"}
        for name, given, job, word in (
                ("train.sbatch", ["--out", "s"], {}, "SLURM_JOB_ID"), ("sweep.sbatch", [], {}, "SLURM_JOB_ID"),
                ("sweep_srun.sbatch", [], {}, "SLURM_JOB_ID"), ("sweep_array.sbatch", ["s"], task, "SLURM_JOB_ID"),
                ("sweep_array.sbatch", ["s"], {"SLURM_JOB_ID": "18"}, "SLURM_ARRAY_TASK_ID"),
                ("sweep_array.sbatch", [], {"SLURM_JOB_ID": "18", **task}, "folder"),
                ("sweep.sbatch", [], {"SLURM_JOB_ID": "18", "REQUEUES": "often"}, "REQUEUES is often"),
                ("sweep.sbatch", [], {"SLURM_JOB_ID": "18", "SLURM_RESTART_COUNT": "x"}, "SLURM_RESTART_COUNT is x"),
                ("sweep.sbatch", [], {"SLURM_JOB_ID": "18", "SLURM_SUBMIT_DIR": "/proc"}, "the project's folder")):
            code, said, calls = self.run_script(name, *given, **job)
            self.assertEqual((code, calls, said.count("\n")), (2, [], 1), said)
            self.assertIn(word, said)

    def test_what_other_variables_say_as_well(self):
        # Without the array's number the task's own is put back; the submit folder is the present one; an old name.
        job = {"SLURM_JOBID": "21", "SLURM_ARRAY_TASK_ID": "3", "SLURM_SUBMIT_DIR": None}
        code, said, calls = self.run_script("sweep_array.sbatch", "s", CODE="75", **job)
        self.assertEqual((code, calls[1:]), (75, ["scontrol requeue 21"]), said)

    def test_names_of_folders_reach_slurm_whole(self):
        code, said, (_, array, table) = self.run_script("submit_array", "--", "--np", "1", "--out=it's 5%j")
        self.assertEqual(code, 0, said)
        self.assertIn("--output=it's 5%%j/%x-%a.log", array)
        command = table.split("--wrap ")[1].replace("exec ./cputrain", "printf '%s;'")
        words = subprocess.run(["sh", "-c", command], text=True, stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(words, "sweep;--config;it's 5%j/sweep.json;--collect;")


if __name__ == "__main__":
    unittest.main()

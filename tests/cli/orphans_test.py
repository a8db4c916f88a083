"""Launchers that are killed: no rank outlives them, and nothing of a dead job stays on the machine."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from program import OPEN_MPI, PROGRAM, ProgramTest, mpirun

LONG = ["--image-size", "64", "--data", "synthetic:60", "--batch", "20", "--threads", "1", "--epochs", "100000",
        "--limit-val", "0", "--log-every", "1"]
PATIENCE = 60  # seconds


class JobTest(ProgramTest):
    def launch(self, words, ranks=0, wrapped=False, **environment):
        """A training in the folder `run`, with a mark in the environment of all its processes."""
        command = [PROGRAM, *LONG, "--out", "run", *words]
        os.makedirs(self.path("sessions"), exist_ok=True)
        if wrapped:  # the launcher is no parent of the rank
            command = ["bash", "-c", '"$@"; exit $?', "bash", *command]
        job = subprocess.Popen([*(mpirun(ranks) if ranks else []), *command], cwd=self.folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "ORPHANS_TEST": self.folder,
                                    "OMPI_MCA_orte_tmpdir_base": self.path("sessions"),
                                    "PRTE_MCA_prte_tmpdir_base": self.path("sessions"), **environment})
        self.addCleanup(self.end, job)
        return job

    def processes(self):
        """Those that are alive, the launcher included."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    ours = f"ORPHANS_TEST={self.folder}\0".encode() in f.read()
                with open(f"/proc/{pid}/stat") as f:
                    zombie = f.read().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                continue
            if ours and not zombie:
                found.append(int(pid))
        return found

    def shared_memory(self):
        """What the job's processes have mapped of /dev/shm."""
        found = set()
        for pid in self.processes():
            try:
                with open(f"/proc/{pid}/maps") as f:
                    found.update(re.findall(r"/dev/shm/\S+", f.read()))
            except OSError:
                pass
        return {path for path in found if os.path.exists(path)}

    def wait_for(self, what, patience=60):
        end = time.time() + patience
        while not what():
            if time.time() > end:
                return False
            time.sleep(0.02)
        return True

    def kill(self, pids):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def end(self, job):
        """Whatever was tested: nothing stays on the machine."""
        folders = {os.path.dirname(path) for path in self.shared_memory()} - {"/dev/shm"}
        self.kill([job.pid, *self.processes()])
        job.wait()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


@unittest.skipUnless(OPEN_MPI, "other launchers have folders of their own")
class Launchers(JobTest):
    def no_rank_outlives(self, job, why):
        """Kills the launcher, which stays a zombie until its ranks are gone."""
        self.kill([job.pid])
        self.assertTrue(self.wait_for(lambda: not self.processes(), PATIENCE), (why, self.processes()))
        job.wait()
        if os.path.exists(self.path("run")):
            os.rename(self.path("run"), self.path(f"run-{why}"))

    def test_no_rank_outlives_its_launcher(self):
        for ranks, wrapped in ((2, False), (3, True)):
            job = self.launch([], ranks, wrapped)
            self.assertTrue(self.wait_for(lambda: len(self.lines()) >= 2))
            self.assertGreater(len(self.processes()), ranks)
            self.no_rank_outlives(job, f"{ranks} ranks at work")

    def test_no_rank_outlives_a_launcher_that_is_killed_while_mpi_starts(self):
        for i, after in enumerate((0, 0.05, 0.15, 0.3)):
            job = self.launch([], 2 + i % 2, wrapped=i % 2 == 1)
            # From the moment when there are ranks.
            self.assertTrue(self.wait_for(lambda: len(self.processes()) >= 3))
            time.sleep(after)
            self.no_rank_outlives(job, f"{after} s")

    def test_ranks_of_a_machine_end_without_their_launcher_where_one_dies(self):
        # mpirun lets survivors go on, as srun does by default.
        leaves = {"OMPI_MCA_orte_enable_recovery": "1", "OMPI_MCA_orte_abort_on_non_zero_status": "0"}
        job = self.launch(["--on-failure", "shrink"], 3, **leaves)
        self.assertTrue(self.wait_for(lambda: len(self.lines()) >= 2))
        self.kill([max(set(self.processes()) - {job.pid})])  # the last rank: rank 0 sees it, and others see rank 0
        self.assertTrue(self.wait_for(lambda: not self.processes(), 2 * PATIENCE), self.processes())

    def test_a_dead_job_leaves_nothing_behind_the_next_start(self):
        job = self.launch([], 2)
        self.assertTrue(self.wait_for(lambda: len(self.lines()) >= 2))
        segments = self.shared_memory()
        folders = {os.path.dirname(path) for path in segments}
        self.assertEqual(len(folders), 1, segments)
        self.assertRegex(folders.pop(), f"^/dev/shm/cputrain-{os.geteuid()}-")
        self.kill([job.pid, *self.processes()])
        job.wait()
        os.rename(self.path("run"), self.path("dead"))
        self.expect(0, *LONG, "--steps", "2", "--out", "next", ranks=2)
        left = [path for path in segments if os.path.exists(path)]
        left += [path for path in map(os.path.dirname, segments) if os.path.exists(path)]
        self.assertEqual(left, [])

    def test_a_job_that_ends_leaves_nothing(self):
        job = self.launch(["--steps", "200"], 2)
        segments = set()
        self.assertTrue(self.wait_for(lambda: segments.update(self.shared_memory()) or segments))
        self.assertEqual(job.wait(60), 0)
        left = [path for path in (*segments, *map(os.path.dirname, segments)) if os.path.exists(path)]
        self.assertEqual(left, [])

    def test_a_persons_folder_for_shared_memory_wins(self):
        os.mkdir(self.path("segments"))
        job = self.launch([], 2, OMPI_MCA_btl_vader_backing_directory=self.path("segments"),
                          OMPI_MCA_btl_sm_backing_directory=self.path("segments"))
        self.assertTrue(self.wait_for(lambda: len(self.lines()) >= 2))
        self.assertTrue(os.listdir(self.path("segments")))
        self.end(job)


class Shells(JobTest):
    def test_a_training_without_launcher_outlives_its_shell(self):
        shell = subprocess.Popen(["sh", "-c", 'nohup "$@" >/dev/null 2>&1 &', "sh", PROGRAM, *LONG, "--out", "run"],
                                 cwd=self.folder, env={**os.environ, "ORPHANS_TEST": self.folder})
        self.addCleanup(self.end, shell)
        self.assertEqual(shell.wait(30), 0)
        self.assertTrue(self.wait_for(lambda: len(self.lines()) >= 2))
        before = len(self.lines())
        time.sleep(1)  # ten times as long as it takes to see that a launcher is gone
        self.assertTrue(self.wait_for(lambda: len(self.lines()) > before))


if __name__ == "__main__":
    unittest.main()

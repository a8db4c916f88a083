"""Ranks and jobs in containers of one machine, for which namespaces stand: with host names, shared memory and process
numbers of their own."""
import json
import os
import shutil
import signal
import subprocess
import unittest

from program import MPIRUN, OPEN_MPI, SMALL, ProgramTest, as_root, mpirun, needs_mpi, wait_until

CPUS = len(os.sched_getaffinity(0))
NAMED = ["unshare", "-u", "sh", "-c", 'hostname "c$OMPI_COMM_WORLD_RANK$PMI_RANK"; exec "$@"', "sh"]
BLANK = ["unshare", "-u", "sh", "-c", 'printf "my laptop" >/proc/sys/kernel/hostname; exec "$@"', "sh"]
OWN_MEMORY = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm; exec "$@"', "sh"]
OWN_NUMBERS = ["unshare", "-p", "-f", "--mount-proc"]


@as_root
@unittest.skipUnless(shutil.which("unshare") and shutil.which("hostname"), "needs unshare and hostname")
class Containers(ProgramTest):
    def run_in(self, container, *words, ranks=0, code=0, **environment):
        """The program in a container of each rank."""
        if subprocess.run([*container, "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no such namespaces can be made here")
        done = self.run_program(*words, launch=[*(mpirun(ranks) if ranks else []), *container],
                                **{"OMP_NUM_THREADS": "", **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    @needs_mpi
    @unittest.skipIf(CPUS < 2, "one CPU cannot be divided")
    def test_host_names_of_their_own_make_no_hosts(self):
        info = json.loads(self.run_in(NAMED, "info", "--json", "-", ranks=2).stdout)
        self.assertEqual([rank["host"] for rank in info["map"]], ["c0", "c1"])
        alike = json.loads(self.run_program("info", "--json", "-", ranks=2, OMP_NUM_THREADS="").stdout)["map"]
        self.assertEqual([{**rank, "host": ""} for rank in info["map"]], [{**rank, "host": ""} for rank in alike])
        self.assertIn("host c0+c1: 2 ranks x 1 thread",
                      self.run_in(NAMED, *SMALL, "--steps", "2", "--out", "run", ranks=2).stderr)

    def test_a_host_name_may_have_blanks(self):
        for ranks in (0, 2) if MPIRUN else (0,):
            info = json.loads(self.run_in(BLANK, "info", "--json", "-", ranks=ranks).stdout)
            self.assertEqual({rank["host"] for rank in info["map"]}, {"my laptop"})
            done = self.run_in(BLANK, *SMALL, "--steps", "2", "--out", f"run-{ranks}", ranks=ranks)
            self.assertIn("host my laptop: ", done.stderr)

    @needs_mpi
    def test_ranks_that_share_no_memory_are_told_so(self):
        for words in ([], ["--allreduce", "ring"]):
            done = self.run_in(OWN_MEMORY, *SMALL, *words, "--out", "run", ranks=2, code=2,
                               OMPI_MCA_btl="tcp,self", OMPI_MCA_btl_vader_single_copy_mechanism="none")
            self.assertIn("cputrain: rank 1 does not see what rank 0 makes in /dev/shm", done.stderr)
        self.run_in(OWN_MEMORY, *SMALL, "--steps", "1", "--out", "alone")

    @unittest.skipUnless(OPEN_MPI, "other launchers have no such folders")
    def test_folders_of_launchers_stay(self):
        bases = {name: self.path("sessions") for name in ("TMPDIR", "OMPI_MCA_orte_tmpdir_base",
                                                          "PRTE_MCA_prte_tmpdir_base")}
        os.mkdir(self.path("sessions"))
        words = ["--steps", "1", *SMALL, "--overwrite", "--out", "run"]

        def folders():
            return {os.path.join(at, name) for at, names, _ in os.walk(self.path("sessions")) for name in names
                    if str(job.pid) in name}
        job = subprocess.Popen([*mpirun(1), "sleep", "100"], stdin=subprocess.DEVNULL, env={**os.environ, **bases},
                               start_new_session=True)
        try:
            wait_until(folders)
            before = folders()
            for container in (OWN_NUMBERS, []):
                self.run_in(container, *words, **bases)
                self.assertIsNone(job.poll())
                self.assertLessEqual(before, folders())  # it may still be making some
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        self.run_in([], *words, **bases)  # it may be another's that is not seen
        self.assertLessEqual(before, folders())


if __name__ == "__main__":
    unittest.main()

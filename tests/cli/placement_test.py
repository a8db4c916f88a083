"""Where ranks run: the plan that is printed, and the masks that threads really have."""
import json
import os
import unittest

from program import MPIRUN, SMALL, ProgramTest, needs_mpi

CPUS = len(os.sched_getaffinity(0))


class Placement(ProgramTest):
    def info(self, *words, **options):
        options.setdefault("OMP_NUM_THREADS", "")
        done = self.expect(0, "info", "--json", "-", *words, **options)
        return json.loads(done.stdout)

    def test_a_process_alone_is_not_bound(self):
        info = self.info()
        (rank,) = info["map"]
        self.assertEqual((rank["rank"], rank["bound"]), (0, False))
        self.assertEqual(rank["hardware_threads"], sorted(os.sched_getaffinity(0)))
        self.assertEqual(self.info("--threads", "1", "--io-threads", "3")["map"][0]["input_threads"], 3)

    def test_info_says_what_to_type(self):
        info = self.info()
        lines = [launch["line"] for launch in info["launch"]]
        if MPIRUN and info["machine"]["cores"] > 1 and not info["machine"]["cpu_quota"]:
            self.assertIn(f"-np {info['machine']['cores']} --bind-to core", lines[0])
            self.assertEqual("--allow-run-as-root" in lines[0], os.geteuid() == 0)
        self.assertTrue(all("./cputrain" in line for line in lines))
        self.expect(0, "info", says=[*lines, "rank 0 on"])

    @needs_mpi
    @unittest.skipIf(CPUS < 2, "one CPU cannot be divided")
    def test_ranks_that_fill_the_machine_get_cores_of_their_own(self):
        info = self.info(ranks=2)
        if info["machine"]["cpu_quota"]:
            self.skipTest("a quota of CPU time: nobody is bound")
        first, second = info["map"]
        self.assertTrue(first["bound"] and second["bound"])
        self.assertFalse(set(first["hardware_threads"]) & set(second["hardware_threads"]))
        for words, variables in [(["--no-bind"], {}), ([], {"OMP_PROC_BIND": "true"})]:
            info = self.info(*words, ranks=2, **variables)
            self.assertFalse(any(rank["bound"] for rank in info["map"]), words)

    @needs_mpi
    def test_more_ranks_than_hardware_threads_are_warned_about_and_not_bound(self):
        info = self.info(ranks=CPUS + 1)
        self.assertFalse(any(rank["bound"] for rank in info["map"]))
        self.assertIn("take turns", " ".join(info["placement"]))

    def test_verbose_3_prints_the_map(self):
        words = [*SMALL, "--steps", "1", "--limit-val", "0", "--overwrite", "--out", "run"]
        self.assertIn("rank 0 on", self.expect(0, *words, "--verbose", "3").stderr)
        self.assertNotIn("rank 0 on", self.expect(0, *words, "--verbose", "2").stderr)


if __name__ == "__main__":
    unittest.main()

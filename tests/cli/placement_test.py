"""Where ranks run: the plan that is printed, and the masks that threads really have."""
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import unittest

from program import MPIRUN, PROGRAM, SMALL, ProgramTest, needs_mpi, wait_until

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
        self.assertTrue(all(line.split()[-2:] == ["cputrain", "..."] for line in lines), lines)  # as it was called
        self.expect(0, "info", says=[*lines, "rank 0 on"])

    @unittest.skipUnless(platform.machine() == "x86_64" and shutil.which("lscpu"), "needs lscpu, and cpuid")
    def test_the_processor_is_named_as_lscpu_names_it(self):
        lines = subprocess.run(["lscpu"], env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, text=True, check=True,
                               capture_output=True).stdout.splitlines()
        said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        found = self.info()["machine"]["cpu_id"]
        self.assertEqual(found["vendor"], said["Vendor ID"])
        self.assertEqual([found[key] for key in ("family", "cpu_model", "stepping")],
                         [int(said[key]) for key in ("CPU family", "Model", "Stepping")])
        flags = said["Flags"].split()
        self.assertEqual([name for name in found["instructions"] if name not in flags], [])
        for name in ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile"):
            self.assertEqual(name in found["instructions"], name in flags, name)
        self.expect(0, "info", says=[f"({found['vendor']}, family {found['family']}, model {found['cpu_model']}, "])

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

    def bound(self, ranks=0, words=(), **variables):
        """Hardware threads of each rank, and the warnings. Variables of this test alone bind."""
        for name in ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "SLURM_CPU_BIND",
                     "OMPI_MCA_hwloc_base_binding_policy"):
            os.environ.pop(name, None)
        info = self.info(*words, ranks=ranks, **variables)
        return ([rank["hardware_threads"] for rank in info["map"]],
                [line for line in info["placement"] if line.startswith("warning: ")])

    @unittest.skipIf(CPUS < 2, "one CPU cannot be divided")
    def test_what_binds_a_process_is_named_and_nothing_else(self):
        cpus = sorted(os.sched_getaffinity(0))
        first, last = str(cpus[0]), str(cpus[-1])
        for values, hers, named in (
                # Whole machines.
                ({"OMP_PROC_BIND": "true"}, cpus, None), ({"OMP_PROC_BIND": "close"}, cpus, None),
                ({"OMP_PROC_BIND": "spread"}, cpus, None), ({"OMP_PROC_BIND": "false"}, cpus, None),
                ({"OMP_PLACES": "cores"}, cpus, None), ({"OMP_PLACES": "threads"}, cpus, None),
                ({"GOMP_CPU_AFFINITY": f"{first}-{last}"}, cpus, None),
                ({"OMP_PROC_BIND": "false", "OMP_PLACES": f"{{{first}}}"}, cpus, None),
                ({"KMP_AFFINITY": "compact"}, cpus, None),  # of another runtime
                # One core of it.
                ({"OMP_PROC_BIND": "master"}, cpus[:1], "OMP_PROC_BIND"),
                ({"OMP_PROC_BIND": "primary", "OMP_PLACES": "threads"}, cpus[:1], "OMP_PROC_BIND and OMP_PLACES"),
                ({"OMP_PLACES": f"{{{first}}}"}, cpus[:1], "OMP_PLACES"),
                ({"OMP_PLACES": f"{{{last}}}"}, cpus[-1:], "OMP_PLACES"),
                ({"OMP_PLACES": "threads(1)"}, cpus[:1], "OMP_PLACES"),
                ({"GOMP_CPU_AFFINITY": last}, cpus[-1:], "GOMP_CPU_AFFINITY"),
                ({"OMP_PROC_BIND": "true", "OMP_PLACES": f"{{{first}}}"}, cpus[:1], "OMP_PROC_BIND and OMP_PLACES"),
                # What this machine does not have.
                ({"OMP_PLACES": "{99999}"}, cpus, None), ({"GOMP_CPU_AFFINITY": "99999"}, cpus, None),
                ({"OMP_PLACES": "nonsense"}, cpus, None), ({"OMP_PROC_BIND": "perhaps"}, cpus, None)):
            with self.subTest(**values):
                (mine,), warnings = self.bound(**values)
                self.assertEqual(mine, hers)
                if named and len(hers) * 8 < len(cpus) * 7:
                    (warning,) = warnings
                    self.assertIn(f"a start without {named}", warning)
                    self.assertNotIn("mpirun", warning)
                self.assertEqual([w for w in warnings if "OMP_" in w], warnings if named else [])

    @unittest.skipUnless(CPUS > 1 and shutil.which("taskset"), "needs two CPUs and taskset")
    def test_a_mask_from_outside_is_not_open_mpis(self):
        cpu = min(os.sched_getaffinity(0))
        done = subprocess.run(["taskset", "-c", str(cpu), PROGRAM, "info"], text=True, timeout=60, capture_output=True,
                              env={k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "SLURM_"))})
        self.assertEqual(done.returncode, 0, done.stderr)
        warning = next(line for line in done.stdout.splitlines() if "warning: " in line)
        self.assertIn("taskset", warning)
        self.assertNotIn("Open MPI", warning)
        self.assertNotIn("--bind-to", warning)

    @needs_mpi
    @unittest.skipIf(CPUS < 2, "one CPU cannot be divided")
    def test_ranks_that_openmp_puts_on_one_core_are_named_with_its_variable(self):
        first = min(os.sched_getaffinity(0))
        for values, words in (({"OMP_PROC_BIND": "true"}, ["--threads", "1"]),
                              ({"OMP_PROC_BIND": "spread"}, ["--threads", "1"]),
                              ({"OMP_PLACES": "cores"}, ["--threads", "1"]),
                              ({"OMP_PLACES": f"{{{first}}}"}, []), ({"GOMP_CPU_AFFINITY": str(first)}, [])):
            with self.subTest(**values):
                masks, warnings = self.bound(ranks=2, words=words, OMPI_MCA_hwloc_base_binding_policy="none", **values)
                self.assertEqual(masks[0], masks[1])
                self.assertIn(f"a start without {next(iter(values))}", " ".join(warnings))
                self.assertNotIn("--bind-to none", " ".join(warnings))

    @needs_mpi
    @unittest.skipIf(CPUS < 2, "one CPU cannot be divided")
    def test_mpiruns_own_binding_is_told_from_no_binding(self):
        policy = "OMPI_MCA_hwloc_base_binding_policy"
        version = subprocess.run([MPIRUN[0], "--version"], text=True, stdout=subprocess.PIPE).stdout
        if "Open MPI) 4" not in version:
            self.skipTest("not Open MPI 4, whose mpirun tells ranks how it binds")
        launch = [word for word in MPIRUN if word not in ("--bind-to", "none")]
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "SLURM_")) and k != policy}
        for flags, variables, says in (([], {}, "Open MPI binds like this"), ([], {policy: "core"}, policy),
                                       (["--bind-to", "core"], {}, policy), ([], {policy: "none"}, None),
                                       # Places of OpenMP that have all that mpirun gave.
                                       ([], {"OMP_PROC_BIND": "true"}, "Open MPI binds like this"),
                                       ([], {"OMP_PLACES": "cores"}, "Open MPI binds like this"),
                                       (["--bind-to", "none"], {policy: "core"}, None)):
            with self.subTest(flags=flags, **variables):
                done = subprocess.run([*launch, *flags, "-np", "1", PROGRAM, "info"], env={**clean, **variables},
                                      text=True, timeout=60, capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                warnings = " ".join(line for line in done.stdout.splitlines() if "warning: " in line)
                for word in (says, "mpirun --bind-to none") if says else ():
                    self.assertIn(word, warnings)
                self.assertEqual(bool(warnings), bool(says), warnings)

    @needs_mpi
    def test_more_ranks_than_hardware_threads_are_warned_about_and_not_bound(self):
        info = self.info(ranks=CPUS + 1)
        self.assertFalse(any(rank["bound"] for rank in info["map"]))
        self.assertIn("take turns", " ".join(info["placement"]))

    def test_verbose_3_prints_the_map(self):
        words = [*SMALL, "--steps", "1", "--limit-val", "0", "--overwrite", "--out", "run"]
        self.assertIn("rank 0 on", self.expect(0, *words, "--verbose", "3").stderr)
        self.assertNotIn("rank 0 on", self.expect(0, *words, "--verbose", "2").stderr)


class Waiting(ProgramTest):
    """How long OpenMP's threads spin: the runtime tells what it read when it was loaded."""

    def spins(self, *start, **variables):
        """What each time the program was started says, one after the other."""
        env = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
        done = subprocess.run([*start, "info"] if start else [PROGRAM, "info"], cwd=self.folder, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**env, "OMP_DISPLAY_ENV": "VERBOSE", **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        found = re.findall(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)
        if not found:
            self.skipTest("not libgomp")
        return [int(n) for n in found]

    def test_threads_spin_shortly_unless_somebody_decided(self):
        before, after = self.spins()
        self.assertGreater(before, 100000)
        self.assertLess(after, 100000)
        self.assertEqual(self.spins(GOMP_SPINCOUNT="77"), [77])
        self.assertEqual(self.spins(OMP_WAIT_POLICY="passive"), [0])
        self.assertEqual(len(self.spins(OMP_WAIT_POLICY="active")), 1)

    def test_it_is_the_same_process_under_the_same_name(self):
        name = self.path("another name")
        os.symlink(PROGRAM, name)
        process = subprocess.Popen([name, "train", *SMALL, "--epochs", "100000", "--out", "run"], cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: os.path.exists(self.path("run", "environment.json")), process)
        with open(f"/proc/{process.pid}/comm") as f:
            self.assertEqual(f.read(), "another name\n")
        with open(f"/proc/{process.pid}/cmdline") as f:
            self.assertEqual(f.read().split("\0")[0], name)

    def test_the_record_of_a_run_has_what_somebody_decided(self):
        for run, variables in (("own", {}), ("given", {"GOMP_SPINCOUNT": "77"}),
                               ("passive", {"OMP_WAIT_POLICY": "passive"})):
            env = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
            subprocess.run([PROGRAM, *SMALL, "--steps", "1", "--out", run], cwd=self.folder, timeout=60, check=True,
                           stdin=subprocess.DEVNULL, capture_output=True, env={**env, **variables})
            found = self.json_of(run, "environment.json")["openmp"]
            self.assertEqual({k: v for k, v in found.items() if k in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}, variables)

    def test_the_loader_as_a_command_is_left_alone(self):
        loader = next((p for p in glob.glob("/lib64/ld-linux-*.so.*")), None)
        if not loader:
            self.skipTest("no such loader")
        self.assertEqual(len(self.spins(loader, PROGRAM)), 1)

    def test_without_proc(self):
        start = ["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$0" "$@"']
        if subprocess.run([*start, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("/proc cannot be taken away here")
        self.assertEqual(len(self.spins(*start, PROGRAM)), 2)


if __name__ == "__main__":
    unittest.main()

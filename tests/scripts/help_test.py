"""The scripts from outside: --help does nothing but tell, and scripts/run does without /sys."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def scripts():
    """Every program below scripts/."""
    found = []
    for folder, _, files in os.walk(os.path.join(ROOT, "scripts")):
        for name in files:
            path = os.path.join(folder, name)
            with open(path, errors="replace") as f:
                if os.access(path, os.X_OK) and f.readline().startswith("#!"):
                    found.append(os.path.relpath(path, ROOT))
    return sorted(found)


def write_program(path, text):
    with open(path, "w") as f:
        f.write("#!/bin/bash\n" + text)
    os.chmod(path, 0o755)


class Help(unittest.TestCase):
    def run_quietly(self, *words, **options):
        """With no compiler, package manager or launcher within reach: whoever starts to work fails."""
        with tempfile.TemporaryDirectory() as tools:
            for name in ("bash", "awk", "sed", "dirname", "basename", "cat", "env", "grep", "printf"):
                os.symlink(shutil.which(name), os.path.join(tools, name))
            os.symlink(sys.executable, os.path.join(tools, "python3"))  # `python3` may be a script that finds it
            environment = {"PATH": tools, "HOME": tools, "PYTHONDONTWRITEBYTECODE": "1"}
            return subprocess.run([os.path.join(ROOT, words[0]), *words[1:]], text=True, timeout=60, env=environment,
                                  stdin=subprocess.DEVNULL, capture_output=True, **options)

    def test_says_what_the_script_does(self):
        names = scripts()
        self.assertGreater(len(names), 20)
        for number, name in enumerate(names):
            for flag in ("--help", "-h") if number % 8 == 0 else ("--help",):
                with self.subTest(name=name, flag=flag):
                    done = self.run_quietly(name, flag)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertGreater(len(done.stdout.splitlines()), 1)
                    self.assertNotIn("set -euo", done.stdout)
                    self.assertIn("scripts/" if not name.endswith(".py") else "", done.stdout)

    def test_is_told_behind_other_words_and_from_other_folders(self):
        for words in (["scripts/run", "-np", "2", "--help"], ["scripts/test", "-R", "x", "-h"],
                      ["scripts/build", "dev", "--help"], ["scripts/tables", "measured", "out", "--help"]):
            with self.subTest(words=words):
                done = self.run_quietly(*words, cwd="/")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(words[0], done.stdout)

    def test_unknown_words_end_with_2(self):
        for words in (["build", "--fast"], ["check", "--stile"], ["check", "--style", "more"], ["sanitize", "msan"],
                      ["sanitize", "asan", "tsan"], ["fuzz", "x1"], ["fuzz", "--jobs", "0"], ["setup", "biuld"], ["check_mpich", "x"], ["check_onednn3", "x"],
                      ["check_slurm", "x"], ["clean_root", "--fast"], ["two_hosts", "--fast"], ["tables", "x"],
                      ["run", "-np", "0"], ["supervise", "--fast"], ["cloud/preemption", "ibm"],
                      ["cloud/gcp", "--fast"], ["cloud/aws", "--fast"], ["check_package", "--fast"],
                      ["package/deb", "a", "b"], ["gpu_day", "x"], ["gpu_day", "pack"], ["gpu/day/run", "--fast", "x"],
                      ["mutants", "--fast"], ["mutants", "--rooms", "attic"],
                      ["kernel_instructions", "--fast"], ["kernel_resources", "--fast"], ["predict_gpu", "--fast"]):
            with self.subTest(words=words):
                done = self.run_quietly("scripts/" + words[0], *words[1:])
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(os.path.basename(words[0]), done.stderr)


    def test_values_are_taken_behind_a_blank_and_behind_an_equals_sign(self):
        for script, flag, value, says in (
                ("two_hosts", "--ranks", "0", "--ranks 0"), ("two_hosts", "--rate", "much", "--rate much"),
                ("supervise", "--max-restarts", "x", "--max-restarts x"), ("supervise", "--grace", "x", "--grace x"),
                ("supervise", "--watch", "ibm", "--watch ibm"), ("supervise", "--cool-down", "x", "--cool-down x"),
                ("cloud/gcp", "--vms", "0", "--vms 0"), ("cloud/aws", "--vms", "0", "--vms 0"),
                ("cloud/gcp", "--name", "X", "--name X"), ("run", "-np", "0", "-np needs"),
                ("run", "--np", "0", "-np needs"), ("tables", "--data", "nowhere", "--data nowhere")):
            rest = {"two_hosts": ["true"], "run": [], "tables": []}.get(script, ["--", "train"])
            before = ["accuracy", "out"] if script == "tables" else []
            underscores = "--" + flag[2:].replace("-", "_") if script == "supervise" else flag
            for words in ([flag, value], [f"{flag}={value}"], [f"{underscores}={value}"]):
                with self.subTest(script=script, words=words):
                    done = self.run_quietly("scripts/" + script, *before, *words, *rest)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn(says, done.stderr)
        for script, words in (("two_hosts", ["--ssh=yes", "true"]), ("two_hosts", ["--ranks", "--ssh", "true"]),
                              ("two_hosts", ["--ranks=", "true"]), ("two_hosts", ["--ranks"]),
                              ("cloud/gcp", ["--zone", "--spot", "--", "x"]), ("cloud/gcp", ["--zone=", "--", "x"]),
                              ("cloud/aws", ["--keep=no", "--", "x"]), ("datasets/mnist", ["d", "--from"]),
                              ("datasets/mnist", ["d", "--fast"]), ("datasets/mnist", ["d", "--offline=1"]),
                              ("datasets/mnist", ["d", "e"]), ("datasets/mnist", ["--from=file:///"])):
            with self.subTest(script=script, words=words):
                self.assertEqual(self.run_quietly("scripts/" + script, *words).returncode, 2)


class Run(unittest.TestCase):
    """scripts/run in a copy whose build and program are made up."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        self.root = holder.name
        for folder in ("scripts", "tools"):
            os.mkdir(os.path.join(self.root, folder))
        for name in ("run", "help.sh"):
            shutil.copy(os.path.join(ROOT, "scripts", name), os.path.join(self.root, "scripts"))
        write_program(os.path.join(self.root, "scripts", "build"), 'echo "built $*"\n')
        write_program(os.path.join(self.root, "cputrain"), 'echo "trained $*"\n')
        write_program(os.path.join(self.root, "tools", "mpirun"), 'echo "mpirun $*"\n')

    def start(self, lscpu, *words, **environment):
        write_program(os.path.join(self.root, "tools", "lscpu"), lscpu)
        environment = {**os.environ, "PATH": os.path.join(self.root, "tools") + ":" + os.environ["PATH"],
                       **environment}
        done = subprocess.run([os.path.join(self.root, "scripts", "run"), *words], text=True, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_trains_where_lscpu_can_tell_nothing(self):
        fails = "echo 'lscpu: failed to determine number of CPUs: /sys/devices/system/cpu/possible' >&2; exit 1\n"
        for lscpu in (fails, "exit 0\n", "echo '# comment alone'\n"):
            said = self.start(lscpu, "--steps", "1")
            self.assertIn("trained --steps 1 --data synthetic:4000 --image-size 64 --batch 32\n", said)
            self.assertNotIn("mpirun -np 0", said)
            for three in (["-np", "3"], ["-np=3"], ["--np", "3"], ["--np=3"]):
                self.assertIn("mpirun -np 3", self.start(lscpu, *three))

    def test_what_a_person_says_replaces_what_it_says(self):
        for words, flags in ((["--data", "photos"], "--data photos --epochs 2"),
                             (["--data=photos", "--epochs=9"], "--data=photos --epochs=9"),
                             (["--model", "vgg16"], "--model vgg16 --data synthetic:4000 --epochs 2"),
                             (["--batch-size", "8", "--image-size=96"],
                              "--batch-size 8 --image-size=96 --data synthetic:4000 --epochs 2")):
            self.assertIn(f"trained {flags}\n", self.start("exit 1\n", *words))

    def test_ends_with_the_commands_that_come_next(self):
        last = [line for line in self.start("exit 1\n").splitlines() if line.startswith("  ./cputrain ")]
        self.assertEqual([re.sub(r"--(data|out|freeze) .*", "...", line.strip()) for line in last],
                         ["./cputrain --model efficientnet-lite0 --weights imagenet ...",
                          "./cputrain predict --weights runs/mine new.jpg", "./cputrain --help"])

    def test_trains_with_a_tmpdir_that_is_not_there(self):
        self.assertIn("trained", self.start("exit 1\n", TMPDIR=os.path.join(self.root, "nowhere")))

    def test_makes_no_plugin_for_a_gpu_that_is_not_there(self):
        write_program(os.path.join(self.root, "tools", "nvcc"), "")
        driver = any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia")))
        self.assertEqual("built --no-cuda\n" in self.start("exit 1\n"), not driver)
        os.mkdir(os.path.join(self.root, "build"))
        write_program(os.path.join(self.root, "build", "libcputrain_cuda.so"), "")
        self.assertIn("built \n", self.start("exit 1\n"))

    def test_binds_ranks_to_what_lscpu_says(self):
        columns = 'case $1 in -p=NODE) printf "# x\\n0\\n0\\n";; *) printf "# x\\n0,0\\n1,0\\n";; esac\n'
        self.assertIn("trained", self.start(columns))
        self.assertIn(" -np 2 ", self.start(columns, "-np", "2"))

    @unittest.skipUnless(shutil.which("localedef") and shutil.which("mawk"), "needs localedef and mawk")
    def test_figures_have_a_point_in_a_locale_with_a_comma(self):
        locales = os.path.join(self.root, "locales")
        os.mkdir(locales)
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", locales + "/de_DE.UTF-8"], stderr=subprocess.DEVNULL)
        german = {"LOCPATH": locales, "LC_ALL": "de_DE.UTF-8"}
        awk = shutil.which("mawk")  # Debian's; gawk reads numbers with a point everywhere
        if subprocess.run([awk, "BEGIN { printf \"%.1f\", 0.5 }"], env=german, stdout=subprocess.PIPE).stdout != b"0,5":
            self.skipTest("mawk does not know a locale with a comma here")
        os.symlink(awk, os.path.join(self.root, "tools", "awk"))
        epoch = ('{"type":"epoch","epoch":1,"seconds":30.24,"loss":1.43664,"accuracy":0.56942,"val_loss":0.56591,'
                 '"val_accuracy":0.65504,"images_per_second":58.44}')
        write_program(os.path.join(self.root, "cputrain"), f"sleep 0.01; mkdir -p runs/a; echo '{epoch}' >runs/a/metrics.jsonl\n")
        for environment in ({"LC_ALL": "C"}, german, {**german, "LC_ALL": "", "LC_NUMERIC": "de_DE.UTF-8"}):
            said = self.start("exit 1\n", **environment)
            figures = next(line.split() for line in said.splitlines() if line.startswith("    1 "))
            self.assertEqual(figures, ["1", "30.2", "58.4", "1.4366", "0.5694", "0.5659", "0.6550"])

    def test_all_scripts_take_awk_and_sort_from_one_place(self):
        """help.sh makes them independent of the locale; files that are sourced get them from who sources them."""
        users = 0
        for name in scripts():
            with open(os.path.join(ROOT, name)) as f:
                lines = f.read().splitlines()
            if "bash" not in lines[0] and "/sh" not in lines[0]:
                continue
            code = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
            if re.search(r"(^|[|({;]|\bthen|\bdo)\s*(awk|sort)\b", code, re.MULTILINE):
                users += 1
                self.assertRegex(code, r"source .*help\.sh", name)
        self.assertGreater(users, 3)


if __name__ == "__main__":
    unittest.main()

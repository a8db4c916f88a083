"""The completions that the build wrote, in bash and in zsh."""
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import tempfile
import time
import unittest

MANUAL = os.path.join(os.environ["BUILD_FOLDER"], "manual")
BASH = os.path.join(MANUAL, "bash", "cputrain")


class Bash(unittest.TestCase):
    def complete(self, *words, folder="/"):
        """What bash would offer for the last of these words, after `cputrain`."""
        quoted = " ".join(map(shlex.quote, ["cputrain", *words]))
        script = (f"set -u; source {shlex.quote(BASH)}; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _cputrain; "
                  '[[ ${#COMPREPLY[@]} -eq 0 ]] || printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", script], text=True, capture_output=True, cwd=folder, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_the_function_belongs_to_the_program(self):
        script = f"source {shlex.quote(BASH)}; complete -p cputrain"
        done = subprocess.run(["bash", "--norc", "-c", script], text=True, capture_output=True, timeout=60)
        self.assertEqual(done.stdout, "complete -F _cputrain cputrain\n")

    def test_commands_topics_and_flags(self):
        self.assertEqual(self.complete("pre"), ["predict"])
        self.assertLessEqual({"train", "sweep", "report"}, set(self.complete("")))
        self.assertEqual(self.complete("data", ""), ["check", "info", "pack", "synth"])
        self.assertEqual(self.complete("bench", "a"), ["allreduce"])
        self.assertEqual(self.complete("--aug"), ["--augment"])
        self.assertEqual(self.complete("--ver"), ["--verbose", "--version"])
        self.assertEqual(self.complete("train", "--no-shuf"), ["--no-shuffle"])
        self.assertEqual(self.complete("predict", "--to"), ["--top"])
        self.assertEqual(self.complete("predict", "--lr"), [])
        self.assertEqual(self.complete("data", "synth", "--im"), ["--images", "--image-size"])

    def test_values_as_words_of_their_own_and_behind_an_equals_sign(self):
        self.assertEqual(self.complete("--optimizer", "la"), ["lars", "lamb"])
        self.assertEqual(self.complete("train", "--optimizer", "=", "rm"), ["rmsprop"])
        self.assertEqual(self.complete("train", "--optimizer", "="), self.complete("train", "--optimizer", ""))
        self.assertEqual(self.complete("train", "--optimizer=rm"), ["--optimizer=rmsprop"])
        self.assertEqual(self.complete("data", "synth", "--format", "p"), ["png"])
        self.assertEqual(self.complete("--batch", ""), [], "nobody can guess a number")
        self.assertEqual(self.complete("--on_nan", "ro"), ["rollback"], "underscores are hyphens")

    def test_files_and_folders(self):
        with tempfile.TemporaryDirectory(prefix="cputrain-test-") as folder:
            os.mkdir(os.path.join(folder, "my runs"))
            with open(os.path.join(folder, "my weights"), "w"):
                pass
            both = ["my runs", "my weights"]
            self.assertEqual(sorted(self.complete("--weights", "my", folder=folder)), both)
            self.assertEqual(self.complete("--weights=my", folder=folder)[0][:12], "--weights=my")
            self.assertEqual(self.complete("--out", "m", folder=folder), both[:1])
            self.assertEqual(sorted(self.complete("predict", "--partial", "my", folder=folder)), both)
            self.assertEqual(self.complete("report", "", folder=folder), both[:1])
            self.assertEqual(self.complete("train", "m", folder=folder), [], "train takes no words")


@unittest.skipUnless(shutil.which("zsh"), "zsh is not here")
class Zsh(unittest.TestCase):
    """A shell on a terminal, in which `cputrain` is a function that tells its words."""

    def setUp(self):
        child, self.terminal = pty.fork()
        if child == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": "/nowhere"})
        self.child = child
        self.addCleanup(self.end)
        self.type(f"PS1='' PS2='' fpath=({shlex.quote(os.path.join(MANUAL, 'zsh'))} $fpath); unsetopt beep\n"
                  "autoload -U compinit; compinit -u -D; cputrain() { print -r \"TOLD<${(j: :)@}>\" }; print REA''DY\n")
        self.read_until("READY")

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.child, 0)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, pattern):
        text, end = "", time.monotonic() + 60
        while not re.search(pattern, text):
            self.assertLess(time.monotonic(), end, text)
            if select.select([self.terminal], [], [], 1)[0]:
                text += os.read(self.terminal, 4096).decode(errors="replace")
        return re.search(pattern, text)

    def complete(self, line):
        self.type(f"cputrain {line}\t\n")
        return self.read_until(r"TOLD<([^>]*)>")[1].strip()

    def test_completes(self):
        for line, whole in (("predi", "predict"), ("data ch", "data check"), ("--augm", "--augment"),
                            ("train --resi", "train --resize"), ("train --resize=near", "train --resize=nearest"),
                            ("train --on-nan rollb", "train --on-nan rollback"),
                            ("data synth --format pn", "data synth --format png"),
                            ("bench allreduce --byt", "bench allreduce --bytes")):
            with self.subTest(line=line):
                self.assertEqual(self.complete(line), whole)


if __name__ == "__main__":
    unittest.main()

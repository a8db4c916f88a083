"""Help as a person sees it: its width, where it goes, colours of a terminal."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from program import PROGRAM, SMALL, ProgramTest

COMMANDS = ["train", "eval", "predict", "export", "data", "data check", "data info", "data pack", "data synth",
            "weights", "weights fetch", "weights list", "weights path", "bench", "bench step", "bench allreduce",
            "bench input", "bench kernels", "tune", "sweep", "simulate", "report", "info", "selftest"]
ESCAPE = "\x1b["


class Help(ProgramTest):
    def help(self, *words, **environment):
        done = self.expect(0, *words, **environment)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_the_width_is_that_of_columns_within_bounds(self):
        def width(columns):
            return max(map(len, self.help("train", "--help-all", COLUMNS=columns).splitlines()))
        self.assertLessEqual(width("5"), 60)
        self.assertGreater(width("100"), 80)
        self.assertLessEqual(width("500"), 120)
        self.assertEqual(width("nonsense"), width("80"))
        self.assertLessEqual(width("80"), 80)

    def test_the_overview_names_every_command_and_fits_80_columns(self):
        text = self.help("--help", COLUMNS="80")
        rows = dict(re.findall(r"^  (\w+) {2,}(\S.*)$", text, re.M))
        self.assertEqual(set(rows), {c.split()[0] for c in COMMANDS})
        for word in ("mpirun -np 4", "sweep --np", "--help-all", "CPUTRAIN_IMAGE_SIZE"):
            self.assertIn(word, text)
        self.assertEqual(text, self.help("help", COLUMNS="80"))

    def test_a_hint_is_one_line_on_standard_error(self):
        for words, says in ((["--init-learning-rate", "1"], "--lr"),
                            (["--gpus", "2"], "mpirun -np N cputrain --backend cuda"),
                            (["-v"], "--verbose 3"), (["--num-epochs", "3"], "--epochs")):
            done = self.expect(2, *words, says=[says])
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
        self.expect(0, "--image_size", "64", "--data", "synthetic:60", "--batch_size", "8", "--dry-run",
                    "--learning_rate", "0.01")

    def test_values_of_other_programs_are_answered(self):
        for words, says in ((["--optimizer", "AdamW"], "did you mean adamw?"),
                            (["--resize", "antialias"], "smooth (antialias)"), (["--resize", "Lanczos"], "bicubic?"),
                            (["--augment", "randaugment"], "rand:2:9"),
                            (["--augment", "flip,rand-m9-n2,erasing:0.25"],
                             "for rand-m9-n2 use rand:STEPS:MAGNITUDE, such as rand:2:9; for erasing:0.25 use cutout"),
                            (["--augment", "flip,RandomResizedCrop"], "did you mean crop?"),
                            (["--augment", "hflip"], "did you mean flip?"),
                            (["--augment", "flip,color_jitter:0.4"], "colour:0.4"),
                            (["--ema", "1"], "from 0 to 0.9999999"),
                            (["--freeze", "until="], "write until=LAYER"),
                            (["--freeze", "all-but-head,none"], "none stands alone")):
            with self.subTest(words):
                done = self.expect(2, *words, says=[says])
                self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
                self.assertLessEqual(done.stderr.count("did you mean"), 1)


class Colours(ProgramTest):
    """Warnings and errors are coloured on a terminal, and nothing else is."""

    def on_terminal(self, *words, TERM="xterm", **environment):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
        child = subprocess.Popen([PROGRAM, *words], cwd=self.folder, stdin=slave, stdout=slave, stderr=slave,
                                 env={**kept, "TERM": TERM, **environment})
        os.close(slave)
        text = b""
        try:
            while data := os.read(master, 4096):
                text += data
        except OSError:  # Linux: the other side is closed
            pass
        os.close(master)
        child.wait(timeout=120)
        return text.decode().replace("\r\n", "\n")

    def test_an_error_is_red(self):
        text = self.on_terminal("--batch", "0")
        self.assertRegex(text, r"^\x1b\[31mcputrain: --batch 0.*\x1b\[0m\n$")

    def test_the_word_warning_is_yellow(self):
        text = self.on_terminal(*SMALL, "--batch", "1000", "--steps", "1", "--out", "run", "--verbose", "2")
        self.assertIn("\x1b[33mwarning:\x1b[0m ", text)
        for line in text.splitlines():
            if ESCAPE in line:
                self.assertTrue(line.startswith("\x1b[33mwarning:\x1b[0m "), line)

    def test_help_has_the_terminals_width_and_no_colour(self):
        text = self.on_terminal("train", "--help-all")
        self.assertNotIn(ESCAPE, text)
        self.assertTrue(80 < max(map(len, text.splitlines())) <= 100)

    def test_who_wants_no_colour_gets_none(self):
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn(ESCAPE, self.on_terminal("--batch", "0", **environment))
        self.assertIn(ESCAPE, self.on_terminal("--batch", "0", NO_COLOR=""))

    def test_there_is_none_where_no_terminal_is(self):
        done = self.expect(2, "--batch", "0", TERM="xterm")
        self.assertNotIn(ESCAPE, done.stderr)


if __name__ == "__main__":
    unittest.main()

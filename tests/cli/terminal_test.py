"""Lines on a terminal: as wide as it is at each redraw, and standard output has Keras' lines alone."""
import fcntl
import itertools
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import unittest

from program import PROGRAM, SMALL, ProgramTest

REDRAW = re.compile(r" *\d+/\d+ (?:\[\S+\] )?- ETA")


def set_width(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


class Terminal(ProgramTest):
    def drawn(self, *words, widths, code=0):
        """What it writes to a terminal, in lines: a list for each of the widths, which the terminal has in turn for
        some redraws of the bar; behind the last one the program is interrupted, where another width follows."""
        ours, theirs = pty.openpty()
        set_width(theirs, widths[0])
        job = subprocess.Popen([PROGRAM, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=theirs,
                               stderr=theirs)
        os.close(theirs)
        texts = [""]
        while True:
            try:
                texts[-1] += os.read(ours, 65536).decode()
            except OSError:  # the program has closed its end
                break
            if sum(map(bool, map(REDRAW.match, re.split(r"[\r\n]+", texts[-1])))) < 4:
                continue
            if len(texts) < len(widths):
                set_width(ours, widths[len(texts)])
                texts.append("")
            elif code:
                job.send_signal(signal.SIGINT)
        os.close(ours)
        self.assertEqual(job.wait(), code, texts)
        return [re.split(r"[\r\n]+", text) for text in texts]

    def test_no_redraw_is_longer_than_the_line_is_then(self):
        widths = [40, 80, 120, 50]
        parts = self.drawn(*SMALL, "--image-size", "192", "--epochs", "999", "--out", "run", widths=widths, code=130)
        for columns, lines in zip(widths, parts):
            with self.subTest(columns):
                # One or two may have been on their way when the terminal was resized.
                redraws = [line for line in lines if REDRAW.match(line)][2:]
                self.assertLess(max(map(len, redraws)), columns)
                self.assertEqual({"accuracy" in line for line in redraws}, {columns >= 80}, redraws)
        for part, columns in ((parts[0], widths[0]), (parts[-1], widths[-1])):
            ends = [i for i, line in enumerate(part) if "s/step" in line][2:]  # as above
            for i in ends:
                epoch = itertools.takewhile(lambda line: line.startswith("  - "), part[i + 1:])
                lines = [part[i], *epoch]
                self.assertLess(max(map(len, lines)), columns)
                self.assertRegex(re.sub("  - ", " - ", "".join(lines)),
                                 r"\d+/3 - \d+s .* - loss: .* - accuracy: .* - img/s: ")

    def test_the_values_of_an_epoch_stay_whole_on_a_narrow_terminal(self):
        lines, = self.drawn(*SMALL, "--epochs", "1", "--limit-val", "10", "--out", "run", widths=[40])
        first = next(i for i, line in enumerate(lines) if "s/step" in line)
        rest = list(itertools.takewhile(lambda line: line.startswith("  - "), lines[first + 1:]))
        self.assertGreater(len(rest), 1)
        names = re.findall(r" - (\S+): [\d.e-]+", "".join([lines[first], *rest]))
        self.assertEqual(names, ["loss", "accuracy", "val_loss", "val_accuracy", "img/s"])
        self.assertLess(max(len(line.rstrip()) for line in [lines[first], *rest]), 40)

    def test_other_progress_fits_too(self):
        self.expect(0, "data", "synth", "data", "--images", "20", "--image-size", "16")
        lines, = self.drawn("data", "check", "data", widths=[20])
        progress = [line for line in lines if line.startswith("Checking ")]
        self.assertEqual(progress[-1], "Checking 20/20 - ETA: 0s")  # whole, as the last one is
        self.assertTrue(all(len(line) < 20 for line in progress[:-1]), progress)

    def notices(self, *words):
        """Lines before the first epoch, a list for each notice; warnings are none, nor are lines of progress."""
        lines, = self.drawn(*SMALL, "--epochs", "1", *words, widths=[64])
        found = []
        for line in filter(None, lines[:lines.index("Epoch 1/1")]):
            self.assertTrue(len(line) < 64 or " " not in line.strip(), line)
            if line.startswith("  "):
                found[-1].append(line.strip())
            else:
                found.append([line])
        return [" ".join(notice) for notice in found if not notice[0].startswith(("warning", "Decoding"))]

    def test_a_training_begins_with_few_notices_which_are_wrapped(self):
        self.expect(0, *SMALL, "--epochs", "1", "--out", "first")
        for words in ([], ["--weights", "first", "--freeze", "all-but-head", "--partial", "--schedule", "cosine"],
                      ["--augment", "flip,mixup:0.2", "--label-smoothing", "0.1", "--decode", "first"]):
            few = self.notices(*words)
            self.assertTrue(3 < len(few) <= 6, few)
            everything = self.notices(*words, "--verbose", "2")
            self.assertEqual([n for n in everything if n in few][:3], few[:3])
            self.assertTrue(any(n.startswith("Backend: ") for n in everything), everything)
            self.assertGreater(len(everything), len(few))
            for word in ("shared memory", "Exchange", "once per node"):
                self.assertNotIn(word, " ".join(everything))
        self.assertIn("(`cputrain info --model dogcat` lists the layers)", " ".join(few))  # whole again

    def test_standard_output_has_epoch_lines_alone(self):
        done = self.expect(0, *SMALL, "--epochs", "1", "--out", "run", "--profile", "--save-best",
                           says=["Model ", "Best epoch: 1 of 1 (val_loss ",
                                 "Weights: run/weights.safetensors (of the last",
                                 "Best weights: run/best.safetensors (of epoch 1)", "Run folder: run", "all else"])
        self.assertRegex(done.stdout, r"\AEpoch 1/1\n3/3 - \d+s - loss: .* - img/s: [\d.]+\n\Z")
        self.assertNotIn("\nEpoch", done.stderr)
        program = self.metrics("run", "summary")[0]["program"]
        parts = [program[part] for part in ("start_up", "training", "evaluation", "other")]
        self.assertAlmostEqual(sum(parts), program["seconds"], places=6)
        self.assertGreater(min(parts), 0)
        self.assertRegex(done.stderr.splitlines()[-1], rf"Program: {program['seconds']:.1f} s \(start-up ")


if __name__ == "__main__":
    unittest.main()

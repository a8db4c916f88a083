"""Commands with a time limit, of which nothing is left afterwards."""
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time

MARK = "GPU_DAY_MARK"  # in the environment of all that is started, so that it can be found again
POLITE_SECONDS = 2
PACK = "PACK"  # what logs call the folder that the pack was unpacked to
MOST_LOGGED = 100_000  # characters of a command's output at either end


class Done:
    """How a command ended. `cut`: it was ended since its time was over."""

    def __init__(self, code, text, seconds, cut):
        self.code, self.text, self.seconds, self.cut = code, text, seconds, cut

    def last_line(self):
        """The program's own last word, or else that of another process."""
        lines = [line.strip() for line in self.text.splitlines() if re.search(r"\w", line)]
        own = [line for line in lines if line.startswith("cputrain: ")]
        return (own or lines or ["it says nothing"])[-1]


class Running:
    """A command that was started. end() leaves nothing of it."""

    def __init__(self, commands, words, environment, folder):
        self.commands, self.words, self.mark = commands, [str(w) for w in words], commands.new_mark()
        self.output = tempfile.TemporaryFile()
        self.began, self.done = time.monotonic(), None
        try:
            self.process = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT, cwd=folder,
                env={**environment, MARK: self.mark}, start_new_session=True)
        except OSError as error:
            self.output.close()
            self.process, self.why_not = None, str(error)

    def wait(self, seconds):
        """Whether it ended in time."""
        if not self.process:
            return True
        try:
            self.process.wait(max(seconds, 0.1))
            return True
        except subprocess.TimeoutExpired:
            return False

    def members(self):
        """Processes that belong to it, by id, with their environment."""
        return dict(marked(self.mark))

    def end(self):
        """Its Done; where it still runs, it is ended."""
        self.done = self.done or self.ended()
        return self.done

    def ended(self):
        if not self.process:
            return Done(127, self.why_not, 0.0, False)
        cut = self.process.poll() is None
        if cut:
            signal_group(self.process.pid, signal.SIGTERM)
            self.wait(POLITE_SECONDS)
        seconds = time.monotonic() - self.began
        end_marked(self.mark)
        self.process.wait()
        self.output.seek(0)
        text = self.output.read().decode(errors="replace").replace(self.commands.folder, PACK)
        self.output.close()
        done = Done(self.process.returncode, text, seconds, cut)
        self.commands.note(self.words, done)
        return done


class Commands:
    """Starts commands and writes what they say into the log."""

    def __init__(self, log, folder):
        self.log, self.folder, self.lock = log, folder, threading.Lock()
        self.token, self.started = f"{os.getpid()}.{time.monotonic_ns()}", 0

    def new_mark(self):
        with self.lock:
            self.started += 1
            return f"{self.token}.{self.started}."

    def start(self, words, environment, folder):
        return Running(self, words, environment, folder)

    def run(self, words, seconds, environment, folder):
        running = self.start(words, environment, folder)
        try:
            running.wait(seconds)
        finally:
            done = running.end()
        return done

    def end_all(self):
        end_marked(self.token + ".")

    def note(self, words, done):
        how = f"cut after {done.seconds:.1f} s" if done.cut else f"exit {done.code} after {done.seconds:.1f} s"
        command = shlex.join(words).replace(self.folder, PACK)
        self.write(f"$ {command}\n{shortened(done.text)}[{how}]\n\n")

    def write(self, text):
        with self.lock, open(self.log, "a", errors="replace") as file:
            file.write(text)


def shortened(text):
    if text and not text.endswith("\n"):
        text += "\n"
    left_out = len(text) - 2 * MOST_LOGGED
    if left_out <= 0:
        return text
    return f"{text[:MOST_LOGGED]}\n[... {left_out} characters ...]\n{text[-MOST_LOGGED:]}"


def marked(mark):
    """(id, environment as bytes) of processes whose mark begins so. MPI's ranks leave their launcher's group and may
    outlive it, so neither groups nor parents tell all of them."""
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read()
        except OSError:
            continue
        if any(entry.startswith(wanted) for entry in environment.split(b"\0")):
            yield int(name), environment


def end_marked(mark):
    """A process that starts another program has no environment for a moment, so one look is not enough."""
    until, empty = time.monotonic() + 5, 0
    while empty < 2 and time.monotonic() < until:
        found = [process for process, _ in marked(mark)]
        empty = 0 if found else empty + 1
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def signal_group(group, number):
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass

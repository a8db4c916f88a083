"""What the steps of a day share: the device, the pack, time that is left, commands."""
import os
import shutil
import sys
import time

from results import Cut, Failed, Refused, Skipped

GOOD = (0,)
SKIPPED_CODE = 77


class Day:
    def __init__(self, bundle, commands, results, seconds, quick, emulated, began):
        self.bundle, self.commands, self.results = bundle, commands, results
        self.quick, self.emulated = quick, emulated
        self.end = began + seconds
        self.step_end = self.end
        self.environment = bundle.environment(emulated)
        self.work = bundle.path("work")
        os.makedirs(self.work, exist_ok=True)
        self.python = given_python() or shutil.which("python3") or sys.executable
        # Tools for a GPU are used on the emulated device where they are given: tests do.
        self.given_tools = os.environ.get("CPUTRAIN_DAY_TOOLS")
        self.predictions = bundle.read_json("expected", "predictions.json")
        self.compiling = []  # PyTorch beside other steps
        self.device = "the emulated device" if emulated else "a GPU"

    def left(self):
        """Seconds of the day."""
        return self.end - time.monotonic()

    def left_of_step(self):
        return min(self.step_end, self.end) - time.monotonic()

    def file(self, name):
        return os.path.join(self.work, name)

    def run(self, words, seconds=None, environment=None):
        """Runs a program of the pack, to the end of the step where no seconds are given."""
        seconds = self.left_of_step() if seconds is None else min(seconds, self.left_of_step())
        return self.commands.run(words, seconds, environment or self.environment, self.work)

    def start(self, words):
        return self.commands.start(words, self.environment, self.work)

    def cputrain(self, *words, ranks=0, seconds=None, variables=None):
        environment = {**self.environment, **variables} if variables else None
        return self.run([*self.launcher(ranks), self.program(), *words], seconds, environment)

    def program(self):
        return self.bundle.path("bin", "cputrain")

    def launcher(self, ranks):
        if not ranks:
            return []
        if not self.bundle.has("bin", "mpirun"):
            raise Skipped("the pack has no mpirun")
        return [self.bundle.path("bin", "mpirun"), "-np", str(ranks), "--bind-to", "none"]

    def tool(self, name):
        """Where a tool for GPUs is."""
        if self.given_tools and os.access(os.path.join(self.given_tools, name), os.X_OK):
            return os.path.join(self.given_tools, name)
        if self.emulated:
            raise Skipped("the device is emulated, and this tool looks at GPUs")
        found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
        if not found:
            raise Skipped(f"{name} is not on PATH")
        return found

    def under_tool(self, words):
        """A program of the pack as words for a tool, which itself shall not load the pack's libraries."""
        names = ("LD_LIBRARY_PATH", "CPUTRAIN_PLUGINS", "XDG_CACHE_HOME")
        return ["/usr/bin/env", *(f"{name}={self.environment[name]}" for name in names), *words]

    def tool_environment(self):
        """The tool itself has the libraries of the system; its program is given those of the pack."""
        kept = {name: value for name, value in self.environment.items() if name != "LD_LIBRARY_PATH"}
        return {**kept, **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}}


def given_python():
    """The caller's choice, or None."""
    given = os.environ.get("CPUTRAIN_DAY_PYTHON")
    if not given:
        return None
    found = shutil.which(given)
    if not found:
        raise Refused(2, f"CPUTRAIN_DAY_PYTHON={given} is no program that can be run (PyTorch is measured with it); "
                         "name a Python, or leave it unset for python3")
    return os.path.abspath(found)


def expect(done, what, good=GOOD):
    """The same Done, if it ended well."""
    if done.cut:
        raise Cut(f"{what} was cut after {done.seconds:.0f} s: it still ran")
    if done.code == SKIPPED_CODE:
        raise Skipped(done.last_line())
    if done.code not in good:
        raise Failed(f"{what} ended with {done.code}: {done.last_line()}")
    return done


def listed(names, most=4):
    """The first of many names."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")

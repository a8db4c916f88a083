"""Runs a command and writes what the machine's processors used meanwhile, by RAPL's counters, where Linux lets us read them.

    python3 energy.py FILE COMMAND...

FILE gets a line for each second: the time (Unix), and joules of all packages since the line before. It is added to, since
a sweep goes on where it was ended. Without counters (most virtual machines; and only root may read them) the command
alone is run. Source: Linux, Documentation/power/powercap/powercap.rst.
"""
import os
import re
import subprocess
import sys
import time

SECONDS = 1.0  # between two lines; counters go around in minutes
COVERED = 0.9  # part of a training's seconds that must have their lines


def number(*path):
    with open(os.path.join(*path)) as f:
        return int(f.read())


class Packages:
    """The counters of processors under a folder such as /sys/class/powercap, without the parts that they contain."""

    def __init__(self, folder):
        self.zones, self.last = [], []
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        for zone in (os.path.join(folder, name) for name in names if re.fullmatch(r"intel-rapl:\d+", name)):
            try:
                with open(os.path.join(zone, "name")) as f:
                    if not f.read().startswith("package"):
                        continue
                self.last.append(number(zone, "energy_uj"))
                self.zones.append((zone, number(zone, "max_energy_range_uj")))
            except OSError:  # only root may read it, or a container hides it
                self.zones, self.last = [], []
                return

    def joules(self):
        """Since the call before, or since the start. A counter that went around has gone around once."""
        now = [number(zone, "energy_uj") for zone, _ in self.zones]
        steps = [(new - old) % (most + 1) for new, old, (_, most) in zip(now, self.last, self.zones)]
        self.last = now
        return sum(steps) / 1e6


def watch(command, packages, file):
    """The command's exit code."""
    with subprocess.Popen(command) as child:
        code = None
        while code is None:
            try:
                code = child.wait(SECONDS)
            except subprocess.TimeoutExpired:
                pass
            except KeyboardInterrupt:  # the command has it, too, and ends as it sees fit
                continue
            file.write(f"{time.time():.1f} {packages.joules():.1f}\n")
            file.flush()
    return code if code >= 0 else 128 - code


def between(path, start, end):
    """Joules from one time to another, by the file at `path`; None where it does not have them all."""
    with open(path) as f:
        lines = [tuple(map(float, line.split())) for line in f]
    found = [joules for at, joules in lines if start < at <= end]
    return sum(found) if found and len(found) * SECONDS >= COVERED * (end - start) - 1 else None


def main():
    path, command = sys.argv[1], sys.argv[2:]
    packages = Packages("/sys/class/powercap")
    if not packages.zones:
        os.execvp(command[0], command)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a") as file:
        sys.exit(watch(command, packages, file))


if __name__ == "__main__":
    main()

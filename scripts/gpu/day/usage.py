"""What keeps the machine busy while the day goes on: its CPUs by step, its GPUs every two seconds."""
import contextlib
import datetime
import os
import time

from results import Skipped

SECONDS = 2
FIELDS = ["timestamp", "index", "utilization.gpu", "memory.used", "power.draw"]  # of nvidia-smi


def busy_seconds():
    """Seconds that all CPUs of the machine together have worked, whoever used them, by /proc/stat."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def figure(word):
    """None where the driver does not know it: `[N/A]`."""
    try:
        return float(word)
    except ValueError:
        return None


def samples_of(text):
    """(time, GPU, percent of the time in which a kernel ran, MiB in use, watts) of each whole line."""
    found = []
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        try:
            at = datetime.datetime.strptime(words[0], "%Y/%m/%d %H:%M:%S.%f").timestamp()
            found.append((at, int(words[1]), *map(figure, words[2:5])))
        except (ValueError, IndexError):
            continue  # what else it says, and the line at which it was ended
    return [sample for sample in found if len(sample) == len(FIELDS)]


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def highest(values):
    return max((value for value in values if value is not None), default=None)


class Usage:
    def __init__(self, day):
        self.steps, self.sampling = [], None
        with contextlib.suppress(Skipped):
            words = [day.tool("nvidia-smi"), f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits",
                     "-lms", str(1000 * SECONDS)]
            self.sampling = day.commands.start(words, dict(os.environ), day.work)

    @contextlib.contextmanager
    def of_step(self, name):
        began, busy = time.time(), busy_seconds()
        try:
            yield
        finally:
            ended = time.time()
            self.steps.append((name, began, ended, (busy_seconds() - busy) / max(ended - began, 1e-3)))

    def end(self):
        """By step: CPUs that worked, and of each GPU its share of the time, its memory at most, and watts."""
        samples = samples_of(self.sampling.end().text) if self.sampling else []
        gpus = sorted({gpu for _, gpu, *_ in samples})
        rows = []
        for name, began, ended, cpus in self.steps:
            of_step = [sample for sample in samples if began <= sample[0] < ended]
            rows.append({"step": name, "seconds": ended - began, "cpus": cpus, "gpus": [
                {"gpu": gpu, "percent": mean([s[2] for s in of_step if s[1] == gpu]),
                 "mib": highest([s[3] for s in of_step if s[1] == gpu]),
                 "watts": mean([s[4] for s in of_step if s[1] == gpu])} for gpu in gpus]})
        first = self.steps[0][1] if self.steps else 0
        return {"every_seconds": SECONDS, "steps": rows, "fields": ["second", "gpu", "percent", "mib", "watts"],
                "samples": [" ".join([f"{at - first:.0f}", str(gpu), *("-" if v is None else f"{v:g}" for v in rest)])
                            for at, gpu, *rest in samples]}

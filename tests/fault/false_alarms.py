"""Trainings that are well and do not get on: each is left alone by the watch for stalls, and what keeps it is named.

    python3 -B tests/fault/false_alarms.py [--table FILE] [--only KIND[,KIND]] [--minutes N] [--quick]

Some three hours of trainings of 1 to 96 ranks that lack CPUs, are under a quota, have a reader or a terminal that
pauses, a launcher that is stopped, are suspended as a whole, or have storage that stands for 75 s. With --stall end
of a few seconds each stands for many times that. None may end by itself, none may be told a cause that is not its own.
The table is a JSON file [false_alarms.json]: a case that is in it is not done again, so that a run which was broken off
goes on. --minutes ends it early, --quick does a few short cases and keeps no table. Ends with 1 where a case failed.
"""
import argparse
import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import termios
import time

from soak import PROGRAM, TINY, Job, Failure, made_pixels, mpirun, send, write_bmp

LIMITS = ["--stall", "warn=2,end=8"]
STANDS = 30     # seconds for which a training with these limits is kept from getting on
STORAGE = 75    # and storage, with the usual limits
STARTS = 1200   # seconds that many ranks may take to their first step
MEMORY = "/dev/shm"  # runs lie there, since a disk that others keep busy is told with reason
# Causes that may be told: any machine that has much to do lacks CPUs.
ANY = {"cpu", "slow"}
OWN = {"storage": {"storage", "hung"}, "launcher": {"launcher", "reader"}, "reader": {"reader"}, "terminal": {"reader"},
       "results": {"reader"}}
PIPE_BYTES = 4096


class Training(Job):
    """One in `folder`, and what it said: on standard error, and in stalls.jsonl."""

    def __init__(self, folder, ranks, words, launch=(), stdout=None, before=None):
        self.folder, self.log = folder, open(os.path.join(folder, "said"), "w+")
        self.process = subprocess.Popen(
            [*launch, *(mpirun(ranks) if ranks > 1 else []), PROGRAM, *words], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=self.log if stdout is None else stdout, stderr=self.log, preexec_fn=before,
            env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.supervise = self.process

    def said(self):
        with open(self.log.name, errors="replace") as f:
            return f.read()

    def read_causes(self):
        try:
            with open(os.path.join(self.folder, "run", "stalls.jsonl")) as f:
                lines = [json.loads(line) for line in f]
        except OSError:
            return []
        return sorted({line["cause"] for line in lines})

    def steps(self):
        try:
            return os.path.getsize(os.path.join(self.folder, "run", "metrics.jsonl"))
        except OSError:
            return 0

    def must_live(self):
        if self.has_ended():
            raise Failure(f"ended with {self.process.returncode}: {self.said()[-600:]}")

    def stand(self, seconds):
        end = time.time() + seconds
        while time.time() < end:
            self.must_live()
            time.sleep(0.2)

    def until(self, what, happens, seconds=STARTS):
        end = time.time() + seconds
        while not happens():
            self.must_live()
            if time.time() > end:
                raise Failure(f"{what}: not within {seconds} s: {self.said()[-600:]}")
            time.sleep(0.1)

    def get_further(self, seconds=STARTS):
        before = self.steps()
        self.until("it goes on", lambda: self.steps() > before, seconds)

    def everybody(self):
        return [*self.processes(False), *self.ranks().values()]

    def end(self):
        self.causes = self.read_causes()
        send(signal.SIGCONT, *self.everybody())
        super().end()
        self.process.wait()
        end = time.time() + 30
        while self.ranks() and time.time() < end:
            send(signal.SIGKILL, *self.ranks().values())
            time.sleep(0.1)
        self.log.close()


@contextlib.contextmanager
def training(folder, ranks, *words, limits=LIMITS, **options):
    usual = ["--model", "tiny.json", "--data", "data", "--threads", "1", "--epochs", "1000000", "--log-every", "1",
             "--verbose", "2", "--out", "run", *limits]
    started = Training(folder, ranks, [*usual, *words], **options)
    try:
        yield started
    finally:
        started.end()


def loops(count):
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]


def crowd(folder, ranks, kind):
    """More ranks than cores; `beside`: at the lowest priority, beside others that compute."""
    others = loops(4) if kind == "beside" else []
    try:
        with training(folder, ranks, launch=["nice", "-n", "19"] if others else []) as job:
            job.until("the first steps", lambda: job.steps() > 2000)
            job.stand(2 * STANDS)
            return job
    finally:
        for other in others:
            other.kill()
            other.wait()


class Group:
    """A control group with a quota, in percent of one CPU. Where none can be made: nothing."""

    def __init__(self, percent):
        self.folder, period = None, 100_000
        quota = max(1000, round(period * percent / 100))
        period = round(quota * 100 / percent)  # 1 ms is the least quota, 1 s the longest period
        name = f"cputrain-false-alarms-{os.getpid()}"
        for root, files in (("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": period, "cpu.cfs_quota_us": quota}),
                            ("/sys/fs/cgroup", {"cpu.max": f"{quota} {period}"})):
            folder = os.path.join(root, name)
            try:
                os.mkdir(folder)
                for file, value in files.items():
                    with open(os.path.join(folder, file), "w") as f:
                        f.write(str(value))
                self.folder = folder
                return
            except OSError:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)

    def join(self):
        with open(os.path.join(self.folder, "cgroup.procs"), "w") as f:
            f.write(str(os.getpid()))

    def remove(self):
        end = time.time() + 60
        while self.folder and time.time() < end:
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)
                return
            time.sleep(0.2)


def quota(folder, ranks, percent):
    """All processes together have so much of one CPU, once steps are made; before that nobody would wait for it."""
    group = Group(float(percent))
    try:
        with training(folder, ranks) as job:
            job.until("the first steps", lambda: job.steps() > 2000)
            everybody = job.everybody()
            if group.folder is None:  # a stand-in: they run for so much of each second, and are stopped for the rest
                end = time.time() + 4 * STANDS
                while time.time() < end:
                    job.must_live()
                    send(signal.SIGCONT, *everybody)
                    time.sleep(float(percent) / 100)
                    send(signal.SIGSTOP, *everybody)
                    time.sleep(1 - float(percent) / 100)
                return job
            for pid in everybody:
                with open(os.path.join(group.folder, "cgroup.procs"), "w") as f:
                    f.write(str(pid))
            job.stand(4 * STANDS)
            return job
    finally:
        group.remove()


def small_pipe():
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return read, write


def reader(folder, ranks, stands):
    """A pipe that nobody reads for a while: steps go on."""
    read, write = small_pipe()
    try:
        with training(folder, ranks, stdout=write) as job:
            os.close(write)
            job.until("the first steps", lambda: job.steps() > 2000)
            job.stand(float(stands))
            job.get_further(60)
            return job
    finally:
        os.close(read)


def terminal(folder, ranks, stands):
    """A terminal on which somebody presses Ctrl-S."""
    master, slave = pty.openpty()
    flags = termios.tcgetattr(slave)
    flags[0] |= termios.IXON
    termios.tcsetattr(slave, termios.TCSANOW, flags)
    try:
        with training(folder, ranks, stdout=slave) as job:
            job.until("the first steps", lambda: job.steps() > 2000)
            termios.tcflow(slave, termios.TCOOFF)
            job.stand(float(stands))
            job.get_further(60)
            termios.tcflow(slave, termios.TCOON)
            return job
    finally:
        os.close(master)
        os.close(slave)


def results(folder, ranks, stands):
    """`predict --csv -` into a pager that stands: all of it comes, once it is read."""
    with training(folder, 1) as job:
        job.until("the first steps", lambda: job.steps() > 2000)
        send(signal.SIGUSR1, *job.ranks().values())
        job.process.wait(60)
    os.rename(os.path.join(folder, "run"), os.path.join(folder, "trained"))
    read, write = small_pipe()
    words = ["predict", "--weights", "trained/weights.safetensors", "--threads", "1", "--csv", "-", *LIMITS]
    job = Training(folder, ranks, [*words, "data/cat", "data/dog"], stdout=write)
    os.close(write)
    try:
        job.stand(float(stands))
        with open(read, "rb") as whole:
            lines = whole.read().count(b"\n")
        if job.process.wait(60) != 0 or lines != 401:
            raise Failure(f"ended with {job.process.returncode} after {lines} of 401 lines: {job.said()[-600:]}")
        return job
    finally:
        job.end()


def launcher(folder, ranks, stands):
    with training(folder, ranks) as job:
        job.until("the first steps", lambda: job.steps() > 2000)
        send(signal.SIGSTOP, *job.processes(False))
        job.stand(float(stands))
        send(signal.SIGCONT, *job.processes(False))
        job.get_further()
        return job


def suspended(folder, ranks, when):
    """All processes stand, as those of a machine that sleeps, in their steps or in their start."""
    limit = max(25, 2 * ranks)  # so many may take longer on a busy machine
    with training(folder, ranks, limits=["--stall", f"warn=2,end=8,start={limit}"]) as job:
        if when == "steps":
            job.until("the first steps", lambda: job.steps() > 2000)
        else:
            job.until("ranks", lambda: len(job.ranks()) == ranks)
        everybody = job.everybody()
        send(signal.SIGSTOP, *everybody)
        job.stand(limit + 5)
        send(signal.SIGCONT, *reversed(everybody))
        job.get_further()
        return job


def storage(folder, ranks, what):
    """A file system of its own that is frozen, as one whose server does not answer."""
    disk, image = os.path.join(folder, "run"), os.path.join(folder, "image")
    os.mkdir(disk)
    with open(image, "wb") as f:
        f.truncate(64 << 20)
    for command in (["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, disk]):
        if subprocess.run(command, capture_output=True).returncode != 0:
            return None
    try:
        with training(folder, ranks, "--checkpoint-every", what, limits=["--stall", "warn=10"]) as job:
            job.until("the first steps", lambda: job.steps() > 2000)
            subprocess.run(["fsfreeze", "-f", disk], check=True)
            try:
                job.stand(STORAGE)
            finally:
                subprocess.run(["fsfreeze", "-u", disk], check=True)
            job.get_further()
            job.until("storage is named", lambda: "storage" in job.read_causes(), 60)
            return job
    finally:
        subprocess.run(["umount", "-l", disk])


KINDS = {f.__name__: f for f in (crowd, quota, reader, terminal, results, launcher, suspended, storage)}
PLAN = [*(("crowd", ranks, kind) for ranks in (1, 2, 4, 8, 16, 32, 96) for kind in ("alone", "beside")),
        *(("quota", ranks, percent) for percent in ("0.5", "1", "2", "5", "10", "25", "50") for ranks in (1, 2, 4, 8)),
        *((kind, ranks, stands) for kind in ("reader", "terminal", "results") for ranks in (1, 2)
          for stands in ("30", "90")),
        *(("launcher", ranks, stands) for ranks in (2, 4, 8) for stands in ("30", "90")),
        *(("suspended", ranks, when) for ranks in (1, 2, 4, 8, 32, 96) for when in ("steps", "start")),
        *(("storage", ranks, every) for ranks in (1, 2, 4) for every in ("50", "1000"))]
QUICK = [("results", 1, "9"), ("reader", 1, "9")]


def prepare(folder):
    with open(os.path.join(folder, "tiny.json"), "w") as f:
        json.dump(TINY, f)
    for label, name in enumerate(("cat", "dog")):
        os.makedirs(os.path.join(folder, "data", name))
        for i in range(200):
            write_bmp(os.path.join(folder, "data", name, f"{i}.bmp"), made_pixels(1000 * label + i, 20))


def done(kind, ranks, how):
    """A row of the table: what was said, and what is wrong with that."""
    began, row = time.time(), {"kind": kind, "ranks": ranks, "how": how}
    place = MEMORY if os.path.isdir(MEMORY) else None
    with tempfile.TemporaryDirectory(
            prefix="cputrain-false-alarms-", dir=place, ignore_cleanup_errors=True) as folder:
        os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
        prepare(folder)
        try:
            job = KINDS[kind](folder, ranks, how)
            if job is None:
                return {**row, "skipped": True}
            row["causes"] = job.causes
            wrong = sorted(set(row["causes"]) - ANY - OWN.get(kind, set()))
            row["fault"] = f"wrong causes: {', '.join(wrong)}: {last_said(job)}" if wrong else ""
        except (Failure, subprocess.TimeoutExpired) as failure:
            row["fault"] = str(failure)
    return {**row, "seconds": round(time.time() - began)}


def last_said(job):
    return "\n".join(line for line in job.said().splitlines() if "further" in line or "ends" in line)[-900:]


def print_table(rows):
    print(f"{'kind':10} {'cases':>5} {'ended or wrong':>14} {'skipped':>7} {'seconds':>7}  causes told")
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        if own:
            print(f"{kind:10} {len(own):5} {sum(bool(r.get('fault')) for r in own):14} "
                  f"{sum('skipped' in r for r in own):7} {sum(r.get('seconds', 0) for r in own):7}  "
                  f"{', '.join(sorted({c for r in own for c in r.get('causes', ())})) or '-'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default="false_alarms.json")
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rows, end = [], time.time() + 60 * options.minutes
    if os.path.exists(options.table) and not options.quick:
        with open(options.table) as f:
            rows = json.load(f)
    known = {(row["kind"], row["ranks"], row["how"]) for row in rows}
    only = options.only.split(",")
    for case in QUICK if options.quick else PLAN:
        if case in known or case[0] not in only or time.time() > end:
            continue
        rows.append(done(*case))
        print(rows[-1], flush=True)
        if not options.quick:
            with open(options.table + ".new", "w") as f:
                json.dump(rows, f, indent=1)
            os.replace(options.table + ".new", options.table)
    print_table(rows)
    return 1 if any(row.get("fault") for row in rows) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())

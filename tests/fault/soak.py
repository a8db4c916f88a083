"""A training that things happen to, for an hour: it ends with the bits of one that was left alone, and nobody helps.

    python3 -B tests/fault/soak.py [--minutes 60] [--seed N] [--alone SECONDS]

Trains a small network alone, then under scripts/supervise, and again until the time is over. Ranks and the launcher
are killed, are stopped and go on, and are asked to end; the disk fills up for a while (as root). Every other training
is one on two hosts (scripts/two_hosts), of which one may die, or its link be cut. A seed draws the same misfortunes
again. What happens is printed when it does, a summary at the end. Ends with 1, and leaves the folder, where a training
did not end by itself within its time, or with other bits.
"""
import argparse
import collections
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("CPUTRAIN", os.path.join(ROOT, "cputrain"))
os.environ.setdefault("CPUTRAIN_MPIRUN", "mpirun --allow-run-as-root --oversubscribe --bind-to none")
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))

from images import made_pixels, write_bmp  # noqa: E402
from program import PROGRAM, mpirun  # noqa: E402
from tiny import TINY  # noqa: E402

RANKS = 4
PATIENCE = 120  # seconds without a new line of metrics.jsonl after which a training stands still
STALL = 6  # --stall end, where the program has it
DISK = "64m"  # of the file system that runs are on
RUN = "runs/run"
WORDS = ["--model", "tiny.json", "--data", "data", "--threads", "1", "--batch", "16", "--reproducible", "--log-every",
         "10", "--optimizer", "adam", "--augment", "flip"]
TWO_HOSTS = [os.path.join(ROOT, "scripts", "two_hosts"), "--ranks", str(RANKS // 2)]


def succeeds(*command):
    return subprocess.run(command, capture_output=True).returncode == 0


class Failure(Exception):
    """What the soak is there to find."""


class Job:
    """A training under scripts/supervise in `folder`, its run in RUN."""

    def __init__(self, folder, launch, words):
        self.folder, self.log = folder, open(os.path.join(folder, "supervise.log"), "a+")
        self.supervise = subprocess.Popen(
            [os.path.join(ROOT, "scripts", "supervise"), "--watch", "none", "--", *launch, PROGRAM, *words, "--out",
             RUN],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"})

    def has_ended(self):
        return self.supervise.poll() is not None

    def processes(self, of_program):
        """Those that work in the folder: ranks by their numbers, or launchers."""
        found = {}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                if os.path.realpath(f"/proc/{pid}/cwd") != os.path.realpath(self.folder):
                    continue
                program = os.path.realpath(f"/proc/{pid}/exe")
                if of_program and program == os.path.realpath(PROGRAM):
                    with open(f"/proc/{pid}/environ", "rb") as f:
                        words = dict(v.split(b"=", 1) for v in f.read().split(b"\0") if b"=" in v)
                    found[int(words.get(b"OMPI_COMM_WORLD_RANK", words.get(b"PMI_RANK", b"0")))] = pid
                elif not of_program and os.path.basename(program) in ("mpirun", "mpiexec", "orterun", "prterun",
                                                                      "mpiexec.hydra"):
                    found[pid] = pid
            except OSError:
                continue  # it has ended
        return found

    def ranks(self):
        return self.processes(True)

    def end(self):
        """Ends what a soak that failed has left."""
        for pid in (self.supervise.pid, *self.processes(False), *self.ranks().values()):
            send(signal.SIGKILL, pid)


def send(number, *pids):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def host_of(pid):
    return os.readlink(f"/proc/{pid}/ns/uts")


class Misfortunes:
    """Each happens to a training whose ranks are at work, and says what it did."""

    def __init__(self, draw, stalls_end, small_disk):
        self.draw, self.stalls_end, self.small_disk = draw, stalls_end, small_disk

    def kinds(self, on_hosts):
        kinds = [self.kill_rank, self.kill_rank, self.kill_all, self.kill_launcher, self.stop_rank, self.stop_rank,
                 self.ask_rank]
        return kinds + [self.fill_disk] * self.small_disk + [self.lose_host, self.cut_link, self.cut_link] * on_hosts

    def any_rank(self, job):
        """Number and process; ranks may just have ended, and supervise goes on without those that were lost."""
        ranks = job.ranks()
        number = self.draw.choice(sorted(ranks) or [0])
        return number, ranks.get(number)

    def kill_rank(self, job):
        number, pid = self.any_rank(job)
        send(signal.SIGKILL, *filter(None, [pid]))
        return f"rank {number} is killed"

    def kill_all(self, job):
        send(signal.SIGKILL, *job.ranks().values())
        return "all ranks are killed"

    def kill_launcher(self, job):
        send(signal.SIGKILL, *job.processes(False))
        return "the launcher is killed"

    def ask_rank(self, job):
        number, pid = self.any_rank(job)
        kind = self.draw.choice((signal.SIGUSR1, signal.SIGTERM))
        send(kind, *filter(None, [pid]))
        return f"rank {number} gets {kind.name}"

    def seconds(self):
        """Some end by --stall end, where there is one."""
        return self.draw.uniform(0.5, 2 * STALL if self.stalls_end else 4)

    def stop_rank(self, job):
        (number, pid), seconds = self.any_rank(job), self.seconds()
        send(signal.SIGSTOP, *filter(None, [pid]))
        time.sleep(seconds)
        send(signal.SIGCONT, *filter(None, [pid]))
        return f"rank {number} is stopped for {seconds:.1f} s"

    def fill_disk(self, job):
        seconds = self.draw.uniform(0.5, 4)
        ballast = os.path.join(job.folder, RUN, "ballast")
        try:
            with open(ballast, "wb", buffering=0) as f:
                while True:
                    f.write(bytes(1 << 16))
        except OSError:
            pass
        time.sleep(seconds)
        os.remove(ballast)
        return f"the disk is full for {seconds:.1f} s"

    def lose_host(self, job):
        number, pid = self.any_rank(job)
        lost = [] if pid is None else of_host(pid)
        send(signal.SIGKILL, *lost)
        return f"the host of rank {number} dies"

    def cut_link(self, job):
        (number, pid), seconds = self.any_rank(job), self.seconds()
        inside = ["nsenter", "-t", str(pid), "-n", "sh", "-c",
                  f"ip link set eth0 down; sleep {seconds}; ip link set eth0 up"]
        done = pid is not None and succeeds(*inside)
        return f"the link of rank {number}'s host is cut for {seconds:.1f} s" + ("" if done else " (it was gone)")


def of_host(of):
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if host_of(pid) == host_of(of):
                found.append(pid)
        except OSError:
            continue
    return found


class Soak:
    def __init__(self, options, folder, small_disk):
        self.folder, self.small_disk, self.draw = folder, small_disk, random.Random(options.seed)
        self.began, self.options, self.until = time.time(), options, 0
        self.counts, self.restarts, self.job = collections.Counter(), 0, None
        said = subprocess.run([PROGRAM, "train", "--help-all"], capture_output=True, text=True).stdout
        self.words = [*WORDS, *(["--stall", f"end={STALL}"] if "--stall " in said else [])]
        self.misfortunes = Misfortunes(self.draw, "--stall " in said, small_disk)
        self.has_hosts = succeeds(*TWO_HOSTS, "true")

    def say(self, text):
        print(f"{time.time() - self.began:7.1f} s  {text}", flush=True)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def lines(self, run, kind):
        try:
            with open(self.path("runs", run, "metrics.jsonl")) as f:
                return [line for line in map(json.loads, filter(lambda t: t.endswith("\n"), f)) if line["type"] == kind]
        except OSError:
            return []

    def prepare(self):
        with open(self.path("tiny.json"), "w") as f:
            json.dump(TINY, f)
        for label, name in enumerate(("cat", "dog")):
            os.makedirs(self.path("data", name))
            for i in range(200):
                write_bmp(self.path("data", name, f"{i}.bmp"), made_pixels(1000 * label + i, 20))

    def alone(self, launch, words, epochs, run):
        began = time.time()
        done = subprocess.run([*launch, PROGRAM, *words, "--epochs", str(epochs), "--out", f"runs/{run}"], text=True,
                              cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode != 0:
            raise Failure(f"a training that was left alone ended with {done.returncode}: {done.stderr[-1000:]}")
        return time.time() - began

    def leave_one_alone(self, name, launch):
        """How long a training is on these hosts; then one that nothing happens to, on one host: the same bits."""
        few, short, whole = 10, "short on " + name, "whole of " + name
        self.alone(launch, self.words, few, short)
        lines = self.lines(short, "epoch")
        each = statistics.median(line["seconds"] + line.get("val_seconds", 0) for line in lines)
        words = [*self.words, "--checkpoint-every", str(max(1, round(0.7 / each * lines[0]["steps"])))]
        epochs = max(few, round(self.options.alone / each))
        seconds = self.alone(mpirun(RANKS), words, epochs, whole)
        self.say(f"left alone, the {epochs} epochs for {name} take {seconds:.0f} s on one")
        return name, launch, [*words, "--epochs", str(epochs)], self.end_of(whole)

    def end_of(self, run):
        """What must be the same: weights, and the losses of all steps and epochs."""
        losses = [[(line.get("step"), line.get("epoch"), line.get("loss"), line.get("val_loss"))
                   for line in self.lines(run, kind)] for kind in ("step", "epoch")]
        return [line["weights_hash"] for line in self.lines(run, "summary")], losses

    def newest(self):
        metrics = self.path(RUN, "metrics.jsonl")
        return os.stat(metrics).st_mtime if os.path.exists(metrics) else self.began

    def watch(self, seconds):
        """Until the same ranks were at work for so long; whether the training goes on then."""
        worked, now, ranks = 0, time.time(), {}
        moved = now
        while worked < seconds and not self.job.has_ended():
            time.sleep(0.1)
            before, now = now, time.time()  # to look for processes takes its time
            seen, ranks = ranks, self.job.ranks()
            if ranks and ranks == seen:
                worked += now - before
            moved = max(moved, self.newest())
            if now - moved > PATIENCE:
                raise Failure(f"the training stands still since {PATIENCE} s")
        return not self.job.has_ended()

    def train(self, number, name, launch, words, end):
        shutil.rmtree(self.path(RUN), ignore_errors=True)
        self.say(f"training {number}, {name}")
        self.job = Job(self.folder, launch, words)
        kinds = self.misfortunes.kinds(launch is TWO_HOSTS)
        while self.watch(self.draw.uniform(0.3, 8) if time.time() < self.until else PATIENCE):
            if time.time() < self.until:
                kind = self.draw.choice(kinds)
                self.counts[kind.__name__.replace("_", " ")] += 1
                step = (self.lines("run", "step") or [{"step": 0}])[-1]["step"]
                self.say(f"  step {step}: {kind(self.job)}")
        self.check(end)

    def check(self, end):
        code = self.job.supervise.returncode
        self.job.log.seek(0)
        said = self.job.log.read()
        self.restarts = said.count("supervise: exit code")
        if code != 0:
            raise Failure(f"supervise ended with {code}: {said[-2000:]}")
        if self.end_of("run") != end:
            raise Failure("other bits than those of the training that was left alone")
        left = [*self.job.ranks(), *(f for f in os.listdir(self.path(RUN)) if "tmp" in f)]
        if left:
            raise Failure(f"left behind: {left}")
        self.say("  ended, the same bits")

    def run(self):
        os.makedirs(self.path("runs"))
        if self.small_disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", self.path("runs")], check=True)
        self.prepare()
        places = [self.leave_one_alone("one host", mpirun(RANKS))]
        if self.has_hosts:
            places.append(self.leave_one_alone("two hosts", TWO_HOSTS))
        trainings, self.until = 0, time.time() + 60 * self.options.minutes
        try:
            while trainings == 0 or time.time() < self.until:
                trainings += 1
                self.train(trainings, *places[(trainings - 1) % len(places)])
        finally:
            if self.job:
                self.job.end()
        return trainings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--alone", type=float, default=30, help="about how long a training takes [30]")
    options = parser.parse_args()
    inside = "SOAK_HAS_MOUNTS" in os.environ
    if not inside and succeeds("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"):
        os.environ["SOAK_HAS_MOUNTS"] = "yes"
        flags = [f"--{name}={value}" for name, value in vars(options).items()]
        os.execvp("unshare", ["unshare", "-m", sys.executable, "-B", __file__, *flags])
    os.environ.pop("SOAK_HAS_MOUNTS", None)
    folder = tempfile.mkdtemp(prefix="cputrain-soak-")
    os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
    soak = Soak(options, folder, small_disk=inside)
    soak.say(f"seed {options.seed}, {options.minutes:g} minutes in {folder}" +
             ("" if inside else "; no disk fills up, since this user cannot mount") +
             ("" if soak.has_hosts else "; no links are cut, since namespaces cannot be made"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        trainings = soak.run()
    except Failure as failure:
        soak.say(f"FAILED: {failure}; seed {options.seed}, see {folder}")
        return 1
    if soak.small_disk:
        subprocess.run(["umount", soak.path("runs")], check=True)
    shutil.rmtree(folder)
    what = ", ".join(f"{kind} {count}" for kind, count in sorted(soak.counts.items()))
    soak.say(f"trainings: {trainings}, all with the same bits; restarts: {soak.restarts}; misfortunes: "
             f"{sum(soak.counts.values())} ({what})")
    return 0


if __name__ == "__main__":
    sys.exit(main())

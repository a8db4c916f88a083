"""Training on two hosts is training on one:  two_hosts_test.py agent|ssh

The hosts are those of scripts/two_hosts, reached through its launch agent or through ssh. Exits with 77 and
the reason where this machine cannot have them.
"""
import contextlib
import glob
import os
import signal
import subprocess
import sys
import time

import two_hosts
from program import PROGRAM, ProgramTest, mpirun

TWO_HOSTS = [two_hosts.SCRIPT]
WORDS = ["train", "--model", "dogcat", "--image-size", "64", "--data", "synthetic:120", "--limit-val", "8",
         "--batch", "10", "--steps", "6", "--optimizer", "sgd", "--lr", "0.01", "--log-every", "1"]

# Name, further flags, and how far losses may be from those of four ranks on one host, relatively. None: the
# weights have the same bits.
RUNS = [
    ("default", [], 1e-3),
    ("reproducible", ["--reproducible"], None),
    ("double", ["--backend", "reference", "--precision", "double", "--batch", "5", "--limit-train", "30"], 1e-9),
    *[(name, ["--allreduce", name], 1e-3) for name in ("mpi", "ring", "hierarchical", "ps")],
]


def run(command, folder=None):
    return subprocess.run(command, cwd=folder, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})


class TwoHosts(ProgramTest):
    def run_here(self, command, code=0):
        done = run(command, self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def losses(self, name):
        epoch = self.metrics(name, "epoch")[-1]
        return [step["loss"] for step in self.metrics(name, "step")] + [epoch["val_loss"]]

    def assert_same_training(self, name, tolerance):
        one, two = self.losses("one" + name), self.losses("two" + name)
        self.assertEqual(len(one), 7)
        self.assertEqual(len(two), 7)
        for a, b in zip(one, two):
            self.assertLessEqual(abs(a - b), (tolerance or 0) * abs(a), f"{one} {two}")
        if tolerance is None:
            hashes = [self.metrics(kind + name, "summary")[-1]["weights_hash"] for kind in ("one", "two")]
            self.assertEqual(hashes[0], hashes[1])

    def test_two_by_two_ranks_train_as_four_on_one_host(self):
        for name, flags, tolerance in RUNS:
            with self.subTest(name):
                self.run_here([*mpirun(4), PROGRAM, *WORDS, *flags, "--out", "one" + name])
                done = self.run_here([*TWO_HOSTS, PROGRAM, *WORDS, *flags, "--out", "two" + name])
                self.assertRegex(done.stderr, r"2 hosts \(host1-\d+, host2-\d+\), each: 2 ranks")
                environment = self.json_of("two" + name, "environment.json")
                self.assertEqual(environment["ranks"], 4)
                self.assertRegex(environment["machine"]["host"], r"host1-\d+")
                self.assert_same_training(name, tolerance)

    def test_hosts_have_names_addresses_and_memory_of_their_own(self):
        show = 'touch "/dev/shm/$(hostname)"; sleep 0.5; echo "$(hostname)" $(ls /dev/shm) ' \
               '$(ip -4 -br addr show eth0)'
        lines = self.run_here([*TWO_HOSTS, "--ranks", "1", "sh", "-c", show]).stdout
        seen = [line.split() for line in lines.splitlines()]
        self.assertEqual(len(seen), 2)
        self.assertNotEqual(seen[0][0], seen[1][0])
        self.assertNotEqual(seen[0][-1], seen[1][-1])
        for words in seen:
            self.assertEqual(words[1:-3], words[:1])  # nobody else's file is in /dev/shm

    def test_links_are_shaped(self):
        command = [*TWO_HOSTS, "--ranks", "1", "--rate", "100mbit", "tc", "qdisc", "show", "dev", "eth0"]
        done = run(command)
        if done.returncode == 77:
            self.skipTest(done.stderr)
        self.assertEqual(done.stdout.count("rate 100Mbit"), 2, done.stdout + done.stderr)

    def test_exit_codes(self):
        self.run_here([*TWO_HOSTS, "--ranks", "1", "sh", "-c", "exit 3"], code=3)
        for words in (["--ranks", "0", "true"], ["--rate", "much", "true"], ["--hosts", "3", "true"], ["--ranks"],
                      []):
            self.run_here([*TWO_HOSTS, *words], code=2)

    def test_nothing_outlives_it(self):
        links = run(["ip", "-br", "link"]).stdout
        word = f"{os.getpid()}.25"  # seconds that nobody else sleeps
        for how in (signal.SIGTERM, signal.SIGKILL):
            job = subprocess.Popen([*TWO_HOSTS, "sleep", word], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(job.kill)
            self.wait_until(lambda: sleepers(word) == 4)
            job.send_signal(how)
            job.wait(timeout=30)
            self.wait_until(lambda: sleepers(word) == 0)
        self.assertEqual(run(["ip", "-br", "link"]).stdout, links)

    def test_a_host_that_dies_loses_no_work(self):
        """As a virtual machine that is taken away: all of its processes are gone at once. One host goes on alone."""
        words = ["--reproducible", "--checkpoint-every", "3", "--epochs", "5"]
        train = [PROGRAM, *[w for w in WORDS if w not in ("--steps", "6")], *words]
        self.run_here([*mpirun(2), *train, "--out", "whole"])
        job = subprocess.Popen([*TWO_HOSTS, *train, "--out", "run"], cwd=self.folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.addCleanup(job.kill)
        self.wait_until(lambda: glob.glob(self.path("run/ckpt-*/MANIFEST")) or job.poll() is not None)
        doomed = processes_of_the_host_of(rank=3, folder=self.folder)
        self.assertTrue(doomed, "no such rank was found, or the training had ended")
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):  # a helper of the launcher that has just ended
                os.kill(pid, signal.SIGKILL)
        self.assertNotEqual(job.wait(240), 0)
        done = self.run_here([*mpirun(2), *train, "--out", "run", "--resume", "auto"])
        self.assertIn("Going on from", done.stderr)
        ends = [self.metrics(name, "summary")[-1]["weights_hash"] for name in ("run", "whole")]
        self.assertEqual(*ends)
        steps = [[m["step"] for m in self.metrics(name, "step")] for name in ("run", "whole")]
        self.assertEqual(*steps)

    def wait_until(self, condition):
        deadline = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)


def sleepers(word):
    """How many processes run `sleep word`."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                count += f.read().split(b"\0")[:2] == [b"sleep", word.encode()]
        except OSError:
            pass  # it has ended
    return count


def processes_of_the_host_of(rank, folder):
    """All processes with the host name of a rank that works in the folder."""
    names, host = {}, None
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            names[int(pid)] = os.readlink(f"/proc/{pid}/ns/uts")
            with open(f"/proc/{pid}/environ", "rb") as f:
                is_rank = f"OMPI_COMM_WORLD_RANK={rank}".encode() in f.read().split(b"\0")
            if is_rank and os.path.samefile(f"/proc/{pid}/cwd", folder):
                host = names[int(pid)]
        except OSError:
            continue
    return [pid for pid, name in names.items() if name == host]


def main():
    if sys.argv.pop(1) == "ssh":
        TWO_HOSTS.append("--ssh")
        del RUNS[2:]  # what travels is the same
    return two_hosts.main(TWO_HOSTS)


if __name__ == "__main__":
    sys.exit(main())

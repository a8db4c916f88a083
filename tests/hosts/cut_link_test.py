"""A link between two hosts that is cut and mended, and one that stays cut. The hosts are those of scripts/two_hosts;
exits with 77 and the reason where this machine cannot have them."""
import json
import os
import re
import subprocess
import sys
import time

import two_hosts
from program import PROGRAM, wait_until

TWO_HOSTS = [two_hosts.SCRIPT, "--ranks", "1"]
TRAIN = [PROGRAM, "--image-size", "64", "--data", "synthetic:40", "--limit-val", "0", "--batch", "10", "--epochs",
         "100000", "--log-every", "1", "--threads", "1", "--stall", "warn=2,end=30", "--out", "run"]


class Links(two_hosts.HostsTest):
    def one_way(self, job, host, cut):
        """What a host sends to the other one goes to nobody."""
        to = f"10.77.0.1{3 - host}"
        words = ("replace", to, "lladdr", "02:00:00:00:00:01", "nud", "permanent") if cut else ("del", to)
        self.ip(job, "-n", f"host{host}-{job.pid}", "neigh", *words, "dev", "eth0")

    def stalls(self):
        if not os.path.exists(self.path("run/stalls.jsonl")):
            return []
        with open(self.path("run/stalls.jsonl")) as lines:
            return [json.loads(line) for line in lines]

    def wait_for_both(self, event, seen):
        """What each rank has said behind the first `seen` lines, by rank. On a busy machine it first says that ranks
        lack a CPU."""
        def said():
            return {e["by"]: e for e in self.stalls()[seen:]
                    if e["event"] == event and (event != "stall" or e["cause"] not in ("cpu", "slow"))}
        wait_until(lambda: len(said()) == 2)
        return {by: (e["cause"], e["ranks"], e["hosts"][0].split("-")[0]) for by, e in said().items()}

    def log_has(self, pattern):
        """What ranks write comes by way of the launcher, later than their files."""
        return re.search(pattern, self.text_of("log"))

    def test_a_cut_link_is_named_on_both_sides(self):
        log = open(self.path("log"), "w+")
        job = subprocess.Popen([*TWO_HOSTS, *TRAIN], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.addCleanup(log.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        both = {0: ("silent", [1], "host2"), 1: ("silent", [0], "host1")}
        cuts = [("both ways", lambda cut: self.link(job, "down" if cut else "up"), both),
                ("to host 2", lambda cut: self.one_way(job, 1, cut), {**both, 0: ("deaf", [1], "host2")}),
                ("to host 1", lambda cut: self.one_way(job, 2, cut), {**both, 1: ("deaf", [0], "host1")})]
        wait_until(lambda: self.steps() >= 3 or job.poll() is not None)
        for name, cut, expected in cuts:
            with self.subTest(name):
                seen = len(self.stalls())
                cut(True)
                self.assertEqual(self.wait_for_both("stall", seen), expected)
                before = self.steps()
                cut(False)
                wait_until(lambda: self.steps() > before + 3)  # as if nothing had been
                self.wait_for_both("goes_on", seen)
        seen = len(self.stalls())
        self.link(job, "down")
        began = time.time()
        self.assertEqual(self.wait_for_both("end", seen), both)
        self.assertLess(time.time() - began, 90)
        wait_until(lambda: self.log_has(r"so the job ends: rank 1 on host2-\d+ does not answer"))


def main():
    if os.geteuid() != 0:
        print("only root can cut a link of another namespace")
        return 77
    return two_hosts.main(TWO_HOSTS)


if __name__ == "__main__":
    sys.exit(main())

"""Tests that need scripts/two_hosts."""
import os
import subprocess
import unittest

from program import ProgramTest, ROOT

SCRIPT = os.path.join(ROOT, "scripts", "two_hosts")


class HostsTest(ProgramTest):
    """What happens to the hosts of a job, which is a process of the script."""

    def network_of(self, job):
        """The process of scripts/two_hosts that holds the bridge between the hosts."""
        mark = f"CPUTRAIN_TWO_HOSTS={job.pid}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as variables, open(f"/proc/{pid}/cmdline", "rb") as words:
                    if mark in variables.read().split(b"\0") and b"/two_hosts" in words.read().split(b"\0unshare")[0] \
                            and os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"):
                        return pid
            except OSError:
                continue
        self.fail("the hosts are gone")

    def ip(self, job, *words):
        subprocess.run(["nsenter", "--target", self.network_of(job), "--net", "--mount", "ip", *words], check=True)

    def link(self, job, state):
        """The link of the second host, at the bridge: neither host sees that its own end is cut."""
        self.ip(job, "link", "set", "v1", state)

    def steps(self):
        return len(self.metrics("run", "step")) if os.path.exists(self.path("run/metrics.jsonl")) else 0


def main(two_hosts):
    """The exit code of the tests of the caller's module: 77 where the script, with these words, can make no hosts."""
    tried = subprocess.run([*two_hosts, "true"], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    if tried.returncode == 77:
        print(tried.stderr, end="")
        return 77
    return 0 if unittest.main(module="__main__", exit=False, verbosity=2).result.wasSuccessful() else 1

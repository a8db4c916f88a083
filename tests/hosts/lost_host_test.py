"""A training under scripts/supervise, of whose two hosts one goes out of reach: it goes on with the other one.

supervise and mpirun are on a third host, without ranks. All are those of scripts/two_hosts; exits with 77 and the reason
where this machine cannot have them."""
import json
import os
import subprocess
import sys

import two_hosts
from program import PROGRAM, wait_until

HOSTS = [two_hosts.SCRIPT, "--ssh", "--ranks", "1"]
TRAIN = [PROGRAM, "--image-size", "64", "--data", "synthetic:40", "--limit-val", "4", "--batch", "10", "--epochs", "30",
         "--log-every", "1", "--threads", "1", "--reproducible", "--checkpoint-every", "5",
         "--stall", "warn=2,end=6", "--out"]
# What two_hosts calls in the place of mpirun, and supervise in the place of ssh.
SUPERVISE = """#!/bin/bash
[[ $1 != --version ]] || exec {mpirun} "$@"
PATH={folder}:$PATH exec {root}/scripts/supervise --watch none --grace 5 --cool-down 0 -- {mpirun} "$@"
"""
SSH = '#!/bin/bash\nexec /usr/bin/ssh -F /run/two_hosts/ssh/config "$@"\n'


class LostHost(two_hosts.HostsTest):
    def start(self, out, **environment):
        log = open(self.path(f"log-{out}"), "w+")
        job = subprocess.Popen([*HOSTS, *TRAIN, out], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
        self.addCleanup(log.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def end_of(self, job, out):
        code = job.wait(300)
        said = self.text_of(f"log-{out}")
        self.assertEqual(code, 0, said[-3000:])
        return said

    def losses(self, out):
        """As they are written, so that bits are compared."""
        with open(self.path(out, "metrics.jsonl")) as lines:
            return {m["step"]: m["loss"] for m in map(json.loads, lines) if m["type"] == "step"}

    def test_the_other_host_goes_on_to_the_same_end(self):
        self.end_of(self.start("whole"), "whole")
        mpirun = os.environ["CPUTRAIN_MPIEXEC"]
        self.tool("ssh", SSH)
        self.tool("mpirun", SUPERVISE.format(mpirun=mpirun, folder=self.folder, root=two_hosts.ROOT))
        job = self.start("run", CPUTRAIN_MPIEXEC=self.path("mpirun"))
        wait_until(lambda: self.steps() >= 8 or job.poll() is not None)
        self.link(job, "down")
        said = self.end_of(job, "run")
        for words in (r"so the job ends: rank 1 on host2-\d+ does not answer", r"launcher, process \d+, has not",
                      "1 of 2 ranks go on", "exit code 76; restart 1 in 1 s",
                      r"without host2-\d+, which did not answer: 1 of 2 hosts, 1 of 2 ranks"):
            self.assertRegex(said, words)
        self.assertEqual(self.losses("run"), self.losses("whole"))
        self.assertEqual(*(self.bytes_of(out, "weights.safetensors") for out in ("run", "whole")))


def main():
    if os.geteuid() != 0:
        print("only root can cut a link of another namespace")
        return 77
    return two_hosts.main(HOSTS)


if __name__ == "__main__":
    sys.exit(main())

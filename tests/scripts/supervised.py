"""scripts/supervise with stand-ins for mpirun, sleep and ssh that do what a test wants."""
import glob
import json
import os
import signal
import subprocess
import time

from program import ProgramTest, ROOT

SCRIPT = os.path.join(ROOT, "scripts", "supervise")
# Starts after starts: each does what the next line of the file `plan` says, and writes down how it was called.
STAND_IN = r"""#!/usr/bin/env python3
import json, os, signal, sys, time
with open("calls", "a") as f:
    f.write(json.dumps([sys.argv[1:], {k: v for k, v in os.environ.items() if "tmpdir_base" in k}]) + "\n")
with open("calls") as f:
    n = len(f.readlines())
with open("plan") as f:
    plan = f.read().splitlines()
for i, a in enumerate(sys.argv):
    if a == "--hostfile":
        with open(sys.argv[i + 1]) as f, open("hosts-seen", "a") as seen:
            seen.write(f.read().replace("\n", ";") + "\n")
os.makedirs(os.environ.get("OMPI_MCA_orte_tmpdir_base", ".") + "/ompi.host.0/pid.1", exist_ok=True)
def save(step):
    os.makedirs(f"run/ckpt-{step:08}", exist_ok=True)
    open(f"run/ckpt-{step:08}/MANIFEST", "w").close()
def np():
    return int(sys.argv[sys.argv.index("-np") + 1])
def unanswered(ranks, by=0):
    with open("run/stalls.jsonl", "a") as f:
        f.write(json.dumps({"event": "end", "cause": "silent", "ranks": ranks, "hosts": ["vm"], "by": by},
                           separators=(",", ":")) + "\n")
def launcher_killed():  # its folder stays
    os.makedirs(f"{os.environ['OMPI_MCA_orte_tmpdir_base']}/ompi.host.0/pid.{os.getpid()}")
    os.kill(os.getpid(), 9)
def on(number, code):
    def end(*_):
        with open("signals", "a") as f:
            f.write(signal.Signals(number).name + "\n")
        if code is not None:
            os._exit(code)
    signal.signal(number, end)
exec(plan[min(n, len(plan)) - 1])
"""
TRAINING = ["mpirun", "-np", "4", "./cputrain", "--out", "run"]
# Waits are written down, and short.
SLEEP = '#!/bin/bash\necho "$1" >>slept\n[[ $1 != 2 ]] || exec /bin/sleep 0.3\nexec /bin/sleep 0.02\n'
# Until the test makes the file `finish`.
WORK = ("save(5); open('ready', 'w').close(); "
        "[time.sleep(0.05) for _ in iter(lambda: os.path.exists('finish'), True)]; os._exit(9)")
WAIT = "on(signal.SIGUSR1, 75); on(signal.SIGTERM, 1); on(signal.SIGINT, 1); open('ready', 'w').close(); time.sleep(60)"


class SupervisedTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.tool("mpirun", STAND_IN)
        self.tool("sleep", SLEEP)
        os.mkdir(self.path("tmp"))

    def start(self, plan, *flags, words=TRAINING, watch="none", **environment):
        self.write("plan", "\n".join(plan))
        return subprocess.Popen(
            [SCRIPT, "--watch", watch, *flags, "--", *words], cwd=self.folder, text=True, start_new_session=True,
            # Whoever was started in the background has Ctrl-C ignored, and hands that on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={k: v for k, v in {**os.environ, "PATH": self.folder + ":" + os.environ["PATH"],
                                   "TMPDIR": self.path("tmp"), **environment}.items() if v is not None})

    def supervise(self, plan, *flags, **options):
        """Exit code and what it said."""
        return self.end_of(self.start(plan, *flags, **options))

    def end_of(self, script, left=()):
        self.addCleanup(script.kill)
        _, said = script.communicate(timeout=240)
        self.assertEqual(sorted(os.listdir(self.path("tmp"))), sorted(left))
        self.assertFalse(glob.glob(self.path("run", ".supervise*")))
        return script.returncode, said

    def waits(self):
        """Seconds between starts. Those of 2 are not told from the script's pulse."""
        with open(self.path("slept")) as f:
            return [int(line) for line in f if line != "2\n"]

    def ranks(self):
        """The number of ranks of each start."""
        return [call[0][call[0].index("-np") + 1] for call in self.calls()]

    def calls(self):
        with open(self.path("calls")) as f:
            return [json.loads(line) for line in f]

    def again(self):
        for name in ("calls", "signals", "ready", "hosts-seen", "slept", "finish"):
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))

    def wait_for(self, name):
        end = time.time() + 120
        while not os.path.exists(self.path(name)):
            self.assertLess(time.time(), end)
            time.sleep(0.02)

    def ssh(self, noticed=""):
        """A stand-in; hosts are down where a file down-HOST is. The last word is the command for the host."""
        self.tool("ssh", '#!/bin/bash\nhost=${@: -2:1} command=${@: -1}\n[[ ! -e down-$host ]] || exit 255\n'
                  f'[[ $command == *preemption* ]] || exit 0\n[[ $host == "{noticed}" ]] || exec /bin/sleep 60\n'
                  "echo gcp takes $host away\n")

    def down(self, host):
        open(self.path("down-" + host), "w").close()

"""scripts/supervise that SIGKILL ended, and the next one."""
import fcntl
import os
import shutil
import signal
import unittest

from supervised import WAIT, WORK, SupervisedTest


class Killed(SupervisedTest):
    def kill(self, script):
        script.kill()
        script.wait(30)
        script.stdout.close()
        script.stderr.close()

    def killed(self, training=WORK):
        """The number of the training's launcher, which goes on."""
        script = self.start([training, "os._exit(0)"])
        self.wait_for("ready")
        self.kill(script)
        with open(self.path("run", ".supervise")) as f:
            pid = int(dict(line.split(" ", 1) for line in f)["training"].split()[0])
        self.addCleanup(lambda: open(self.path("finish"), "w").close())
        return pid

    def again_until(self, words, **options):
        """A second supervise that has said so."""
        script = self.start([WORK, "os._exit(0)"], **options)
        line = script.stderr.readline()
        self.assertIn(words, line)
        return script

    def test_its_training_is_taken_over(self):
        pid = self.killed()
        self.assertEqual(len(os.listdir(self.path("tmp"))), 1)
        script = self.again_until(f"process {pid} on {os.uname().nodename}; it is taken over")
        self.assertEqual(len(self.calls()), 1)
        # A third one leaves both alone.
        third = self.start(["os._exit(0)"])
        said = third.communicate(timeout=240)[1]
        self.assertEqual(third.returncode, 2, said)
        self.assertIn(f"process {script.pid} on", said)
        self.write("plan", WORK + "\nos._exit(0)")
        open(self.path("finish"), "w").close()
        code, said = self.end_of(script)
        self.assertEqual((code, len(self.calls())), (0, 2), said)

    def test_signals_reach_a_training_that_was_taken_over(self):
        pid = self.killed("save(5); " + WAIT)
        script = self.again_until(f"process {pid} on")
        script.terminate()
        code, said = self.end_of(script)
        self.assertEqual((code, len(self.calls())), (75, 1), said)
        self.assertEqual(self.text_of("signals"), "SIGUSR1\n")

    def test_one_that_was_killed_while_it_was_taken_over_is_taken_over(self):
        pid = self.killed()
        for _ in range(2):
            script = self.again_until(f"process {pid} on")
            self.kill(script)
        open(self.path("finish"), "w").close()
        self.assertEqual(self.supervise([WORK, "os._exit(0)"])[0], 0)

    def test_where_the_training_is_dead_the_next_begins_at_once(self):
        pid = self.killed()
        os.kill(pid, signal.SIGKILL)
        code, said = self.supervise(["", "os._exit(0)"])
        self.assertEqual((code, said), (0, ""))
        # A folder of another run folder's is removed as well, and nothing else.
        self.again()
        pid = self.killed()
        os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.path("run"))
        os.mkdir(self.path("precious"))
        os.symlink(self.path("precious"), self.path("tmp", "cputrain-supervise.link00"))
        os.mkdir(self.path("tmp", "cputrain-supervise.begins"))
        left = self.start(["", "", "os._exit(0)"])
        code, said = self.end_of(left, left=sorted(["cputrain-supervise.link00", "cputrain-supervise.begins"]))
        self.assertEqual((code, said), (0, ""))
        self.assertTrue(os.path.isdir(self.path("precious")))

    def test_one_of_another_host_is_asked_for_there(self):
        os.mkdir(self.path("run"))
        for answer, expected, words in ((0, 2, "the supervise of process 77 on vm-9 is at work in run"), (1, 0, ""),
                                        (255, 0, "process 77 on vm-9 still works in run cannot be asked")):
            self.again()
            with open(self.path("run", ".supervise"), "w") as f:
                f.write("host vm-9\nboot other\nnumbers pid:[1]\nsupervise 77 1000\ntraining 78 1001\n"
                        "folder /etc/../etc\n")
            self.tool("ssh", f'#!/bin/bash\necho "${{@: -2:1}}" >>asked\nexit {answer}\n')
            script = self.start(["os._exit(0)"])
            said = script.communicate(timeout=240)[1]
            self.assertEqual(script.returncode, expected, said)
            self.assertIn(words, said)
            self.assertEqual(set(self.text_of("asked").split()), {"vm-9"})
            self.assertEqual(os.path.exists(self.path("run", ".supervise")), expected == 2)

    def test_folders_that_a_lock_shows_to_be_in_use_stay(self):
        # As left by a supervise in a container with this TMPDIR, or of one before the machine was started anew.
        names = [f"cputrain-supervise.{name}" for name in ("active", "nolock", "over00")]
        for name in names:
            os.mkdir(self.path("tmp", name))
            with open(self.path("tmp", name, "owner"), "w") as f:
                f.write(f"host {os.uname().nodename}\nboot other\nnumbers pid:[1]\nsupervise 77 1000\n"
                        f"training 78 1001\nfolder {self.path('tmp', name)}\n")
        open(self.path("tmp", names[2], "lock"), "w").close()
        with open(self.path("tmp", names[0], "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertEqual(self.end_of(self.start(["os._exit(0)"]), left=names[:2]), (0, ""))
        self.again()
        self.assertEqual(self.end_of(self.start(["os._exit(0)"]), left=names[1:2]), (0, ""))

    def test_what_may_be_another_hosts_of_this_name_is_left_alone_on_all_hosts(self):
        os.mkdir(self.path("run"))
        for host, boot, asked in ((os.uname().nodename, "other", 0), ("vm-9", "other", 1)):
            self.again()
            self.write(self.path("run", ".supervise"), f"host {host}\nboot {boot}\nnumbers pid:[1]\nsupervise 77 1000\n"
                                                       "folder /tmp/cputrain-supervise.abcdef\n")
            self.tool("ssh", '#!/bin/bash\necho "${@: -2:1} ${@: -1}" >>asked\n'
                      '[[ ${@: -2:1} == vm-1 ]]\n')  # vm-9 says that there is no such process
            self.supervise(["os._exit(0)"], words=["mpirun", "--host", "vm-1", "-np", "1", "x", "--out", "run"])
            said = self.text_of("asked")
            self.assertEqual(said.count("vm-9 "), asked)
            self.assertEqual("cputrain-supervise.abcdef" in said, asked > 0, said)
            os.remove(self.path("asked"))

    def test_a_link_in_its_place_is_neither_read_nor_followed(self):
        os.mkdir(self.path("run"))
        self.write("precious", "supervise 1 1\n")
        for name in (".supervise", ".supervise.tmp"):
            os.symlink(self.path("precious"), self.path("run", name))
        self.assertEqual(self.supervise(["os._exit(0)"]), (0, ""))
        self.assertEqual(self.text_of("precious"), "supervise 1 1\n")

if __name__ == "__main__":
    unittest.main()

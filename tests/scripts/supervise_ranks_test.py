"""scripts/supervise: ranks that are lost, and launchers that do not end, with stand-ins for mpirun."""
import os
import sys
import unittest

from supervised import WAIT, SupervisedTest

KILLED = "save(5); os._exit(137)"
DONE = "os._exit(0)"
# The script asks nothing of a stand-in that has not been counted as a start.
PULSE_WHEN_READY = ('#!/bin/bash\nuntil [[ $1 != 2 || -e ready ]]; do /bin/sleep 0.05; done\n'
                    '[[ $1 != 2 ]] || exec /bin/sleep 0.3\nexec /bin/sleep 0.02\n')


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Ranks(SupervisedTest):
    def test_it_goes_on_without_those_that_were_killed_or_did_not_answer(self):
        # Where a link is cut both sides say who is missing.
        stalled = "unanswered([0, 2], by=1); unanswered([1]); os._exit(76)"
        code, said = self.supervise([KILLED, stalled, "os._exit(76)", "os._exit(139)", DONE])
        self.assertEqual((code, self.ranks()), (0, ["4", "3", "2", "2", "1"]), said)
        for words in ("ranks lost: 1; 3 of 4 ranks go on", "ranks lost: 1; 2 of 4 ranks go on"):
            self.assertIn(words, said)
        self.assertEqual(self.calls()[-1][0][2:], self.calls()[0][0][2:])

    def test_as_many_fewer_as_are_named(self):
        code, said = self.supervise(["save(1); unanswered([1, 2]); os._exit(76)", DONE])
        self.assertEqual((code, self.ranks()), (0, ["4", "2"]), said)
        self.assertIn("ranks lost: 2; 2 of 4 ranks go on", said)

    def test_a_rank_that_names_itself_is_there(self):
        """Storage that hangs at the end, where the training cannot go on without it."""
        code, said = self.supervise(["save(1); unanswered([0], by=0); os._exit(76)", DONE])
        self.assertEqual((code, self.ranks()), (0, ["4", "4"]), said)

    def test_a_launcher_that_tells_another_code_than_76(self):
        """As MPICH's does, whose own signal ends the ranks that have not ended yet."""
        for failure in ("os._exit(9)", "os._exit(137)"):
            self.again()
            code, said = self.supervise([f"unanswered([1, 2]); {failure}", "os._exit(1)", DONE])
            self.assertEqual((code, self.ranks()), (0, ["4", "2", "2"]), said)
            self.assertIn("exit code 76", said)

    def test_a_training_that_begins_the_file_of_stalls_anew(self):
        """As one with --overwrite does."""
        anew = "save(2); os.remove('run/stalls.jsonl'); unanswered([0, 2]); os._exit(76)"
        code, said = self.supervise(["save(1); unanswered([1]); os._exit(76)", anew, DONE])
        self.assertEqual((code, self.ranks()), (0, ["4", "3", "1"]), said)

    def test_all_are_started_again_where_fewer_would_be_too_few_or_not_asked_for(self):
        for flags, words in ((["--min-ranks", "4"], []), ([], ["--on-failure", "stop"]), ([], ["--on-failure=stop"]),
                             ([], [":", "-np", "1", "y"])):
            self.again()
            code, said = self.supervise([KILLED, DONE], *flags, words=["mpirun", "-np", "4", "x", "--out=run", *words])
            self.assertEqual((code, self.ranks()), (0, ["4", "4"]), said)
            self.assertEqual("less than --min-ranks 4" in said, not words, said)
        self.again()
        code, said = self.supervise([KILLED, KILLED, DONE], "--min-ranks=3")
        self.assertEqual((code, self.ranks()), (0, ["4", "3", "4"]), said)

    def test_other_failures_cost_no_ranks(self):
        for failure in ("os._exit(1)", "os._exit(70)", "os._exit(74)", "os._exit(143)", "launcher_killed()"):
            self.again()
            code, said = self.supervise([failure, DONE])
            self.assertEqual((code, self.ranks()), (0, ["4", "4"]), said)
            self.assertNotIn("lost", said)

    def test_all_are_tried_again_after_a_cool_down(self):
        self.tool("sleep", PULSE_WHEN_READY)
        code, said = self.supervise([KILLED, WAIT, DONE], "--cool-down=1")
        self.assertEqual((code, self.ranks()), (0, ["4", "3", "4"]), said)
        self.assertIn("all ranks are tried again: the training saves", said)

    def test_a_launcher_that_has_not_begun_when_all_are_tried_again(self):
        self.tool("sleep", PULSE_WHEN_READY)
        begins_slowly = "signal.signal(signal.SIGUSR1, signal.SIG_DFL); open('ready', 'w').close(); time.sleep(60)"
        code, said = self.supervise([KILLED, begins_slowly, DONE], "--cool-down=1")
        self.assertEqual((code, self.ranks()), (0, ["4", "3", "4"]), said)

    def test_where_fewer_are_refused_all_are_started_again(self):
        code, said = self.supervise([KILLED, "os._exit(2)", KILLED, DONE])
        self.assertEqual((code, self.ranks()), (0, ["4", "3", "4", "4"]), said)
        self.assertIn("cannot go on with 3 ranks", said)

    def test_a_launcher_that_decides_how_many_there_are_is_given_a_number(self):
        wrote = """save(5); open('run/environment.json', 'w').write('{\\n  "ranks": 4\\n}\\n'); os._exit(137)"""
        code, said = self.supervise([wrote, DONE], words=["mpirun", "./cputrain", "--out", "run"])
        self.assertEqual([call[0][:2] for call in self.calls()], [["./cputrain", "--out"], ["-np", "3"]], said)
        self.again()
        os.remove(self.path("run", "environment.json"))
        code, said = self.supervise([KILLED, DONE], words=["mpirun", "./cputrain", "--out", "run"])
        self.assertEqual([call[0][0] for call in self.calls()], ["./cputrain", "./cputrain"], said)

    def test_ranks_of_hosts_that_are_left_out_are_not_counted_twice(self):
        self.write("hosts", "vm-0 slots=4\nvm-1 slots=4\n")
        self.ssh()
        plan = ["save(1); open('down-vm-1', 'w'); unanswered([4, 5, 6, 7]); os._exit(76)", KILLED, DONE]
        code, said = self.supervise(plan, words=["mpirun", "--hostfile", "hosts", "-np", "8", "x", "--out", "run"])
        self.assertEqual((code, self.ranks()), (0, ["8", "4", "3"]), said)

    def test_a_launcher_that_hangs_on_is_ended(self):
        stand_in = self.text_of("mpirun")
        # /proc names a script after itself where its first line has the interpreter.
        self.tool("mpirun", stand_in.replace("#!/usr/bin/env python3", "#!" + os.path.realpath(sys.executable)))
        hangs = "save(5); unanswered([3]); os.system('exec env PMIX_RANK=0 /bin/sleep 0.9'); time.sleep(60)"
        # One with all ranks elsewhere is not, though it had processes here for a while.
        waits = "os.system('/bin/sleep 0.7'); time.sleep(2); os._exit(0)"
        code, said = self.supervise([hangs, waits], "--grace=1")
        self.assertEqual((code, self.ranks()), (0, ["4", "3"]), said)
        self.assertEqual(said.count("has not: it is killed"), 1)

    def test_a_launcher_that_hangs_on_without_ranks_here_is_ended(self):
        stand_in = self.text_of("mpirun")
        self.tool("mpirun", stand_in.replace("#!/usr/bin/env python3", "#!" + os.path.realpath(sys.executable)))
        code, said = self.supervise(["save(5); unanswered([3]); time.sleep(60)", "time.sleep(3); os._exit(0)"],
                                    "--grace=1")
        self.assertEqual((code, self.ranks()), (0, ["4", "3"]), said)
        self.assertEqual(said.count("has not: it is killed"), 1)

    def test_daemons_that_hang_on_on_a_host_are_ended_there(self):
        self.tool("ssh", '#!/bin/bash\nexec sh -c "${@: -1}"\n')
        self.tool("orted", "#!/bin/bash\necho $$ >daemon\nread -r <>never\n")
        os.mkfifo(self.path("never"))
        hangs = ("import subprocess; subprocess.Popen(['orted', '-mca', 'orte_tmpdir_base', "
                 "os.environ['OMPI_MCA_orte_tmpdir_base']]); "
                 "begun = lambda: os.path.isfile('daemon') and os.path.getsize('daemon') > 0; "
                 "[time.sleep(0.02) for _ in iter(begun, True)]; os._exit(1)")
        code, said = self.supervise([hangs, DONE], words=["mpirun", "--host", "vm-0,vm-1", "x", "--out", "run"])
        self.assertEqual((code, len(self.calls())), (0, 2), said)
        self.assertFalse(lives(self.text_of("daemon").strip()))


if __name__ == "__main__":
    unittest.main()

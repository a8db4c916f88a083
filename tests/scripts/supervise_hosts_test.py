"""scripts/supervise: hosts that do not answer, come back, or are no hosts, with stand-ins for mpirun and ssh."""
import os
import subprocess
import unittest

from metadata import Google, Service
from supervised import TRAINING, WAIT, WORK, SupervisedTest


class Hosts(SupervisedTest):
    def test_hosts_that_do_not_answer_are_left_out(self):
        self.write("hosts", "# ours\nvm-0 slots=2\nvm-1 slots=4  # the large one\nvm-2 slots=2\n")
        self.ssh()
        self.down("vm-1")
        for flags, launch in ((["--hostfile", "hosts"], []), ([], ["--hostfile", "hosts"])):
            self.again()
            code, said = self.supervise(["os._exit(0)"], *flags,
                                        words=["mpirun", *launch, "-np", "8", "./cputrain", "--out=run"])
            self.assertEqual(code, 0, said)
            self.assertIn("without vm-1, which did not answer: 2 of 3 hosts, 4 of 8 ranks", said)
            words = self.calls()[0][0]
            self.assertEqual(words[words.index("-np") + 1], "4")
            self.assertEqual(self.text_of("hosts-seen"), "vm-0 slots=2;vm-2 slots=2;\n")
        self.assertIn("vm-1 slots=4", self.text_of("hosts"))
        self.again()
        self.supervise(["os._exit(0)"], words=["mpirun", "--host", "vm-0:2,vm-1:4,vm-2", "-np", "6", "./cputrain",
                                               "--out", "run"])
        words = self.calls()[0][0]
        self.assertEqual((words[words.index("--host") + 1], words[words.index("-np") + 1]), ("vm-0:2,vm-2:1", "3"))

    def test_hosts_that_answer_again_are_back(self):
        self.write("hosts", "vm-0\nvm-1\n")
        self.ssh()
        self.down("vm-1")
        code, said = self.supervise(["os.remove('down-vm-1'); save(n); os._exit(1)", "os._exit(0)"],
                                    "--hostfile", "hosts")
        self.assertEqual(code, 0, said)
        self.assertIn("without vm-1", said)
        self.assertEqual(self.text_of("hosts-seen"), "vm-0;\nvm-0;vm-1;\n")

    def test_where_no_host_answers_it_waits_for_them(self):
        self.ssh()
        self.down("vm-0")
        code, said = self.supervise(["os._exit(0)"], "--max-restarts", "2",
                                    words=["mpirun", "--host", "vm-0:2", "./cputrain", "--out", "run"])
        self.assertEqual(code, 1, said)
        self.assertEqual(said.count("no host answers"), 3)
        self.assertFalse(os.path.exists(self.path("calls")))

    def test_notices_of_other_hosts_count_as_well(self):
        self.write("hosts", "vm-0\nvm-1\n")
        self.ssh(noticed="vm-1")
        service = Service(Google)
        self.addCleanup(service.close)
        code, said = self.supervise([WAIT], "--hostfile", "hosts", watch="gcp", CPUTRAIN_METADATA_URL=service.url)
        self.assertEqual(code, 75, said)
        self.assertIn("gcp takes vm-1 away", said)

    def test_hosts_that_come_back_are_taken_in_after_a_cool_down(self):
        self.write("hosts", "vm-0\nvm-1\n")
        self.ssh()
        self.down("vm-1")
        script = self.start([WAIT, "os._exit(0)"], "--hostfile=hosts", "--cool-down=1")
        self.wait_for("ready")
        os.remove(self.path("down-vm-1"))
        code, said = self.end_of(script)
        self.assertEqual(code, 0, said)
        self.assertIn("vm-1 answers again", said)
        self.assertNotIn("restart 1", said)
        self.assertEqual(self.text_of("hosts-seen"), "vm-0;\nvm-0;vm-1;\n")
        # What would be lost is not asked to stop.
        self.again()
        self.tool("ssh", "#!/bin/bash\n[[ ! -e down-${@: -2:1} ]] || exit 255\n[[ ${@: -1} != true ]] || touch back\n")
        self.down("vm-1")
        script = self.start([WORK], "--hostfile=hosts", "--cool-down=1", "--max-restarts=0",
                            words=[*TRAINING, "--checkpoint-every", "0"])
        self.wait_for("ready")
        os.remove(self.path("down-vm-1"))
        self.wait_for("back")
        os.remove(self.path("slept"))
        self.wait_for("slept")  # the script's pulse, in which it could act
        open(self.path("finish"), "w").close()
        code, said = self.end_of(script)
        self.assertEqual((code, len(self.calls())), (9, 1), said)

    def test_words_for_a_hosts_shell_are_quoted(self):
        odd = self.path("it's $(touch oops); tmp")
        os.mkdir(odd)
        self.tool("ssh", "#!/bin/bash\nprintf '%s\\n' \"${@: -1}\" >>asked\n")
        code, said = self.supervise(["os._exit(0)"], TMPDIR=odd,
                                    words=["mpirun", "--host", "vm-0,vm-1", "./cputrain", "--out", "run"])
        self.assertEqual((code, os.listdir(odd)), (0, []), said)
        asked = self.text_of("asked").splitlines()
        self.assertEqual(len(asked), 4)
        for line in asked:  # by a shell that is not bash, too
            words = subprocess.run(["sh", "-c", line.replace("rm -rf", "echo").replace("rmdir", "echo")],
                                   cwd=self.folder, text=True, stdout=subprocess.PIPE, check=True).stdout
            self.assertTrue(words.startswith(odd + "/cputrain-supervise."), words)
        self.assertFalse(os.path.exists(self.path("oops")))

    def test_a_host_that_ssh_would_take_for_a_flag_is_refused(self):
        self.tool("ssh", "#!/bin/bash\ntouch asked\n")
        for name in ("-oProxyCommand=touch oops", "-v", "me@-v", "vm-0;reboot", "$(reboot)", "vm-0`x`"):
            host = name.split()[0]
            self.write("hosts", f"vm-0\n{name} slots=2\n")
            for words in (["mpirun", "--hostfile", "hosts"], ["mpirun", "--host", f"vm-0:2,{host}:2"]):
                code, said = self.supervise(["os._exit(0)"], words=[*words, "./cputrain", "--out", "run"])
                self.assertEqual(code, 2, said)
                self.assertIn("the host " + host, said)
        self.assertFalse(os.path.exists(self.path("asked")) or os.path.exists(self.path("calls")))

if __name__ == "__main__":
    unittest.main()

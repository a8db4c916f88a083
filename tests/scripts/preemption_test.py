"""scripts/cloud/preemption beside imitations of the clouds' metadata services."""
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from metadata import Aws, Azure, Google, Handler, Service, azure_event

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SCRIPT = os.path.join(ROOT, "scripts", "cloud", "preemption")
TERMINATES = {"action": "terminate", "time": "2030-09-18T08:22:00Z"}


@unittest.skipUnless(shutil.which("curl"), "curl is not here")
class Preemption(unittest.TestCase):
    def serve(self, handler):
        service = Service(handler)
        self.addCleanup(service.close)
        return service

    def start(self, service, cloud="auto", command=(SCRIPT,)):
        script = subprocess.Popen([*command, cloud], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, start_new_session=True,
                                  env={**os.environ, "CPUTRAIN_METADATA_URL": service.url})
        self.addCleanup(self.end, script)
        return script

    def end(self, script):
        try:
            os.killpg(script.pid, signal.SIGKILL)  # what it runs at the moment, too
        except ProcessLookupError:
            pass
        script.communicate()

    def wait_until_asked(self, service, path):
        end = time.time() + 30
        while not any(path in asked for asked in service.asked):
            self.assertLess(time.time(), end, service.asked)
            time.sleep(0.02)

    def check_notice(self, script, *words):
        said, complaint = script.communicate(timeout=30)
        self.assertEqual((script.returncode, complaint), (0, ""))
        self.assertEqual(len(said.splitlines()), 1, said)
        for word in words:
            self.assertIn(word, said)

    def test_each_cloud_is_found_and_its_notice_told(self):
        clouds = ((Google, "gcp", "instance/preempted", True, ["preempted"]),
                  (Aws, "aws", "spot/instance-action", TERMINATES, ["terminate", "08:22:00"]),
                  (Azure, "azure", "scheduledevents", [azure_event("Preempt", "vm-0", "vm-1")],
                   ["Preempt", "18:29:47"]))
        waiting = []
        for handler, cloud, path, notice, words in clouds:
            for given in ("auto", cloud):
                service = self.serve(handler)
                waiting.append((service, self.start(service, given), cloud, path, notice, words))
        for service, script, _, path, _, _ in waiting:
            self.wait_until_asked(service, path)
        time.sleep(0.2)
        for service, script, _, _, notice, _ in waiting:
            self.assertIsNone(script.poll())
            service.notice = notice
        for _, script, cloud, _, _, words in waiting:
            self.check_notice(script, cloud + " takes this VM", *words)

    def test_a_notice_that_is_there_already_is_told_at_once(self):
        service = self.serve(Google)
        service.notice = True
        self.check_notice(self.start(service), "gcp")

    def test_other_words_of_the_clouds_are_no_notice(self):
        azure = self.serve(Azure)
        azure.notice = [azure_event("Reboot", "vm-1"), azure_event("Preempt", "vm-10"), azure_event("Freeze", "vm-1")]
        aws = self.serve(Aws)
        scripts = [self.start(azure), self.start(aws)]
        self.wait_until_asked(azure, "scheduledevents")
        self.wait_until_asked(aws, "instance-action")
        time.sleep(3)  # and they ask again
        self.assertEqual([script.poll() for script in scripts], [None, None])
        azure.notice.append(azure_event("Terminate", "vm-1"))
        self.check_notice(scripts[0], "Terminate")

    def test_an_aws_token_that_ran_out_is_replaced(self):
        service = self.serve(Aws)
        script = self.start(service)
        self.wait_until_asked(service, "instance-action")
        Aws.token = "another=="
        service.notice = TERMINATES
        self.check_notice(script, "terminate")

    def test_no_cloud(self):
        script = self.start(self.serve(type("Nobody", (Handler,), {"get": lambda self: self.answer(404)})))
        said, complaint = script.communicate(timeout=60)
        self.assertEqual((script.returncode, said), (1, ""))
        self.assertIn("no cloud's metadata service", complaint)

    def test_ends_with_the_process_that_started_it(self):
        service = self.serve(Azure)
        parent = self.start(service, command=(sys.executable, "-c", "import subprocess, sys, time\n"
                                              "p = subprocess.Popen(sys.argv[1:])\nprint(p.pid, flush=True)\n"
                                              "time.sleep(60)", SCRIPT))
        pid = int(parent.stdout.readline())
        self.wait_until_asked(service, "scheduledevents")
        parent.kill()
        end = time.time() + 30
        while os.path.exists(f"/proc/{pid}"):
            self.assertLess(time.time(), end)
            time.sleep(0.05)

    def test_wrong_use(self):
        for words in (["ibm"], ["gcp", "aws"]):
            done = subprocess.run([SCRIPT, *words], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    unittest.main()

"""The program that asks a GPU: what it says where there is none, and to wrong words."""
import json
import os
import subprocess
import tempfile
import unittest

PROBES = os.path.join(os.environ["CUDA_TESTS_BUILD"], "device", "probes")
SKIPPED = 77


@unittest.skipUnless(os.path.exists(PROBES), "this build has no nvcc")
class Probes(unittest.TestCase):
    def probes(self, *words):
        return subprocess.run([PROBES, *words], text=True, capture_output=True, timeout=60,
                              env=dict(os.environ, CUDA_VISIBLE_DEVICES=""))

    def expect_skipped(self, answers):
        answer, = answers
        self.assertEqual(list(answer), ["name", "question", "value", "unit", "verdict", "text"])
        self.assertEqual(answer["name"], "skipped")
        self.assertRegex(answer["text"], "^no device: .*(no CUDA|NVIDIA driver)")
        self.assertEqual([answer[key] for key in ("question", "value", "unit", "verdict")], [None] * 4)

    def test_without_a_gpu_it_is_skipped(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "answers.json")
            done = self.probes("--json", path)
            self.assertEqual(done.returncode, SKIPPED, done.stderr)
            self.assertRegex(done.stdout, "^skipped: no device: ")
            with open(path) as file:
                self.expect_skipped(json.load(file))
            self.assertEqual(os.listdir(folder), ["answers.json"])

    def test_json_has_standard_output_to_itself(self):
        done = self.probes("--json", "-")
        self.assertEqual(done.returncode, SKIPPED, done.stderr)
        self.expect_skipped(json.loads(done.stdout))
        self.assertIn("skipped: no device", done.stderr)

    def test_a_group_that_fails_says_why_in_its_own_process(self):
        for group in ("device", "bits", "loops", "wgmma", "residents", "contexts"):
            done = self.probes("--ask", group)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertRegex(done.stdout, rf"^{group}\t.* fails: .*\(cudaError\w+\)\n$")

    def test_help_names_the_groups(self):
        done = self.probes("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--json", "bits", "products", "loops", "wgmma", "contexts"):
            self.assertIn(word, done.stdout)

    def test_wrong_words_and_files_have_their_message(self):
        for code, words, says in [(2, ["colour"], "unknown word colour"), (2, ["--json"], "--json needs"),
                                  (74, ["--json", "/nowhere/answers.json"], "/nowhere/answers.json cannot be written")]:
            with self.subTest(words=words):
                done = self.probes(*words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(says, done.stderr)
                self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()

"""What runs a document's commands: order, preparations, marks, and how a failure is told."""
import os
import unittest

import blocks
import documents
from rules_test import MadeUp

PROGRAM, MPIRUN = os.environ["CPUTRAIN"], os.environ.get("CPUTRAIN_MPIRUN", "").split()


class Blocks(MadeUp):
    def run_text(self, text):
        """(findings, what was told) of a document."""
        told = []
        self.document(text)
        self.write("scripts/hello", "#!/bin/bash\necho hello\n")
        os.chmod(os.path.join(self.root, "scripts/hello"), 0o755)
        os.makedirs(os.path.join(self.root, "results"), exist_ok=True)
        with blocks.Workplace(self.root, PROGRAM, MPIRUN) as workplace:
            found = blocks.run(documents.Document("guide.md", self.root), workplace, told.append)
        return [str(f) for f in found], told

    def test_blocks_and_preparations_run_in_order_in_one_folder(self):
        found, told = self.run_text("<!-- before: echo 1 > order -->\n```sh\ncat order\necho 2 >> order  # second\n"
                                    "```\n"
                                    "```text\nfalse\n```\n<!-- not run: it would fail -->\n```sh\nfalse\n```\n"
                                    '```sh\n[[ $(cat order | tr "\\n" " ") == "1 2 " ]]\n```\n')
        self.assertEqual(found, [])
        self.assertEqual([t.split(":")[1] for t in told], ["1", "3", "11", "14"])
        self.assertIn("not run: it would fail", told[2])
        self.assertFalse(os.path.exists(os.path.join(self.root, "order")))

    def test_a_failing_command_is_named(self):
        found, told = self.run_text("# Guide\n\n```sh\ntrue\n```\n\n```sh\necho fine\nls nowhere\necho not reached\n"
                                    "```\n```sh\ntrue\n```\n")
        self.assertEqual(len(told), 1)
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("guide.md:8: a block fails with 2 "), found[0])
        for words in ("    ls nowhere", "    fine", "nowhere", "guide.md:9: ended with 2"):
            self.assertIn(words, found[0])
        self.assertNotIn("    not reached", found[0])

    def test_a_block_that_takes_too_long_ends_with_what_it_started(self):
        self.document("")
        with blocks.Workplace(self.root, PROGRAM, MPIRUN) as workplace:
            code, output = workplace.run("guide.md", 5, ["echo begun", "sleep 97531 & sleep 97531"], seconds=5)
            self.assertEqual((code, output.splitlines()[0]), (124, "begun"))
            self.assertIn("guide.md:5: took more than 5 s", output)

    def test_weights_of_imagenet_are_made_up(self):
        found, _ = self.run_text("```sh\ncputrain weights fetch efficientnet-lite0\n```\n```sh\ncputrain --model "
                                 "efficientnet-lite0 --weights imagenet --freeze all-but-head --data photos --out "
                                 "runs/a\ntest -s runs/a/first-weights.csv\n```\n")
        self.assertEqual(found, [])

    @unittest.skipUnless(MPIRUN, "this build has no MPI")
    def test_trainings_are_short_and_ranks_may_be_more_than_cores(self):
        found, _ = self.run_text("```sh\nmpirun -np 3 ./cputrain --data photos --epochs 20 --out runs/a\n"
                                 "grep -c '\"type\":\"epoch\"' runs/a/metrics.jsonl\n"
                                 "./cputrain predict --weights runs/a/weights.safetensors new.jpg\n```\n")
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()

"""The commands of one of the project's documents run, in order."""
import os
import unittest

import blocks
import documents

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class OurDocument(unittest.TestCase):
    """The one that the environment names."""

    def test_its_commands_run(self):
        document = documents.Document(os.environ["DOCUMENT"], ROOT)
        if not any(getattr(s, "is_run", False) for s in document.steps):
            return
        with blocks.Workplace(ROOT, os.environ["CPUTRAIN"], os.environ.get("CPUTRAIN_MPIRUN", "").split()) as workplace:
            found = blocks.run(document, workplace, print)
        self.assertFalse(found, "\n" + "\n".join(map(str, found)))


if __name__ == "__main__":
    unittest.main()

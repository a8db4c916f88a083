"""scripts/run with the program itself: what a newcomer sees first is a training that learns."""
import os
import shutil
import subprocess
import unittest

from program import PROGRAM, ProgramTest, ROOT

LEAST = 0.95


class FirstRun(ProgramTest):
    def test_two_epochs_tell_made_up_images_apart(self):
        os.mkdir(self.path("scripts"))
        for name in ("run", "help.sh"):
            shutil.copy(os.path.join(ROOT, "scripts", name), self.path("scripts"))
        self.tool("scripts/build", "#!/bin/bash\n")
        os.symlink(PROGRAM, self.path("cputrain"))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CPUTRAIN")}
        done = subprocess.run([self.path("scripts", "run")], text=True, timeout=300, env=clean,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = done.stdout.splitlines()
        head = next(i for i, line in enumerate(lines) if line.split()[:1] == ["epoch"])
        self.assertEqual(lines[head].split()[-1], "val_accuracy")
        self.assertEqual([line.split()[0] for line in lines[head + 1:head + 3]], ["1", "2"])
        self.assertGreaterEqual(float(lines[head + 2].split()[-1]), LEAST, done.stdout)


if __name__ == "__main__":
    unittest.main()

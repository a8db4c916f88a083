"""scripts/cmake/WriteCommit.cmake: the commit of a checkout, of none inside another, and nothing new to compile."""
import os
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "cmake")


@unittest.skipUnless(shutil.which("git") and shutil.which("cmake"), "needs git and cmake")
class Commit(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        self.root = os.path.join(holder.name, "project")
        os.mkdir(self.root)
        self.output = os.path.join(holder.name, "commit.cpp")
        self.template = self.write("commit.cpp.in", "@CPUTRAIN_COMMIT@")

    def write(self, name, text):
        path = os.path.join(self.root, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def git(self, *words):
        own = ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *own, *words], cwd=self.root, check=True, text=True, stdout=subprocess.PIPE)
        return done.stdout.strip()

    def commit(self, source=None, says="", words=(), **variables):
        """What is compiled; the build prints a line with `says`, or nothing."""
        done = subprocess.run(["cmake", *words, f"-DSOURCE={source or self.root}", f"-DTEMPLATE={self.template}",
                               f"-DOUTPUT={self.output}", "-P", os.path.join(SCRIPTS, "WriteCommit.cmake")], check=True,
                              text=True, capture_output=True, env={**os.environ, **variables})
        printed = done.stdout + done.stderr
        (self.assertIn if says else self.assertEqual)(says, printed)
        with open(self.output) as file:
            return file.read().strip()

    def test_follows_commits_and_tells_changed_files(self):
        self.assertEqual(self.commit(), "unknown")
        self.git("init", "-q")
        self.assertEqual(self.commit(says="unknown"), "unknown", "there is no commit yet")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        first = self.git("rev-parse", "--short", "HEAD")
        self.assertEqual(self.commit(), first)
        os.utime(self.output, (1, 1))
        self.commit()
        self.assertEqual(os.stat(self.output).st_mtime, 1, "nothing new, so nothing to compile")
        self.write("more", "")
        self.git("add", "more")
        self.assertEqual(self.commit(), first + "-dirty")
        self.git("commit", "-qm", "second")
        os.mkdir(os.path.join(self.root, "results"))
        self.write("results/table", "")
        self.git("add", "results")
        self.assertEqual(self.commit(), self.git("rev-parse", "--short", "HEAD"), "nothing is compiled of results")
        self.git("tag", "v1")
        self.assertEqual(self.commit(), self.git("rev-parse", "--short", "HEAD"))

    def test_a_checkout_of_another_user_is_unknown_and_said(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        other = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}  # git's own tests take it
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.root, env={**os.environ, **other},
                               capture_output=True)
        if asked.returncode == 0:
            self.skipTest("this git takes checkouts of others")
        self.assertEqual(self.commit(says="safe.directory", **other), "unknown")
        self.assertEqual(self.commit(words=["-DCMAKE_DISABLE_FIND_PACKAGE_Git=ON"], says="git is not installed"), "unknown")

    def test_a_tarball_inside_another_checkout_is_unknown(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        inside = os.path.join(self.root, "unpacked")
        os.mkdir(inside)
        self.assertEqual(self.commit(inside), "unknown")


if __name__ == "__main__":
    unittest.main()

"""scripts/setup from outside, with stand-ins for the package manager."""
import os
import re
import shutil
import subprocess
import unittest

from program import ProgramTest, ROOT

TOOLS = ("bash", "awk", "sed", "dirname", "basename", "cat", "env", "grep", "tr", "mktemp", "rm", "tail")
# What is installed, and what the release has, are files with a name a line.
DPKG_QUERY = 'for p in $(cat installed); do printf "installed=%s " "$p"; done'
APT_CACHE = 'if grep -qx "$2" known; then echo "$2 | 1.0 | somewhere"; fi'
APT_GET = '[[ " $* " != *" install "* ]] || printf "%s\\n" "$@" >asked'


class Setup(ProgramTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("tools"))
        for name in TOOLS:
            os.symlink(shutil.which(name), self.path("tools", name))
        self.tool("sudo", 'while [[ $1 == -* ]]; do shift; done; exec "$@"')
        with open(os.path.join(ROOT, "scripts", "packages.txt")) as lines:
            self.packages = [line.split()[:2] for line in lines if line[0].islower()]

    def tool(self, name, text):
        super().tool(self.path("tools", name), "#!/bin/bash\n" + text + "\n")

    def names(self, *groups):
        return [name for group, name in self.packages if group in groups]

    def debian(self, installed, known):
        self.tool("dpkg-query", DPKG_QUERY)
        self.tool("apt-cache", APT_CACHE)
        self.tool("apt-get", APT_GET)
        for file, names in (("installed", installed), ("known", known)):
            self.write(file, "".join(name + "\n" for name in names))

    def setup_packages(self, *groups, **environment):
        return subprocess.run([os.path.join(ROOT, "scripts", "setup"), *groups], cwd=self.folder, text=True, timeout=60,
                              env={"PATH": self.path("tools"), "TMPDIR": self.folder, **environment},
                              stdin=subprocess.DEVNULL, capture_output=True)

    def asked(self):
        words = self.text_of("asked").split()
        return [word for word in words[words.index("install") + 1:] if word[0] != "-"]

    def test_elsewhere_says_what_to_install_for_which_purpose(self):
        done = self.setup_packages("build")
        self.assertEqual(done.returncode, 2)
        needed, _, others = done.stderr.partition("Not needed now:")
        self.assertIn("scripts/run", needed)
        for name in self.names("build"):
            self.assertRegex(needed, rf"(?m)^  {re.escape(name)} ", name)
        for group in {group for group, _ in self.packages} - {"build"}:
            self.assertIn(f"({group})", others)
            for name in self.names(group):
                self.assertRegex(others, rf"(?m)^  {re.escape(name)} ", name)
        self.assertIn("CPUTRAIN_SKIP_SETUP=1", others)
        self.assertEqual(self.setup_packages("build", CPUTRAIN_SKIP_SETUP="1").returncode, 0)

    def test_installs_what_is_missing(self):
        names = self.names("build")
        self.debian(names[2:], names)
        done = self.setup_packages("build")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.asked(), names[:2])

    def test_leaves_out_what_a_release_lacks_and_only_tests_need(self):
        optional = self.names("optional")
        self.debian([], optional[1:])
        done = self.setup_packages("optional")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"this release has no {optional[0]}", done.stdout)
        self.assertEqual(self.asked(), optional[1:])

    def test_names_what_a_release_lacks_and_a_group_needs(self):
        dev = self.names("dev")
        self.debian([], dev[2:])
        done = self.setup_packages("dev")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"this release has no {dev[0]} {dev[1]}, which dev needs", done.stderr)
        self.assertFalse(os.path.exists(self.path("asked")))


if __name__ == "__main__":
    unittest.main()

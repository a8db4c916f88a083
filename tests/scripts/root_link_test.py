"""scripts/cmake/RootLink.cmake: ./cputrain leads to the program that was built last, and a build never fails for it."""
import os
import subprocess
import unittest

from program import ProgramTest, ROOT


class RootLink(ProgramTest):
    def setUp(self):
        super().setUp()

    def link(self, root, program):
        done = subprocess.run(["cmake", f"-DROOT={root}", f"-DPROGRAM={program}", "-P",
                               os.path.join(ROOT, "scripts", "cmake", "RootLink.cmake")], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def program(self, *folders):
        path = os.path.join(self.folder, *folders, "cputrain")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.tool(path, "#!/bin/sh\necho " + "/".join(folders))
        return path

    def said_by(self, link):
        return subprocess.run([link], text=True, check=True, stdout=subprocess.PIPE).stdout.strip()

    def test_moves_with_its_folder_where_the_program_is_inside(self):
        root, moved = os.path.join(self.folder, "root"), os.path.join(self.folder, "moved")
        self.assertEqual(self.link(root, self.program("root", "build")), "")
        self.assertEqual(os.readlink(root + "/cputrain"), "build/cputrain")
        os.rename(root, moved)
        self.assertEqual(self.said_by(moved + "/cputrain"), "root/build")

    def test_leads_to_the_program_that_was_built_last(self):
        root, build = os.path.join(self.folder, "root"), self.program("root", "build")
        for last in (build, self.program("root-2", "build"), build, self.program("root", "build-dev")):
            self.assertEqual(self.link(root, last), "")
            self.assertTrue(os.path.samefile(root + "/cputrain", last), last)
            self.assertEqual(os.path.isabs(os.readlink(root + "/cputrain")), "root-2" in last, "outside of root")
        self.assertEqual(self.link(root, self.program("elsewhere")), "")
        self.assertEqual(os.readlink(root + "/cputrain"), os.path.join(self.folder, "elsewhere", "cputrain"))

    def test_one_line_where_it_cannot_be_made(self):
        program = self.program("build")
        taken = os.path.join(self.folder, "root", "cputrain", "file")
        os.makedirs(taken)
        for root in ("/proc", os.path.join(self.folder, "root")):  # where root itself may not write, and a folder
            said = self.link(root, program)
            self.assertEqual(said.count("\n"), 1, said)
            for word in (root + "/cputrain", program, "CPUTRAIN_ROOT_LINK=OFF"):
                self.assertIn(word, said)
        self.assertTrue(os.path.isdir(taken))

    def test_a_link_that_is_right_is_left_alone(self):
        root = os.path.join(self.folder, "root")
        program = self.program("root", "build")
        self.link(root, program)
        before = os.lstat(root + "/cputrain").st_ino
        self.assertEqual(self.link(root, program), "")
        self.assertEqual(os.lstat(root + "/cputrain").st_ino, before)


if __name__ == "__main__":
    unittest.main()

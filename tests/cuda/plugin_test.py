"""Which plugin the program loads, and what it says of files that it does not load: it starts whatever they are."""
import json
import os
import shutil
import subprocess
import unittest

from program import PROGRAM, SMALL, ProgramTest

PLUGIN = "libcputrain_cuda_emulated.so"
BUILD, STRANGERS = os.environ["CUDA_TESTS_BUILD"], os.environ["CUDA_TESTS_STRANGERS"]
TRAIN = ["train", *SMALL, "--backend", "cuda", "--precision", "exact", "--steps", "1", "--out", "x"]


class Plugin(ProgramTest):
    def folder_with(self, content=None, copy=None):
        folder = self.path("plugins")
        os.makedirs(folder, exist_ok=True)
        if copy:
            shutil.copy(copy, os.path.join(folder, PLUGIN))
        elif content is not None:
            with open(os.path.join(folder, PLUGIN), "wb") as file:
                file.write(content)
        return folder

    def expect_refused(self, reason, **folder):
        """Training ends with 2 and the reason; info has the reason and goes on; other backends do not care."""
        here = {"CPUTRAIN_PLUGINS": self.folder_with(**folder)}
        done = self.expect(2, *TRAIN, says=["--backend cuda", reason, "or use another --backend"], **here)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertFalse(os.path.exists(self.path("x")))
        info = json.loads(self.expect(0, "info", "--json", "-", **here).stdout)
        self.assertFalse(info["cuda"]["available"])
        self.assertIn(reason, info["cuda"]["reason"])
        self.expect(0, "info", says=["GPUs for --backend cuda: none here", reason], **here)
        self.expect(0, *SMALL, "--steps", "1", "--limit-val", "0", "--backend", "reference", "--out", "y",
                    "--overwrite", **here)

    def test_one_that_is_not_there(self):
        self.expect_refused("is not there")

    def test_a_program_that_was_copied_alone(self):
        shutil.copy(PROGRAM, self.path("alone"))
        done = self.run_program("info", "--json", "-")
        self.assertTrue(json.loads(done.stdout)["cuda"]["available"], done.stderr)
        alone = subprocess.run([self.path("alone"), *TRAIN], cwd=self.folder, text=True, capture_output=True)
        self.assertEqual(alone.returncode, 2, alone.stderr)
        self.assertIn(f"the plugin {PLUGIN} is not there (looked for in {self.folder} and ", alone.stderr)
        self.assertIn("CPUTRAIN_PLUGINS=FOLDER", alone.stderr)

    def test_an_installation_has_it_in_lib(self):
        for folder in ("bin", "lib/cputrain"):
            os.makedirs(self.path(folder))
        shutil.copy(PROGRAM, self.path("bin", "cputrain"))
        shutil.copy(os.path.join(BUILD, PLUGIN), self.path("lib/cputrain"))
        done = subprocess.run([self.path("bin", "cputrain"), "info", "--json", "-"], text=True, capture_output=True)
        self.assertTrue(json.loads(done.stdout)["cuda"]["available"], done.stdout + done.stderr)

    def test_a_text(self):
        self.expect_refused("it is no shared library", content=b"#!/bin/sh\necho not me\n" * 10)

    def test_an_empty_file(self):
        self.expect_refused("it is no shared library", content=b"")

    def test_a_folder(self):
        os.makedirs(self.path("plugins", PLUGIN))
        self.expect_refused("it is no file")

    def test_one_that_was_cut_short(self):
        with open(os.path.join(BUILD, PLUGIN), "rb") as file:
            whole = file.read()
        for size in (100, len(whole) // 2, len(whole) - 1):
            with self.subTest(size=size):
                self.expect_refused("it was cut short", content=whole[:size])

    def test_a_library_of_somebody_else(self):
        self.expect_refused("it is no plugin of cputrain", copy=os.path.join(STRANGERS, "foreign.so"))

    def test_one_of_another_build(self):
        self.expect_refused("it is of another build (cputrain 0.0.9, GNU 9.4.0, and this program cputrain ",
                            copy=os.path.join(STRANGERS, "old.so"))

    def test_one_without_its_function(self):
        self.expect_refused("it has no function cputrain_cuda_plugin", copy=os.path.join(STRANGERS, "without_entry.so"))

    def test_which_kernels_is_said_by_a_variable(self):
        for kind in ("plain", "checked"):
            info = json.loads(self.expect(0, "info", "--json", "-", CPUTRAIN_EMULATED=kind).stdout)
            self.assertEqual([d["emulated"] for d in info["cuda"]["devices"]], [True])
        self.expect(2, *TRAIN, CPUTRAIN_EMULATED="chekced", says=["CPUTRAIN_EMULATED=chekced", "plain or checked"])


if __name__ == "__main__":
    unittest.main()

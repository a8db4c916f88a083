"""A day in a folder of its own, for tests of its steps."""
import os
import re
import subprocess
import sys
import time

from program import ProgramTest, ROOT

sys.dont_write_bytecode = True
SCRIPT = os.path.join(ROOT, "scripts", "gpu_day")
STAND_INS = os.path.join(ROOT, "tests", "scripts", "gpu_day_stand_ins")
sys.path[:0] = [os.path.join(ROOT, "scripts", "gpu"), os.path.join(ROOT, "scripts", "gpu", "day")]
import bundle
import context
import processes
import results


def why_no_pack(program):
    """Sanitizers' libraries are no part of a release, and some builds have no emulated device."""
    build = os.path.dirname(program)
    if not os.path.exists(os.path.join(build, "libcputrain_cuda_emulated.so")):
        return "this build has no emulated device"
    if not os.path.exists(os.path.join(build, "libcputrain_cuda.so")):
        return "this build has no backend cuda, as nvcc was not found"
    needed = subprocess.run(["ldd", program], text=True, capture_output=True).stdout
    return "the program is built with a sanitizer" if re.search(r"lib[atu]\w*san\.so", needed) else None


class Folder(ProgramTest):
    def setUp(self):
        super().setUp()
        self.commands = processes.Commands(self.path("log"), self.path("pack"))

    def log(self):
        return self.text_of("log")

    def day(self, seconds=100, quick=False, emulated=True):
        os.makedirs(self.path("pack"), exist_ok=True)
        found = results.Results(self.folder)
        found.head = {"device": "a device", "quick": quick, "pack": "abc", "date": "today", "seconds": 1.0, "budget": 2,
                      "emulated": emulated, "packed": {"program": "cputrain"}}
        return context.Day(bundle.Bundle(self.path("pack")), self.commands, found, seconds, quick, emulated,
                           time.monotonic())

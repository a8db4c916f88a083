"""The kept tables of what kernels take and of their instructions: no kernel spills, and main loops are short; and
disassembled code is read as it stands. compiled_kernels_test.py compares the tables with the kernels."""
import os
import re
import subprocess
import sys
import unittest

ROOT = os.environ["CUDA_TESTS_ROOT"]
SCRIPTS = os.path.join(ROOT, "scripts")
KERNELS = os.path.join(ROOT, "backends", "cuda", "kernels")
SKIPPED = 77
sys.path.insert(0, os.path.join(SCRIPTS, "gpu"))
import sass

# As nvdisasm 13.5 prints a kernel: a short loop without HMMA, and one with two of them that has a way around one.
CODE = """
	.section	.text._Z6kernelv,"ax",@progbits
_Z6kernelv:
.text._Z6kernelv:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/              @!P0 IMAD.IADD R0, R0, 0x1, -R9 ;
        /*0020*/               @P0 BRA `(.L_x_0) ;
.L_x_1:
        /*0030*/                   HMMA.1688.F32.TF32 R4, R8, R10, R4 ;
        /*0040*/                   HMMA.1688.F32.TF32 R4, R8, R12, R4 ;
        /*0050*/              @!P1 BRA `(.L_x_2) ;
        /*0060*/               @P2 LDGSTS.E.BYPASS.128 [R2], desc[UR4][R6.64], P3 ;
.L_x_2:
        /*0070*/                   FADD R5, R4, R5 ;
        /*0080*/                   HMMA.1688.F32.TF32 R4, R8, R10, R4 ;
        /*0090*/              @!UP0 BRA `(.L_x_1) ;
        /*00a0*/                   EXIT ;
.L_x_3:
        /*00b0*/                   BRA `(.L_x_3);
        /*00c0*/                   NOP;
.L_x_4:
"""


class Reading(unittest.TestCase):
    def test_the_main_loop_is_found_and_counted(self):
        kernel, = sass.kernels_in(CODE)
        self.assertEqual(kernel.name, "_Z6kernelv")
        self.assertEqual(len(kernel.instructions), 11)  # without what fills the section up
        loop, share = kernel.main_loop()
        self.assertEqual(sass.counted(loop), {"HMMA": 3, "BRA": 2, "LDGSTS": 1, "FADD": 1})
        self.assertEqual(share, [])
        self.assertEqual(sass.runs_of("HMMA", loop), {2: 1, 1: 1})

    def test_what_warps_share_out_is_counted_apart(self):
        kernel, = sass.kernels_in(CODE.replace("LDGSTS.E.BYPASS.128 [R2], desc[UR4][R6.64], P3", "HMMA.1688.F32.TF32"))
        loop, share = kernel.main_loop()
        self.assertEqual(sass.counted(loop), {"HMMA": 3, "BRA": 2, "FADD": 1})
        self.assertEqual(sass.counted(share), {"HMMA": 1})

    def test_a_kernel_without_such_a_loop_is_refused(self):
        for code in (CODE.replace("HMMA", "FFMA"), CODE.replace("BRA `(.L_x_1)", "BRA `(.L_x_3)")):
            kernel, = sass.kernels_in(code)
            with self.assertRaises(ValueError):
                kernel.main_loop()


class Refusals(unittest.TestCase):
    def script(self, *words, name="kernel_instructions", **environment):
        done = subprocess.run([os.path.join(SCRIPTS, name), *words], text=True, capture_output=True,
                              env={**os.environ, **environment})
        self.assertNotIn("Traceback", done.stderr)
        return done

    def test_unknown_words_are_named(self):
        for words, unknown in ((["--bogus"], "--bogus"), (["--write", "more"], "more"),
                               (["--write", "--write"], "--write")):
            for name in ("kernel_instructions", "kernel_resources"):
                done = self.script(*words, name=name)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(f"unknown word {unknown} ", done.stderr)

    def test_a_tool_that_is_none_skips(self):
        nvcc = {} if os.access(os.environ.get("NVCC", ""), os.X_OK) else {"NVCC": "/bin/true"}
        for tool, why in (("/bin/true", "tells no release"), ("/bin/false", "ends with 1"),
                          ("/nowhere", "No such file")):
            done = self.script(NVDISASM=tool, **nvcc)
            self.assertEqual(done.returncode, SKIPPED, done.stderr)
            if not nvcc:
                self.assertIn(f"{tool} is no tool of CUDA that starts here", done.stdout)
                self.assertIn(why, done.stdout)
                self.assertIn("NVDISASM", done.stdout)
        done = self.script(name="kernel_resources", NVCC="/bin/true")
        self.assertEqual(done.returncode, SKIPPED, done.stderr)
        self.assertIn("/bin/true is no tool of CUDA that starts here (--version tells no release)", done.stdout)

    def test_no_nvcc_to_check_with(self):
        for nvcc, says in (("/nowhere", "cannot be started"), ("/bin/true", "is not of CUDA 12")):
            done = self.script(name="check_cuda12", NVCC=nvcc)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"\Acheck_cuda12: {nvcc} {says}.*NVCC.*\n\Z")


def kept(name, folder=os.path.join(ROOT, "results", "gpu-kernels")):
    with open(os.path.join(folder, name)) as file:
        return file.read()


class Tables(unittest.TestCase):
    def test_nothing_spills(self):
        head, _, *rows = kept("resources.txt").splitlines()
        self.assertRegex(head, r"^nvcc \d+\.\d+")
        files = {os.path.relpath(os.path.join(folder, name), KERNELS)
                 for folder, _, names in os.walk(KERNELS) for name in names if name.endswith(".cu")}
        seen = set()
        for row in rows:
            name, *figures = row.split(maxsplit=7)[:7]
            seen.add(name)
            self.assertEqual((figures[2], figures[5]), ("0", "0"), f"spills: {row}")
            for registers in (figures[0], figures[3]):
                self.assertTrue(1 <= int(registers) <= 255, row)
        with_kernels = {name for name in files if re.search("__global__", kept(name, KERNELS))}
        self.assertLessEqual(with_kernels, seen)  # others have theirs from templates in headers
        self.assertLessEqual(seen, files)

    def test_main_loops_have_the_products_of_their_tiles(self):
        """A warp multiplies 16 rows by 8 columns with an instruction, of which a step has four; exact makes three
        products of one. Loops of large tiles have few instructions besides, on an H100."""
        seen, architecture = set(), None
        for line in kept("instructions.txt").splitlines():
            architecture = line.split(":")[0] if line.startswith("sm_") else architecture
            product = re.search(r"gemm<(\w+)Numbers,GemmTile<(\d+),(\d+),(\d+),(\d+),\d+>,(\w+)>  (.*)", line)
            if not product:
                continue
            numbers, *sides, direction, runs = product.groups()
            *tile, rows, columns = map(int, sides)
            outside, loop, share, per_tensor, tensor, share_tensor, *others = line.split()[:16]
            products = 3 if numbers == "Exact" else 1
            self.assertEqual(int(tensor), rows // 16 * (columns // 8) * 4 * products, line)
            self.assertEqual(int(tensor) + sum(int(n) for n in others), int(loop), line)
            self.assertEqual(float(per_tensor), round(int(loop) / int(tensor), 2), line)
            lengths = [run.split("x") for run in runs.split()]
            self.assertEqual(sum(int(often) * int(length) for often, length in lengths), int(tensor), line)
            self.assertGreater(int(outside), 0)
            self.assertEqual(int(share_tensor) > 0, direction == "BackwardWeights", line)
            self.assertEqual(int(share) > 0, direction == "BackwardWeights", line)
            if rows == 64 and architecture == "sm_90a":
                self.assertLessEqual(float(per_tensor), self.most(numbers, direction, tile), line)
            seen.add(line.split("gemm<")[1])
        self.assertGreaterEqual(len(seen), 3 * (4 + 5 + 5) + 4)  # directions; tiles of exact, tf32, bf16; 256 rows

    def most(self, numbers, direction, tile):
        """Loads of TF32 numbers that lie side by side take an instruction for one or two."""
        if numbers == "Exact":
            return 4.5
        return 3.4 if (numbers, direction, tile) == ("Tf32", "BackwardWeights", [128, 64]) else 3.0


if __name__ == "__main__":
    unittest.main()

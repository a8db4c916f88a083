"""How many files does a new layer, optimizer, flag, ... touch? The table "Where to add" in src/README.md says which. Here
each of its counted rows is held against something of that kind that is there already: the files whose code names it
are those of the row, no more and no fewer."""
import os
import re
import subprocess
import unittest

import modules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE = (".h", ".cpp", ".inl", ".cu", ".cuh", "CMakeLists.txt")

# The row's first cell, and how code names one that is there.
SAMPLES = {
    "a flag that decides how a network learns": r"label_smoothing\b",
    "a command": r"\bmake_export\b|\bexport\.cpp",
    "an update rule": r"\bLamb\b",
    "what is done to gradients before the update": r"\bClip(Values|Element)\b",
    "an algorithm of allreduce": r"(?i)rabenseifner",
    "a log of a training (a word of `--log-format`)": r"(?i)mlperf",
    "an image format": r"(?i)webp",
    "a layer without weights": r"\bLeakyRelu\b",
    "a layer with weights": r"(LayerNorm|layer_norm)(?!s)",
    "its operators and kernels": r"(LayerNorm|layer_norm)(?!s)",
    "operators and kernels of an elementwise layer": r"(?i)silu",
    "a backend": r"\breference::\w+|cputrain_reference\b|no_reference",
    "a kernel for GPUs": r"(?i)dropout",
}
# Where a row tells of some backends alone.
WITHIN = {"a kernel for GPUs": "backends/cuda/",
          "a layer with weights": ("src/", "backends/reference/", "backends/onnx/"),
          "its operators and kernels": ("backends/cpu/", "backends/cuda/"),
          "operators and kernels of an elementwise layer": ("backends/cpu/", "backends/cuda/")}


def code_of(path):
    """Without comments."""
    with open(os.path.join(ROOT, path), errors="replace") as file:
        text = file.read()
    if path.endswith(".txt"):
        return re.sub(r"#.*", "", text)
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def product_files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "src", "backends", "datasets"], capture_output=True,
                            text=True)
    if listed.returncode == 0:
        return listed.stdout.split()
    return [f for f in modules.Tree(ROOT).files if f.startswith(modules.TOPS)]


def rows():
    """The paths in backticks of each row of the table, by its first cell."""
    with open(os.path.join(ROOT, "src/README.md")) as file:
        table = file.read().partition("## Where to add")[2]
    found = {}
    for line in table.splitlines():
        cells = line.strip("|").split("|")
        if line.startswith("| ") and len(cells) == 2:
            words = re.findall(r"`([\w./{},*-]+)`", cells[1])
            found[cells[0].strip()] = [path for word in words for path in modules.alternatives(word)]
    return found


class WhereToAdd(unittest.TestCase):
    def test_rows_name_the_files_that_a_sample_is_in(self):
        files = [f for f in product_files() if f.endswith(CODE)]
        table = rows()
        for kind, pattern in SAMPLES.items():
            with self.subTest(kind=kind):
                self.assertIn(kind, table)
                named = {path if path in files else f"src/{path}" for path in table[kind]} & set(files)
                touched = {f for f in files if f.startswith(WITHIN.get(kind, "")) and
                           (re.search(pattern, code_of(f)) or re.search(pattern, f))}
                self.assertEqual(named, touched, f"\nmissing in the row: {sorted(touched - named)}\n"
                                                 f"without the sample: {sorted(named - touched)}")


if __name__ == "__main__":
    unittest.main()

"""What kernels are compiled to, by disassembly: each object, and each function with an instruction set of its own, has
no instruction beyond the set that is asked for before it is called. AMX instructions have the operands that their
kernel means, also on machines that cannot run them.   KERNELS_BUILD: the folder of the build"""
import json
import os
import re
import shutil
import subprocess
import unittest

BUILD = os.environ["KERNELS_BUILD"]
V3 = {"vex", "avx", "fma", "bmi", "sse4"}
V4 = V3 | {"avx512"}
# What `instruction_set.h`, `clones.h` and the loader's choice ask for, by the names of functions.
SETS_OF_NAMES = ((r"\[clone \.arch_x86_64_v4|_512\(|::avx512::(?!.*kernels\(\))", V4),
                 (r"\[clone \.avx2", {"vex", "avx", "sse4"}), (r"_256\(|::avx2::", V3))
# Mnemonics by instruction set, first match; what is encoded by VEX or EVEX beside them is AVX or AVX-512.
SETS = ((r"tile|ldtilecfg|sttilecfg|tdp", "amx"), (r"v(dpbf16ps|cvtne2?ps2bf16)", "bf16"),
        (r"vfn?m(add|sub)|vcvtp[hs]2p[hs]", "fma"), (r"k(mov|and|or|xor|xnor|not|add|test|shift|unpck)", "avx512"),
        (r"v(pdp[bw]|pmadd52|perm(b|[it]2b)$|pmultishiftqb|p(compress|expand)[bw]|psh[lr]d|popcnt[bwdq]|pshufbitqmb)|"
         r"v(gf2p8|aes|pclmul)|v\w+[ps]h$", "newer"),
        (r"(andn|bextr|bls(i|r|msk)|bzhi|mulx|pdep|pext|rorx|s[ah][lr]x|lzcnt|movbe)[lqw]?$", "bmi"),
        (r"pshufb|palignr|pabs|phadd|phsub|pmaddubsw|pmulhrsw|psign|haddp|hsubp|addsubp|lddqu|movs[hl]dup", "sse4"),
        (r"movddup|p?blend|dpp|extractps|insertps|movntdqa|mpsadbw|packusdw|pcmp(eq|gt)q|pcmp[ei]str|popcnt", "sse4"),
        (r"crc32|p(ext|ins)r[bdq]|pm(ax|in)(s[bd]|u[wd])|pmov[sz]x|pmuldq|pmulld|ptest|round[ps]", "sse4"))


def set_of(code, mnemonic):
    for pattern, name in SETS:
        if re.match(pattern, mnemonic):
            return name
    return {"62": "avx512", "c4": "avx", "c5": "avx"}.get(code.split()[0], "base")


def set_of_flags(command):
    """An object's; None where a person chose another one for the whole build."""
    marches = re.findall(r"-march=(\S+)", command)
    known = {"x86-64-v4": V4, "x86-64-v3": V3, "x86-64": set()}
    if any(march not in known for march in marches):
        return None
    return (known[marches[-1]] if marches else set()) | ({"bf16"} if "-mavx512bf16" in command else set())


def allowed(function, own):
    found = next((names for pattern, names in SETS_OF_NAMES if re.search(pattern, function)), set())
    return own | found | ({"amx"} if "HardwareTiles" in function and "bf16" in own else set())


def functions(path):
    """Each function's name with its instructions: bytes, mnemonic, operands."""
    text = subprocess.run(["objdump", "-d", "-C", "--insn-width=16", path], check=True, text=True,
                          capture_output=True).stdout
    for block in re.split(r"(?m)^[0-9a-f]+ <", text)[1:]:
        name, _, body = block.partition(">:\n")
        yield name, [(code, *(words.split(None, 1) + [""])[:2])
                     for code, words in re.findall(r"(?m)^ *[0-9a-f]+:\t([0-9a-f ]+)\t(.+)$", body)]


def beyond(name, instructions, own):
    """What of a function may not be there, once each."""
    may = allowed(name, own) | {"base"}
    return sorted({f"{kind}: {words[1]} in {name[:120]}" for words in instructions
                   if (kind := set_of(*words[:2])) not in may})


@unittest.skipUnless(shutil.which("objdump"), "needs objdump")
class Instructions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Objects of what has kernels, with their instruction sets."""
        cls.objects = {}
        with open(os.path.join(BUILD, "compile_commands.json")) as file:
            for command in json.load(file):
                found = re.search(r" -o ((?:backends/cpu|datasets)/\S+\.o) ", command["command"])
                if found:
                    cls.objects[os.path.join(BUILD, found[1])] = set_of_flags(command["command"])
        if None in cls.objects.values() or any(own for path, own in cls.objects.items() if "/Unity/" in path):
            raise unittest.SkipTest("this build is for one CPU")

    def test_are_of_the_set_that_is_asked_for(self):
        for path, own in self.objects.items():
            wrong = [line for name, code in functions(path) for line in beyond(name, code, own)]
            self.assertEqual(wrong[:9], [], path)
        self.assertEqual([sum(own >= least for own in self.objects.values()) for least in (V4 | {"bf16"}, V4, V3)],
                         [1, 4, 8], "objects with BF16, AVX-512 and AVX2; a new one is counted here")

    def test_are_not_the_linkers_to_choose(self):
        """A function of several objects is taken from any of them: from none that other CPUs cannot run."""
        for path in (path for path, own in self.objects.items() if own):
            symbols = subprocess.run(["nm", "-C", path], check=True, text=True, capture_output=True).stdout
            self.assertEqual(re.findall(r"(?m)^\w* [WVu] (?!DW\.ref).*$", symbols), [], path)

    def test_of_tiles_have_the_operands_of_their_kernel(self):
        """tdpbf16ps has b, a and the sums, as AT&T order has them: A lies in tiles 4 and 5, B in 6 and 7."""
        path = next(path for path, own in self.objects.items() if "bf16" in own)
        product = {4: {6: 0, 7: 1}, 5: {6: 2, 7: 3}}
        kernels = {}
        for name, instructions in functions(path):
            tiles = [(word, *map(int, re.findall(r"%tmm(\d)", operands))) for code, word, operands in instructions
                     if set_of(code, word) == "amx"]
            if tiles:
                kernels[re.search(r"::(\w+)<", name)[1]] = tiles
        self.assertEqual(kernels.pop("multiply_add_once")[:7], [
            ("sttilecfg",), ("ldtilecfg",), ("tileloadd", 0), ("tileloadd", 4), ("tileloadd", 6),
            ("tdpbf16ps", 6, 4, 0), ("tilestored", 0)])
        self.assertEqual(set(kernels), {"multiply_often", "convolve", "add_gradients", "multiply"})
        for name, tiles in kernels.items():
            products = [words[1:] for words in tiles if words[0] == "tdpbf16ps"]
            self.assertTrue(products, name)
            for b, a, c in products:
                self.assertEqual(product.get(a, {}).get(b), c, name)
            self.assertEqual(len(set(products)), 4, name)
            self.assertEqual({words[1] for words in tiles if words[0] == "tilestored"}, {0, 1, 2, 3}, name)

    def test_wrong_ones_are_found(self):
        for code, word, own, name, wrong in (
                ("62 f1 7c", "vmovups", V3, "f(int)", 1), ("62 f1 7c", "vmovups", V4, "f(int)", 0),
                ("62 f2 76", "vdpbf16ps", V4, "f(int)", 1), ("c5 fc 28", "vmovaps", set(), "f(int)", 1),
                ("c5 fc 28", "vmovaps", set(), "f_256(int)", 0), ("62 f2 f5", "vfmadd213pd", set(), "f_512(int)", 0),
                ("c4 e2 f5", "vfmadd213pd", set(), "f() [clone .avx2]", 1), ("66 0f 38", "pmulld", set(), "f()", 1),
                ("c4 e2 4a", "tdpbf16ps", V4 | {"bf16"}, "f(int)", 1), ("62 f2 7d", "vpdpbusd", V4, "f(int)", 1),
                ("62 f1 7c", "vmovups", set(), "g() [clone .arch_x86_64_v4]", 0), ("0f 58", "addps", set(), "f()", 0),
                ("c4 e3 7d", "vcvtps2ph", V3, "f(int)", 0), ("62 f5 7c", "vaddph", V4, "f(int)", 1),
                ("c5 f8 92", "kmovw", V3, "f(int)", 1), ("62 f1 7c", "vmovups", set(), "a::avx512_kernels()", 1)):
            self.assertEqual(len(beyond(name, [(code, word, "")], own)), wrong, word)


if __name__ == "__main__":
    unittest.main()

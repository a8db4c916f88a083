"""scripts/mutants: what it draws from lines of C++, and its verdicts on a tiny project of its own."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "mutation"))
import schemata
import suites

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
include_directories(src .)
enable_testing()
add_executable(test_optim tests/optim.cpp src/optim/step.cpp)
add_test(NAME optim COMMAND test_optim)
add_test(NAME above COMMAND sh -c "$<TARGET_FILE:test_optim> killed; test $? = 137")
add_test(NAME broken COMMAND test_optim broken)
set_tests_properties(optim PROPERTIES LABELS optim)
"""
PROJECT = {
    "CMakeLists.txt": CMAKE,
    "CMakePresets.json": '{"version": 6, "configurePresets": [{"name": "release", "generator": "Ninja", '
                         '"binaryDir": "${sourceDir}/build"}]}',
    "src/optim/step.h": "#pragma once\nconstexpr int next(int x) {\n  return x + 1;\n}\nstatic_assert(next(1) == 2);\n"
                        "int limited(int x);\nint unused(int x);\nint last(int x);\n",
    "src/optim/loops.inl": "int half(int x) { return x / 2; }\n",
    "src/optim/step.cpp": '#include "optim/step.h"\nint limited(int x) { return x > 5 ? 5 : x; }\n'
                          "int unused(int x) { return x * 2; }\nint last(int x) { return -x; }\n",
    "tests/optim.cpp": '#include <unistd.h>\n#include <csignal>\n#include <cstdio>\n#include <cstdlib>\n'
                       '#include "optim/step.h"\nnamespace tiny {\n#include "src/optim/loops.inl"\n}\n'
                       "int main(int count, char** words) {\n"
                       '  if (std::getenv("WAITS")) std::printf("%d\\n", getpid()), std::fflush(stdout), pause();\n'
                       "  if (count > 1) return words[1][0] == 'b' ? 3 : std::raise(last(-SIGKILL) + next(0) - 1);\n"
                       "  return next(count) == 2 && limited(count + 6) == 5 && tiny::half(8) == 4 ? 0 : 1;\n}\n",
}
LIST = [("next", "step.h", "x + 1", "x - 1"), ("limit", "step.cpp", "x > 5", "x >= 5"),
        ("unused", "step.cpp", "x * 2", "x / 2"), ("last", "step.cpp", "-x", "x"),
        ("half", "loops.inl", "x / 2", "x / 3"),
        ("wrong", "step.cpp", "5 : x", "five : x"), ("gone", "step.cpp", "x > 6", "x > 7")]


def schemas(text, *operators):
    """Those of all candidates, or of the operators that are named."""
    found = schemata.candidates("optim", "f.cpp", text)
    return [m.schema(7, text).replace("mutant_is(7)", "M") for m in found if not operators or m.operator in operators]


class Schemata(unittest.TestCase):
    def test_an_expression_ends_where_its_operators_do(self):
        for text, expected in (
                ("return a < b ? a : b;", "(M ? (a <= b) : (a < b))"),
                ("x = c ? d : y == z;", "(M ? (y != z) : (y == z))"),
                ("if (c) x += f(y);", "(M ? (x -= f(y)) : (x += f(y)))"),
                ("if (c) { f(); } x += y;", "(M ? (x -= y) : (x += y))"),
                ("for (int i = k; i < n.size(); ++i) f(i);", "(M ? (i <= n.size()) : (i < n.size()))"),
                ("  } g(a, (b - c)[2],\n d);", "(M ? (b + c) : (b - c))"),
                ("f(a, std::min(x, y) * z, b);", "(M ? (std::max(x, y) * z) : (std::min(x, y) * z))"),
                ("  { f(); }\n  return T{x} /\n      y;  // half", "(M ? (T{x} * y) : (T{x} /\n      y))"),
                ("return !a || b;", "(M ? (!a && b) : (!a || b))"),
                ("auto x = g({.at = a > b});", "(M ? (a >= b) : (a > b))")):
            with self.subTest(text):
                self.assertIn(expected, schemas(text, "relational", "arithmetic", "logical", "min_max"))

    def test_constants_conditions_and_statements(self):
        for text, expected in (
                ("x = i | 1.0F;", ["(M ? (i | 0.0F) : (i | 1.0F))"]), ("x = 10 | 0x1 | a1 | 1e-9 | 0.5;", []),
                ("f(T{0} & x);", ["(M ? (T{1} & x) : (T{0} & x))"]), ("int x{0};", []),
                ('s = "a" + b;', []), ("while (true) f();", []),
                ("f(true);", ["(M ? (false) : (true))"]),
                ("std::array<int, 1> x; // 1\n#if 1\n", []), ('f("1 < 2", \'1\', R"(0)");', [])):
            with self.subTest(text):
                self.assertEqual(schemas(text, "constant", "boolean", "relational", "arithmetic"), expected)
        code = ("  if (auto* p = f(); !p) g(p);\n  else h(p);\n  a->b[i] = c;\n  ++n;\n  T x(y);\n  T z = y;\n"
                "  return f();\n")
        self.assertEqual(schemas(code, "deletion"), ["{ if (M) {  } else { %s; } }" % s
                                                     for s in ("g(p)", "h(p)", "a->b[i] = c", "++n")])
        self.assertEqual(schemas(code, "negation"), ["(M ? (!(!p)) : (!p))"])

    def test_a_file_holds_several_and_its_lines_stay(self):
        text = "constexpr int kA = 1;\nbool f(int x) {\n  return x <\n      kA;\n}\n"
        found = schemata.candidates("optim", "f.cpp", text)
        self.assertEqual([(m.operator, m.line, m.end_line) for m in found], [("relational", 3, 4), ("constant", 1, 1)])
        lines = schemata.with_schemata(text, list(enumerate(found, 1))).splitlines()
        self.assertEqual(lines[0], "const     int kA = (mutant_is(2) ? (0) : (1));")
        self.assertEqual(lines[2:4], ["  return (mutant_is(1) ? (x <= kA) : (x <", "      kA));"])

    def test_a_draw_stays_when_lines_are_added(self):
        text = "".join(f"bool f{i}() {{ return a{i} < b && c{i}; }}\n" for i in range(20))
        draws = [[m.id for m in schemata.in_order(seed, schemata.candidates("optim", "f.cpp", t))][:8]
                 for seed, t in ((1, text), (1, "int x;\n\n" + text), (2, text))]
        self.assertEqual(draws[0], draws[1])
        self.assertNotEqual(draws[0], draws[2])
        self.assertEqual(len({i.split(":")[1] for i in draws[0][:2]}), 2, "operators in turn")
        apart = list(schemata.without_overlap(schemata.candidates("optim", "f.cpp", text)))
        self.assertEqual(len(apart), 20)


class Suites(unittest.TestCase):
    def test_python_stops_at_the_first_failure(self):
        for command, more in ((["python3", "-B", "a/x_test.py", "-v"], ["--failfast"]), (["build/x_test"], [])):
            suite = suites.suite_of({"name": "x", "command": command, "properties": [
                {"name": "WORKING_DIRECTORY", "value": "."}]})
            self.assertEqual(suite.command, command + more)

    def test_says_how_a_suite_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            def run(code, limit=60, **more):
                suite = suites.Suite("x", [], ["sh", "-c", code], {"A": "1"}, folder, **more)
                return suites.run(suite, {"B": "2"}, limit, os.path.join(folder, "log"))
            self.assertEqual(run("exit $((A + B - 3))")[0], "passed")
            self.assertEqual(run("exit 77", skipped=77)[0], "passed")
            self.assertEqual(run("echo ok; exit 1", passes=["^ok"])[0], "passed")
            self.assertEqual(run("echo no", passes=["^ok"])[0], "failed")
            self.assertEqual(run("echo '[  FAILED  ] A.B (1 ms)'; exit 1")[::2], ("failed", "A.B"))
            self.assertEqual(run("kill -11 $$")[::2], ("failed", "exit code -11"))
            self.assertEqual(run("sleep 60 & wait", limit=0.2)[0], "timed out")


@unittest.skipUnless(shutil.which("git") and shutil.which("ninja"), "needs git and ninja")
class Verdicts(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        self.root, self.work = holder.name + "/project", holder.name + "/work"
        for name, text in PROJECT.items():
            self.write(name, text)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        self.write("list.jsonl", *({"id": i, "file": "src/optim/" + f, "old": o, "new": n} for i, f, o, n in LIST))

    def write(self, name, *lines):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.writelines(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)

    def start(self, *words, **environment):
        process = subprocess.Popen([os.path.join(ROOT, "scripts", "mutants"), "--sources", self.root, "--work",
                                    self.work, "--count", "0", "--list", self.root + "/list.jsonl", *words], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment})
        self.addCleanup(process.kill)
        return process

    def run_it(self, *words, code=0):
        process = self.start(*words)
        said = process.communicate()[0]
        self.assertEqual(process.returncode, code, said)
        return said

    def verdicts(self):
        with open(self.root + "/results/mutants/verdicts.jsonl") as f:
            return {line["id"]: line for line in map(json.loads, f)}

    def test_are_kept_and_go_on(self):
        said = self.run_it()
        self.assertRegex(said, r"gone: .* 0 times; it is left out")
        self.assertRegex(said, r"broken is left out")
        found = self.verdicts()
        self.assertEqual({i: v["verdict"] for i, v in found.items()}, {
            "next": "killed", "half": "killed", "last": "killed", "limit": "survived", "unused": "survived",
            "wrong": "not compiled"})
        self.assertEqual((found["next"]["suite"], found["last"]["suite"]), ("optim", "above"))
        self.assertEqual((found["limit"]["ran"], found["unused"]["reaching"]), (1, 0))
        self.assertRegex(said, r"optim +5 +3 +2 +0 +0 +1 +60\n")
        self.assertRegex(said, r"step.cpp:3  survived: not reached  \[unused\]\n  - x \* 2\n  \+ x / 2")
        self.write("results/mutants/verdicts.jsonl", *(v for i, v in found.items() if i != "next"))
        os.remove(self.work + "/logs/above.reach")
        with open(self.work + "/reach.jsonl", "a") as f:
            f.write('{"name": "abo')  # as one that was ended
        self.assertIn("1 of 1: next: killed", self.run_it())
        self.assertEqual(self.verdicts(), found)
        self.assertFalse(os.path.exists(self.work + "/logs/above.reach"), "what suites reach is known")
        self.write("tests/mutants/equivalent.jsonl", {"id": "limit", "reason": "5 is 5"})
        another = {**found["wrong"], "id": "of another draw"}
        self.write("results/mutants/verdicts.jsonl", another, *(v for i, v in found.items() if i != "limit"))
        again = self.run_it()
        self.assertNotIn("builds", again)
        self.assertRegex(again, r"optim +5 +3 +1 +1 +0 +1 +75\n")
        self.assertIn("1 of 1: unused: survived", self.run_it("--again"))
        self.is_stopped({**found, another["id"]: another})

    def is_stopped(self, kept):
        """While `next` meets its suite, which waits for ever."""
        del kept["next"], kept["limit"]
        self.write("results/mutants/verdicts.jsonl", *kept.values())
        with open(self.work + "/numbers.json") as f:
            log = f"{self.work}/logs/{json.load(f)['next']}.log"
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number), open(log, "w+") as f:
                process = self.start(WAITS="1")
                while not (pid := f.read()).endswith("\n") and process.poll() is None:
                    f.seek(0)
                    time.sleep(0.05)
                self.addCleanup(subprocess.run, ["kill", "-9", pid], stderr=subprocess.DEVNULL)
                process.send_signal(number)
                said = process.communicate()[0]
                self.assertEqual(process.returncode, 128 + number, said)
                self.assertRegex(said, r"\nmutants: stopped; the same command goes on\n$")
                self.assertNotIn("Traceback", said)
                self.assertRaises(ProcessLookupError, os.kill, int(pid), 0)
                self.assertEqual(self.verdicts(), kept)

    def test_only_its_own_copy_is_written(self):
        holder = os.path.dirname(self.root)
        os.makedirs(holder + "/a/source/below")
        self.write("../a/source/kept", "")
        for words, says in ((["--work", holder + "/a"], "are not a copy"),
                            (["--work", holder + "/a", "--sources", holder + "/a/source"], "must lie apart"),
                            (["--work", holder + "/a", "--sources", holder + "/a/source/below"], "must lie apart"),
                            (["--work", self.root + "/work"], "must lie apart"),
                            (["--list", "absent.jsonl"], "absent.jsonl: there is no such file")):
            with self.subTest(words):
                self.assertIn(says, self.run_it(*words, code=2))
        self.assertEqual(sorted(os.listdir(holder + "/a/source")), ["below", "kept"])


if __name__ == "__main__":
    unittest.main()

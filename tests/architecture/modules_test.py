"""Who may use whom: the include lines, the CMake targets and the picture in src/README.md say the same."""
import os
import tempfile
import unittest

import modules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Modules(unittest.TestCase):
    """This project."""

    @classmethod
    def setUpClass(cls):
        cls.tree = modules.Tree(ROOT)

    def expect_none(self, problems):
        self.assertFalse(problems, "\n" + "\n".join(problems))

    def test_there_are_modules(self):
        self.assertGreater(len(self.tree.sources), 300)
        self.assertLessEqual({"core", "loop", "scaling/cells", "backends/cpu", "datasets", "main.cpp"}, self.tree.picture.keys())
        self.assertLessEqual({"core", "loop", "scaling/cells", "backends/cpu", "datasets"}, self.tree.links.keys())

    def test_no_rule_is_broken(self):
        for rule in (modules.cycles, modules.against_picture, modules.against_links, modules.foreign_headers,
                     modules.foreign_namespaces, modules.types_named_twice, modules.full_folders,
                     modules.too_many_rooms, modules.folders_in_circles):
            with self.subTest(rule=rule.__name__):
                self.expect_none(rule(self.tree))

    def test_paths_in_documents_exist(self):
        self.expect_none(modules.missing_paths(self.tree, "README.md", True))
        self.expect_none(modules.missing_paths(self.tree, "src/README.md", False))
        self.expect_none(modules.missing_paths(self.tree, "src/scaling/README.md", False))


PICTURE = """
    module         uses          what is in it
    core           -             errors
    comm           core          ranks,
                                 and messages
    model          core
    train          comm, model   steps
    datasets       core          files
    backends/cpu   comm          loops
    main.cpp       train, adapters

Text, and `train/step.cpp`, `comm/ring.{h,cpp}`, `step.cpp`, `no_*.cpp`, `--flag`, `a/b`.
"""


class MadeUpTree(unittest.TestCase):
    """Each mistake in a tree that has none otherwise."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        self.root = holder.name
        self.write("src/README.md", PICTURE)
        for module, links in {"core": "", "comm": "LINKS core", "model": "LINKS core",
                              "train": "LINKS comm model"}.items():
            self.write(f"src/{module}/CMakeLists.txt",
                       f"cputrain_add_module({module} TEXTS\n  SOURCES a.cpp\n  {links})")
        self.write("backends/cpu/CMakeLists.txt", "target_link_libraries(cputrain_cpu PUBLIC cputrain_comm PRIVATE x)")
        self.write("datasets/CMakeLists.txt",
                   "target_link_libraries(cputrain_datasets PRIVATE cputrain_core cputrain_options)")
        self.write("src/core/error.h", "#include <string>")
        self.write("src/comm/ring.h", '#include "core/error.h"')
        self.write("src/comm/ring.cpp", '#include "comm/ring.h"')
        self.write("src/model/graph.h", '#include "core/error.h"')
        self.write("src/train/step.cpp", '#include "comm/ring.h"\n#include "core/error.h"\n#include "model/graph.h"')
        self.write("src/main.cpp",
                   '#include "train/step.h"\n#include "backends/cpu/loops.h"\n#include "datasets/idx.h"')
        self.write("src/train/step.h", "")
        self.write("backends/cpu/loops.h", '#include "comm/ring.h"')
        self.write("backends/cpu/no_cpu.cpp", "")
        self.write("datasets/idx.h", '#include "core/error.h"')

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def problems(self, *checks):
        tree = modules.Tree(self.root)
        return [problem for check in checks for problem in check(tree)]

    def test_without_mistakes(self):
        self.assertEqual(self.problems(modules.cycles, modules.against_picture, modules.against_links,
                                       modules.foreign_headers, modules.full_folders), [])

    def test_the_table_may_stand_between_fences(self):
        indented = modules.Tree(self.root).picture
        table, _, rest = PICTURE.lstrip("\n").partition("\n\n")
        rows = "\n".join(line[4:] for line in table.split("\n"))
        self.write("src/README.md", f"```text\n{rows}\n```\n\n{rest}")
        self.assertEqual(modules.Tree(self.root).picture, indented)
        self.assertEqual(indented["train"], ["comm", "model"])

    def test_a_namespace_of_another_folder(self):
        self.write("src/comm/ring.h", "namespace cputrain::comm {\nnamespace {}\n}")
        self.write("src/core/error.h", "namespace cputrain {\n}")
        self.write("backends/cpu/loops.h", "namespace cputrain::train {\nclass Step;\n}\nnamespace cputrain::cpu {\n}")
        self.assertEqual(self.problems(modules.foreign_namespaces), [])
        self.write("src/train/step.cpp", "namespace cputrain::comm {\n}")
        self.assertEqual(self.problems(modules.foreign_namespaces),
                         ["src/train/step.cpp: is in namespace cputrain::comm, not cputrain::train"])

    def test_two_folders_that_include_each_other(self):
        self.write("src/comm/allreduce/ring.h", '#include "comm/rank.h"\n')
        self.write("src/comm/rank.h", "")
        self.assertEqual(self.problems(modules.folders_in_circles), [])
        self.write("src/comm/rank.h", '#include "comm/allreduce/ring.h"\n')
        self.assertEqual(self.problems(modules.folders_in_circles),
                         ["src/comm and src/comm/allreduce include each other: src/comm/rank.h includes "
                          "comm/allreduce/ring.h, src/comm/allreduce/ring.h includes comm/rank.h"])

    def test_two_types_of_one_name(self):
        self.write("src/comm/ring.h", "namespace cputrain::comm {\nstruct Ring {\n};\n}")
        self.write("src/comm/star.h", "namespace cputrain::comm {\nclass Ring;\n}\n"
                                      "namespace cputrain::star {\nstruct Ring {\n};\n}")
        self.write("tests/comm/ring.cpp", "namespace cputrain::comm {\nnamespace {\nclass Ring {\n};\n"
                                          "}  // namespace\n}")
        self.write("src/comm/ring.cpp", "namespace cputrain::comm {\nstruct Ring::Link {\n};\n}")
        self.assertEqual(self.problems(modules.types_named_twice), [])
        self.write("tests/comm/ring.h", "namespace cputrain::comm {\nclass Ring final\n    : public Shape {\n};\n}")
        self.assertEqual(self.problems(modules.types_named_twice),
                         ["cputrain::comm::Ring is defined in src/comm/ring.h and tests/comm/ring.h"])

    def test_a_cycle(self):
        self.write("src/comm/ring.h", '#include "core/error.h"\n#include "train/step.h"')
        [problem] = self.problems(modules.cycles)
        self.assertIn("comm -> train -> comm", problem)
        self.assertIn('src/comm/ring.h:2: #include "train/step.h"', problem)

    def test_an_edge_that_the_picture_lacks(self):
        self.write("src/model/graph.h", '#include "core/error.h"\n\n#include "comm/ring.h"')
        self.assertEqual(self.problems(modules.against_picture),
                         ['src/model/graph.h:3: #include "comm/ring.h"\n    src/README.md does not let model use comm'])
        self.assertEqual(self.problems(modules.against_links),
                         ['src/model/graph.h:3: #include "comm/ring.h"\n'
                          '    src/model/CMakeLists.txt does not link comm'])

    def test_an_edge_that_only_the_picture_has(self):
        self.write("src/train/step.cpp", '#include "comm/ring.h"')
        self.assertEqual(self.problems(modules.against_picture),
                         ["src/README.md: train uses model, but no file includes anything of it"])
        self.assertEqual(self.problems(modules.against_links),
                         ["src/train/CMakeLists.txt links model, which no file of the folder includes"])

    def test_modules_of_the_tree_and_of_the_picture(self):
        self.write("src/optim/adam.h", "")
        self.assertEqual(self.problems(modules.against_picture),
                         ["src/README.md: optim is not in the picture of modules"])
        self.write("src/README.md", PICTURE.replace("    datasets",
                                                    "    optim          core\n    report         -\n    datasets"))
        self.assertEqual(self.problems(modules.against_picture),
                         ["src/README.md: optim uses core, but no file includes anything of it",
                          "src/README.md: the picture has report, the tree does not"])

    def test_the_picture_goes_from_the_bottom_up(self):
        self.write("src/README.md", PICTURE.replace("    core           -             errors\n", "") + "")
        self.assertIn("src/README.md: comm uses core, which must stand above it",
                      self.problems(modules.against_picture))

    def test_adapters_use_no_adapters_and_only_main_uses_them(self):
        self.write("backends/cpu/loops.h", '#include "comm/ring.h"\n#include "datasets/idx.h"')
        self.write("src/train/step.h", '#include "backends/cpu/loops.h"')
        self.assertEqual([p.splitlines()[1].strip() for p in self.problems(modules.against_picture)],
                         ["src/README.md does not let backends/cpu use datasets",
                          "src/README.md does not let train use backends/cpu"])

    def test_libraries_of_adapters(self):
        for line in ("#include <mpi.h>", '#include "oneapi/dnnl/dnnl.hpp"', "  # include <tbb/task.h>",
                     "#include <cuda_fp16.h>"):
            self.write("src/comm/ring.cpp", line)
            self.assertEqual(len(self.problems(modules.foreign_headers)), 1, line)
        self.write("src/comm/ring.cpp", "#include <cstdio>\n")
        self.write("backends/cpu/loops.cpp", "#include <omp.h>\n")
        self.assertEqual(self.problems(modules.foreign_headers), [])

    def test_a_folder_that_is_too_full(self):
        for n in range(modules.MOST_FILES - 1):
            self.write(f"src/core/{n}.h", "")
        self.assertEqual(self.problems(modules.full_folders), [])
        self.write("src/core/more.cpp", "")
        self.assertEqual(len(self.problems(modules.full_folders)), 1)

    def test_a_wing_has_modules_of_its_own(self):
        self.write("src/scaling/CMakeLists.txt", "add_subdirectory(cells)")
        self.write("src/scaling/cells/CMakeLists.txt", "cputrain_add_module(cells SOURCES a.cpp LINKS core)")
        self.write("src/scaling/cells/cells.h", '#include "core/error.h"\n#include "comm/ring.h"')
        missing = self.problems(modules.against_picture, modules.against_links)
        self.assertEqual([m.split("\n")[0] for m in missing],
                         ["src/README.md: scaling/cells is not in the picture of modules",
                          'src/scaling/cells/cells.h:2: #include "comm/ring.h"'])
        self.assertIn("src/scaling/cells/CMakeLists.txt does not link comm", missing[1])
        self.assertEqual(self.problems(modules.too_many_rooms), [])
        for n in range(modules.MOST_ROOMS):
            self.write(f"src/room{n}/a.h", "")
        self.assertEqual(len(self.problems(modules.too_many_rooms)), 1)

    def test_targets_of_two_modules_whose_folders_have_one_name(self):
        for wing in "cli", "scaling":
            self.write(f"src/{wing}/commands/CMakeLists.txt",
                       f"cputrain_add_module({wing}_commands SOURCES a.cpp LINKS core)")
            self.write(f"src/{wing}/commands/a.cpp", '#include "core/error.h"\n')
        self.assertEqual(self.problems(modules.against_links), [])
        self.write("src/scaling/commands/a.cpp", '#include "cli/commands/b.h"\n#include "core/error.h"\n')
        self.write("src/cli/commands/b.h", "")
        self.assertEqual(self.problems(modules.against_links),
                         ['src/scaling/commands/a.cpp:1: #include "cli/commands/b.h"\n'
                          "    src/scaling/commands/CMakeLists.txt does not link cli/commands"])

    def test_paths_that_lead_nowhere(self):
        found = modules.missing_paths(modules.Tree(self.root), "src/README.md", False)
        self.assertEqual([p.split(": ")[1] for p in found], ["there is no a/b"])
        self.write("src/README.md", "`comm/ring.{h,inl}`\n`train/` `backends/cpu` `ring.js` `tests/none_test.py`")
        found = modules.missing_paths(modules.Tree(self.root), "src/README.md", False)
        self.assertEqual(found, ["src/README.md:1: there is no comm/ring.inl", "src/README.md:2: there is no ring.js",
                                 "src/README.md:2: there is no tests/none_test.py"])
        self.write("README.md", "`n/a`, `src/train/step.cpp`, `train/step.cpp`, `src/step.cpp`")
        self.assertEqual(modules.missing_paths(modules.Tree(self.root), "README.md", True),
                         ["README.md:1: there is no src/step.cpp"])


if __name__ == "__main__":
    unittest.main()

"""What `cmake --install` copies runs from there, and packages hold what they should."""
import glob
import gzip
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests", "docs"))
from documents import Document
from rules import live_links

BUILD = os.environ["BUILD_FOLDER"]
SIMULATES = os.environ.get("CPUTRAIN_SIMULATES") == "1"
PLUGIN = os.path.exists(os.path.join(BUILD, "libcputrain_cuda.so"))
COMMON = ["bin/cputrain", "share/bash-completion/completions/cputrain", "share/cputrain/models/alexnet.json",
          "share/cputrain/models/googlenet.json", "share/cputrain/models/photographs.config.json",
          "share/cputrain/models/small-resnet.json",
          "share/cputrain/reference/paper_table3.csv", "share/doc/cputrain/changelog", "share/doc/cputrain/copyright",
          "share/man/man1/cputrain.1", "share/zsh/site-functions/_cputrain"]
OF_SIMULATOR = ["bin/cputrain-smpi", "share/doc/cputrain-simulator/changelog", "share/doc/cputrain-simulator/copyright"]


def run(*words, code=0, **options):
    done = subprocess.run(words, text=True, capture_output=True, timeout=240, stdin=subprocess.DEVNULL, **options)
    if done.returncode != code:
        raise AssertionError(f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(place, name), folder)
                  for place, _, names in os.walk(folder) for name in names)


def is_guide(path):
    """Or what one links to."""
    return re.match(r"(usr/)?share/doc/cputrain/(\w+\.md$|\w+/)", path)


def dead_links(documents):
    """Findings in README.md and all guides below a folder of documents."""
    names = [name for name in files_below(documents) if name.endswith(".md")]
    return names, [str(found) for name in names for found in live_links(Document(name, documents), None)]


class FolderTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        self.folder = holder.name


class Install(FolderTest):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        cls.addClassCleanup(holder.cleanup)
        cls.prefix = os.path.join(holder.name, "prefix")
        cls.others = [os.path.join(cls.prefix, name) for name in ("bin", "share")]  # are there before
        for folder in cls.others:
            os.makedirs(folder)
            os.chmod(folder, 0o750)
        run(os.environ["CMAKE_PROGRAM"], "--install", BUILD, "--prefix", cls.prefix, umask=0o077)
        cls.program = os.path.join(cls.prefix, "bin", "cputrain")

    def without(self, *names):
        """The program in a copy of what was installed that lacks these files."""
        prefix = os.path.join(self.folder, "copy")
        shutil.copytree(self.prefix, prefix)
        for name in names:
            os.remove(os.path.join(prefix, name))
        return os.path.join(prefix, "bin", "cputrain")

    def test_files(self):
        wanted = COMMON + (OF_SIMULATOR if SIMULATES else []) + (["lib/cputrain/libcputrain_cuda.so"] if PLUGIN else [])
        self.assertEqual([path for path in files_below(self.prefix) if not is_guide(path)], sorted(wanted))

    def test_all_users_can_read_what_a_strict_umask_installed(self):
        for place, folders, files in os.walk(self.prefix):
            for path in (os.path.join(place, name) for name in folders + files):
                mode = stat.S_IMODE(os.lstat(path).st_mode)
                allowed = (0o750,) if path in self.others else (0o755,) if os.path.isdir(path) else (0o644, 0o755)
                self.assertIn(mode, allowed, path)
        sources = os.path.join("scripts", "datasets")
        for name in os.listdir(os.path.join(ROOT, sources)):
            installed = os.path.join(self.prefix, "share", "doc", "cputrain", sources, name)
            self.assertEqual(os.access(installed, os.X_OK), not name.endswith(".sh"), name)

    def test_folders_of_an_install_may_be_named_from_where_it_is_started(self):
        """As `--prefix here` and DESTDIR=here name them."""
        words = ["-Dfolders=bin;share/doc", "-P", os.path.join(ROOT, "scripts", "cmake", "InstallFolders.cmake")]
        for prefix, stage, made in (("here", "", "here"), ("/usr", "stage", "stage/usr"), ("/", "stage", "stage"),
                                    ("/usr", self.folder + "/whole", "whole/usr")):
            run(os.environ["CMAKE_PROGRAM"], f"-DCMAKE_INSTALL_PREFIX={prefix}", *words, cwd=self.folder,
                env={**os.environ, "DESTDIR": stage}, umask=0o077)
            for folder in ("", "bin", "share", "share/doc"):
                mode = os.stat(os.path.join(self.folder, made, folder)).st_mode
                self.assertEqual(stat.S_IMODE(mode), 0o755, (prefix, stage, folder))
            shutil.rmtree(os.path.join(self.folder, made.split("/")[0]))

    @unittest.skipUnless(shutil.which("git") and os.path.exists(os.path.join(ROOT, ".git")), "no checkout, or no git")
    def test_results_are_those_that_are_kept(self):
        """What scripts/tables leaves besides, such as weights, would make packages ten times as large."""
        kept = [path[len("results/"):] for path in run("git", "-C", ROOT, "ls-files", "results").splitlines()
                if not path.endswith(".gitignore")]
        self.assertEqual(files_below(os.path.join(self.prefix, "share", "doc", "cputrain", "results")), sorted(kept))

    def test_every_link_of_readme_and_guides_leads_to_a_file(self):
        names, dead = dead_links(os.path.join(self.prefix, "share", "doc", "cputrain"))
        self.assertIn("README.md", names)
        self.assertIn(os.path.join("src", "zoo", "README.md"), names)
        self.assertEqual(dead, [])

    def test_the_program_runs_in_another_folder_and_knows_its_own_files_only(self):
        self.assertIn("cputrain ", run(self.program, "--version", cwd=self.folder))
        model = os.path.join(self.prefix, "share", "cputrain", "models", "small-resnet.json")
        run(self.program, "--model", model, "--data", "synthetic:20", "--steps", "1", "--out", "run", cwd=self.folder)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "run", "weights.safetensors")))
        said = run("bash", "-c", f"LD_DEBUG=libs {self.program} --version 2>&1", cwd=self.folder)
        self.assertNotIn(BUILD, said)

    @unittest.skipUnless(shutil.which("readelf"), "binutils are not here")
    def test_no_library_is_looked_for_in_the_build(self):
        for path in glob.glob(os.path.join(self.prefix, "bin",
                                           "*")) + glob.glob(os.path.join(self.prefix, "lib", "*", "*")):
            for line in run("readelf", "-d", path).splitlines():
                if "RPATH" in line or "RUNPATH" in line:
                    self.assertNotIn(BUILD, line)

    @unittest.skipUnless(shutil.which("readelf"), "binutils are not here")
    def test_no_library_is_looked_for_where_the_program_is_started(self):
        """Anybody may have put one there. An empty folder in such a list is that one."""
        for program in (self.program, os.path.join(BUILD, "cputrain")):
            for folders in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", run("readelf", "-d", program)):
                self.assertTrue(all(map(os.path.isabs, folders.split(":"))), (program, folders))

    @unittest.skipUnless(PLUGIN, "this build has no plugin for GPUs")
    def test_the_plugin_is_found_beside_the_prefix(self):
        words = ["--backend", "cuda", "--precision", "exact", "--steps", "1"]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        for program, missing in ((self.program, False), (self.without("lib/cputrain/libcputrain_cuda.so"), True)):
            done = subprocess.run([program, *words], text=True, capture_output=True, cwd=self.folder, env=environment,
                                  timeout=120)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual("libcputrain_cuda.so is not there" in done.stderr, missing, done.stderr)

    @unittest.skipUnless(SIMULATES, "this build has no simulator")
    def test_simulate_looks_beside_the_program(self):
        words = ["simulate", "--np", "1", "--batch", "16", "--json", "-"]
        done = subprocess.run([self.without("bin/cputrain-smpi"), *words], text=True, capture_output=True,
                              cwd=self.folder, timeout=120)
        self.assertIn(os.path.join(self.folder, "copy", "bin", "cputrain-smpi"), done.stdout + done.stderr)


class ManualPage(unittest.TestCase):
    PAGE = os.path.join(BUILD, "manual", "man", "cputrain.1")

    @unittest.skipUnless(shutil.which("groff"), "groff is not here")
    def test_groff_has_nothing_to_say(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", self.PAGE], text=True, capture_output=True,
                              timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not here")
    def test_mandoc_misses_the_date_alone(self):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", self.PAGE], text=True, capture_output=True,
                              timeout=60)
        said = [line for line in (done.stdout + done.stderr).splitlines() if "missing date" not in line]
        self.assertEqual(said, [])

    def test_it_has_the_sections_that_readers_look_for(self):
        with open(self.PAGE) as page:
            sections = re.findall(r'^\.SH "?([^"\n]+)"?$', page.read(), re.M)
        self.assertEqual(sections, ["NAME", "SYNOPSIS", "DESCRIPTION", "STALLS", "COMMANDS", "FLAGS OF TRAIN",
                                    "FLAGS OF OTHER COMMANDS",
                                    "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"])


@unittest.skipUnless(shutil.which("dpkg-shlibdeps") and shutil.which("file"), "dpkg-dev or file is not here")
class DebianPackages(FolderTest):
    def pack(self, name):
        folder = os.path.join(self.folder, name)
        run(os.environ["CPACK_PROGRAM"], "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-G", "DEB", "-B",
            folder, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
        return {os.path.basename(path).split("_")[0]: path for path in glob.glob(os.path.join(folder, "*.deb"))}

    def field(self, package, name):
        return run("dpkg-deb", "-f", package, name).strip()

    def test_packages(self):
        packages = self.pack("out")
        self.assertEqual(set(packages), {"cputrain", "cputrain-simulator"} if SIMULATES else {"cputrain"})
        self.check_contents(packages)
        program = packages["cputrain"]
        depends = self.field(program, "Depends")
        self.assertIn("libc6 (>=", depends)
        if os.environ.get("CPUTRAIN_MPIRUN"):
            self.assertRegex(depends, r"\b(openmpi-bin|mpich)\b")
        self.assertRegex(self.field(program, "Description"), r"^trainer of .*\n (?! )\w")
        self.assertEqual(self.field(program, "Maintainer"), "cputrain developers <cputrain@localhost>")
        version = self.field(program, "Version")
        with open("/etc/os-release") as file:
            system = dict(line.rstrip().split("=", 1) for line in file if "=" in line)
        named = "".join(system.get(name, "").strip('"') for name in ("ID", "VERSION_ID"))
        self.assertRegex(version, rf"^[0-9.]+-1~{re.escape(named)}$")
        self.assertIn(f"_{version}_", os.path.basename(program))
        if SIMULATES:
            depends = self.field(packages["cputrain-simulator"], "Depends").split(", ")
            self.assertLessEqual({f"cputrain (= {version})", "libsimgrid-dev"}, set(depends))
        again = self.pack("again")
        for name, path in packages.items():
            with open(path, "rb") as one, open(again[name], "rb") as two:
                self.assertTrue(one.read() == two.read(), f"{name}: the same build makes other bytes")

    def check_contents(self, packages):
        expected = {"cputrain": COMMON + (["lib/cputrain/libcputrain_cuda.so"] if PLUGIN else []),
                    "cputrain-simulator": OF_SIMULATOR}
        for name, path in packages.items():
            listed = run("dpkg-deb", "-c", path).splitlines()
            self.assertTrue(all(line.split()[1] == "root/root" for line in listed))
            found = sorted(line.split()[5][len("./usr/"):] for line in listed if not line.startswith("d"))
            debian = [f + ".gz" if f.endswith((".1",
                                               "changelog")) else f.replace("site-functions", "vendor-completions")
                      for f in expected[name]]
            self.assertEqual([path for path in found if not is_guide(path)], sorted(debian))
            tree = os.path.join(self.folder, "tree-" + name)
            run("dpkg-deb", "-x", path, tree)
            for binary in glob.glob(os.path.join(tree, "usr", "bin", "*")):
                self.assertNotIn("not stripped", run("file", binary))
                self.assertTrue(os.access(binary, os.X_OK))
        self.assertEqual(dead_links(os.path.join(self.folder, "tree-cputrain", "usr/share/doc/cputrain"))[1], [])
        with gzip.open(os.path.join(self.folder, "tree-cputrain", "usr/share/man/man1/cputrain.1.gz"), "rt") as page:
            self.assertIn(".TH CPUTRAIN 1", page.read())


class Copyright(unittest.TestCase):
    def test_names_what_is_compiled_in(self):
        with open(os.path.join(ROOT, "scripts", "package", "copyright")) as file:
            text = file.read()
        for name in ("Apache-2.0", "Chart.js", "nlohmann-json", "stb_image_write"):
            self.assertIn(name, text)


if __name__ == "__main__":
    unittest.main()

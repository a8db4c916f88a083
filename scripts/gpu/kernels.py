"""The CUDA kernels as nvcc makes them, and the tables of them that the repository keeps."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNELS = os.path.join(ROOT, "backends", "cuda", "kernels")
TABLES = os.path.join(ROOT, "results", "gpu-kernels")  # that scripts print of them and keep
ARCHITECTURES = ("80", "90a")
MOST_AT_ONCE = 2
SKIPPED = 77
of_this_process = tempfile.TemporaryDirectory(prefix="cputrain-kernels-")


def script():
    return os.path.basename(sys.argv[0])


def skip(why):
    print(f"{script()}: skipped, {why}")
    sys.exit(SKIPPED)


def find_nvcc():
    nvcc = os.environ.get("NVCC") or shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not nvcc or not os.access(nvcc, os.X_OK):
        skip("nvcc is not here")
    return nvcc


def version_of(tool, variable):
    """`variable` names another one."""
    try:
        text = subprocess.run([tool, "--version"], text=True, capture_output=True, check=True).stdout
        found = re.search(r"release [\d.]+, V([\d.]+)", text)
        why = None if found else "--version tells no release"
    except OSError as error:
        why = error.strerror
    except subprocess.CalledProcessError as error:
        why = f"--version ends with {error.returncode}"
    if why:
        skip(f"{tool} is no tool of CUDA that starts here ({why}); name another by {variable}")
    return found[1]


def compiled(nvcc, file, *words):
    """What the compiler says."""
    done = subprocess.run([nvcc, "-std=c++20", "-O3", *words, f"-I{ROOT}", f"-I{ROOT}/src", file], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=KERNELS)
    if done.returncode:
        sys.exit(f"{script()}: nvcc cannot compile {file}\n{done.stdout}")
    return done.stdout


def cubin(nvcc, file, architecture):
    """The path of what the compiler makes of a file, and what the assembler says of it. Kept in the folder that
    KERNELS_BUILT names, if any, so that scripts which look at the same sources, one after the other, compile them
    once."""
    folder = os.environ.get("KERNELS_BUILT") or of_this_process.name
    path = os.path.join(folder, f"{os.path.relpath(file, KERNELS).replace(os.sep, '_')}.{architecture}.cubin")
    if not os.path.exists(path + ".txt"):
        text = compiled(nvcc, file, f"-arch=sm_{architecture}", "-Xptxas", "-v", "-cubin", "-o", path)
        with open(path + ".txt", "w") as said:
            said.write(text)
    with open(path + ".txt") as said:
        return path, said.read()


def of_each_file(work):
    """[(path below the kernels' folder, work(path))] of all sources with kernels, several at once."""
    names = sorted(os.path.relpath(os.path.join(folder, name), KERNELS)
                   for folder, _, files in os.walk(KERNELS) for name in files if name.endswith(".cu"))
    with concurrent.futures.ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        return list(zip(names, pool.map(lambda name: work(os.path.join(KERNELS, name)), names)))


def plain_names(names):
    """As in the source: without namespaces, parameters and what templates have by default."""
    text = subprocess.run(["c++filt"], input="\n".join(names), text=True, capture_output=True, check=True).stdout
    plain = []
    for name in text.splitlines():
        name = re.sub(r"\(anonymous namespace\)::|cputrain::(?:cuda|optim|model)::|\((?:int|bool|unsigned int)\)", "", name)
        name = re.sub(r"^void ", "", name)
        depth = 0
        for i, sign in enumerate(name):
            depth += (sign == "<") - (sign == ">")
            if sign == "(" and depth == 0:
                name = name[:i]
                break
        plain.append(name.replace(" ", ""))
    return plain


def keep_table(path, tools, make):
    """Prints make(), whose first line begins with `tools`, and compares it with the table that is kept, or keeps it.
    The exit code."""
    kept = open(path).read() if os.path.exists(path) else ""
    write = "--write" in sys.argv
    if not write and not kept.startswith(f"{tools}:"):
        skip(f"the tools are {tools}, and the table begins: {kept.split(':')[0]}")
    new = make()
    print(new, end="")
    if write:
        with open(path, "w") as file:
            file.write(new)
        return 0
    if new != kept:
        print(f"{script()}: differs from {os.path.relpath(path, ROOT)}; look at what changed, then --write",
              file=sys.stderr)
        return 1
    return 0


def words_are_right(doc):
    """Answers --help and refuses what these scripts do not know; the exit code, or None."""
    if set(sys.argv[1:]) & {"--help", "-h"}:
        print(doc.strip())
        return 0
    unknown = [word for word in sys.argv[1:] if word != "--write"] or sys.argv[2:]
    if unknown:
        print(f"{script()}: unknown word {unknown[0]} (--help says what it takes)", file=sys.stderr)
        return 2
    return None

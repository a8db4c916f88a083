"""Virtual environments of the other frameworks and libraries for them, made once and kept outside the project."""
import glob
import os
import shutil
import subprocess
import sys

from running import last_line

# tf_keras: see tensorflow_steps.py. PyTorch's standard build for Linux brings CUDA along (5 GB on disk, and not
# used); where pip has an index with its CPU builds (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL), the same line takes one.
PACKAGES = {"tensorflow": ["tensorflow-cpu==2.21.0", "tf-keras==2.21.0"],
            "pytorch": ["torch==2.15.0", "numpy", "intel-openmp==2026.2.0"]}
IMPORTS = {"tensorflow": "import tensorflow, tf_keras", "pytorch": "import torch, numpy"}

# Loaded in front of a framework: file, and packages of Debian and Ubuntu that have it.
LIBRARIES = {"tcmalloc": ("libtcmalloc_minimal.so.4", ["libtcmalloc-minimal4", "libtcmalloc-minimal4t64"]),
             "jemalloc": ("libjemalloc.so.2", ["libjemalloc2"]),
             "libiomp5": ("libiomp5.so", [])}  # intel-openmp of PyPI
PLACES = ["/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/local/lib", "/usr/lib"]


def default_cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "cputrain", "peers")


def check_python(python, framework, remedy):
    tried = subprocess.run([python, "-c", IMPORTS[framework]], text=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"))
    if tried.returncode:
        sys.exit(f"{python} cannot import {framework}: {last_line(tried.stderr)}; {remedy}")
    return python


def library(name, python, cache):
    """Path of a library: of the framework's environment, of the system, or of a package that is unpacked into the
    cache, for which no root is needed. None where there is none."""
    file, packages = LIBRARIES[name]
    kept = os.path.join(cache, "libraries")
    places = [os.path.join(os.path.dirname(os.path.dirname(python)), "lib")]
    if packages:
        places += [*PLACES, os.path.join(kept, "usr/lib/*-linux-gnu")]
    found = first_of(places, file)
    if found or not packages or not shutil.which("apt-get"):
        return found
    os.makedirs(kept, exist_ok=True)
    for package in packages:
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": kept}
        if subprocess.run(["apt-get", "download", package], **quiet).returncode == 0:
            for archive in glob.glob(os.path.join(kept, package + "_*.deb")):
                subprocess.run(["dpkg-deb", "-x", archive, kept], **quiet)
    return first_of([os.path.join(kept, "usr/lib/*-linux-gnu")], file)


def first_of(places, file):
    return next((path for place in places for path in sorted(glob.glob(os.path.join(place, file)))), None)


def python_of(framework, cache):
    """The interpreter of the framework's environment, which is made and filled where it is not there."""
    home = os.path.join(cache, framework)
    python, complete = os.path.join(home, "bin", "python"), os.path.join(home, "complete")
    wanted = " ".join(PACKAGES[framework])
    if os.path.exists(complete):
        with open(complete) as f:
            if f.read() == wanted:
                return python
    print(f"Making {home} with {wanted} ...", file=sys.stderr, flush=True)
    if os.path.exists(home) and not os.path.exists(os.path.join(home, "pyvenv.cfg")):
        sys.exit(f"{home} is there and is no environment of Python's (it would be replaced); name another --cache")
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(cache, exist_ok=True)
    made = subprocess.run([sys.executable, "-m", "venv", home], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if made.returncode:
        sys.exit(f"{sys.executable} -m venv {home} failed: {last_line(made.stdout)}; on Debian, install python3-venv")
    pip = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                          "--retries", "2", *PACKAGES[framework]],
                         text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if pip.returncode:
        shutil.rmtree(home, ignore_errors=True)
        sys.exit(f"pip cannot install {wanted}: {last_line(pip.stderr)}\n(is there a network, and does this Python, "
                 f"{sys.version.split()[0]}, have a build?); leave {framework} out of --frameworks, or name a Python "
                 f"that has it: --{framework}-python")
    check_python(python, framework, f"remove {home} and run again")
    with open(complete, "w") as f:
        f.write(wanted)
    return python

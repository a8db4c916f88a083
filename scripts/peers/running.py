"""Commands on chosen CPUs, of which one may fail without ending the comparison."""
import os
import signal
import subprocess
import tempfile
import time

# Left out of what a command inherits, so that a setting is what it says.
TUNING = ("OMP_", "KMP_", "GOMP_", "MKL_", "MALLOC_", "TF_", "XLA_", "TORCH", "LD_PRELOAD", "GLIBC_TUNABLES",
          "ONEDNN_", "DNNL_", "THP_MEM_ALLOC")


class Failed(Exception):
    """Says why in one line."""


def cpus_for(threads):
    """So many CPUs, first one of every core, then the others of the cores."""
    ranked, seen = [], {}
    for cpu in sorted(os.sched_getaffinity(0)):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as f:
                core = f.read().strip()
        except OSError:
            core = str(cpu)
        seen[core] = seen.get(core, 0) + 1
        ranked.append((seen[core], cpu))
    return sorted(cpu for _, cpu in sorted(ranked)[:threads])


def environment(threads, variables):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(TUNING)}
    if threads:
        kept.update(OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
    return {**kept, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}


def last_line(text):
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("WARNING", "[notice]"))]
    return lines[-1][:300] if lines else "it says nothing"


def name_of(command):
    """Its first words, without folders of this machine."""
    return " ".join(os.path.basename(word) for word in command[:3] if word != "-B")


def waited(process, seconds):
    """(status, usage) of a process that ends in time; it is ended where it does not, or where we are."""
    limit = time.monotonic() + seconds if seconds else None
    try:
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG if limit else 0)
            if pid:
                return status, usage
            if time.monotonic() > limit:
                raise Failed(f"it took more than {seconds} s")
            time.sleep(0.05)
    except BaseException:  # compilers that it started end with it
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def run(command, cpus=None, variables=None, seconds=None):
    """(standard output, most resident bytes); raises Failed."""
    pin = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, env=environment(len(cpus or []), variables or {}), preexec_fn=pin,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        status, usage = waited(process, seconds)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if process.returncode:
            raise Failed(f"{name_of(command)} ended with {process.returncode}: {last_line(err.read() or out.read())}")
        return out.read(), usage.ru_maxrss * 1024

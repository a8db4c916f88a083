"""What the machine is, and whether the programs start on it."""
import json
import os
import platform
import re
import shutil

import bundle as bundles
from context import expect, listed
from results import Failed, Skipped

QUERY = ("name,driver_version,memory.total,compute_cap,mig.mode.current,clocks.sm,clocks.max.sm,power.limit,"
         "ecc.mode.current")


def look_at_machine(day):
    """nvidia-smi only reads here: the day changes no setting."""
    facts = day.results.facts["machine"] = {
        "system": platform.platform(), "python": platform.python_version(), "cpus": len(os.sched_getaffinity(0)),
        "cpu": cpu_name(), "glibc": platform.libc_ver()[1]}
    found = [f"{facts['cpus']} CPUs", facts["cpu"]]
    for tool, words in (("nvidia-smi", [f"--query-gpu={QUERY}", "--format=csv"]), ("nvidia-smi", ["-L"]),
                        ("nvcc", ["--version"]), ("ncu", ["--version"]), ("compute-sanitizer", ["--version"])):
        path = shutil.which(tool, path=day.given_tools) if day.given_tools else None
        path = path or shutil.which(tool) or shutil.which(tool, path="/usr/local/cuda/bin")
        done = day.run([path, *words], 10, dict(os.environ)) if path else None
        said = re.sub(r"GPU-[0-9a-f-]{8,}", "GPU-...", done.text) if done and done.code == 0 else None
        facts.setdefault(tool, []).append(said)
    if facts["nvidia-smi"][0]:
        found.append(facts["nvidia-smi"][0].strip().splitlines()[-1])
    return ", ".join(found)


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.machine()
    except OSError:
        return platform.machine()


def find_libraries(day):
    bundle = day.bundle
    files = [day.program(), bundle.path("bin", "mpirun"), *bundle.programs("device"), *bundle.programs("emulated")]
    plugin = bundle.path("bin", "libcputrain_cuda.so")
    files += [plugin] if os.path.exists(plugin) else []
    missing = {os.path.basename(file): names for file in files if os.path.exists(file)
               for names in [bundles.missing_libraries(file, day.environment)] if names}
    if missing:
        raise Failed("not found: " + "; ".join(f"{', '.join(names)} of {file}" for file, names in missing.items()))
    spare = day.results.facts["spare_libraries"]
    return f"{len(files)} programs and plugins have all of theirs" + (f", {listed(spare)} of the pack" if spare else "")


def describe_device(day):
    path = day.file("info.json")
    expect(day.cputrain("info", "--json", path), "cputrain info")
    with open(path) as file:
        info = json.load(file)
    info["machine"].pop("host", None)
    facts = day.results.facts["info"] = {key: info.get(key) for key in ("cputrain", "machine", "libraries", "cuda")}
    facts["model"] = {key: info["model"][key] for key in ("name", "parameters", "macs_per_image")}
    cuda = info["cuda"]
    if not cuda["available"]:
        raise Failed(f"no device: {cuda['reason']}; {cuda['remedy']}")
    day.device = cuda["devices"][0]["name"]
    day.results.head["device"] = day.device
    return f"{cuda['devices'][0]['name']}, {cuda['devices'][0]['facts']}"


def ask_probes(day):
    program = day.bundle.path("device", "probes")
    if not os.path.exists(program):
        raise Skipped("the pack has no probes, which are built where nvcc is")
    answers = day.results.path("probes.json")
    done = day.run([program, "--json", answers])
    lines = [line for line in done.text.splitlines() if line.strip()]
    day.results.facts["probes"] = lines
    expect(done, "probes")
    differs = [line.split(":")[0] for line in lines if line.endswith("(differs)")]
    return f"{len(lines)} answers" + (f", other than assumed: {listed(differs, 8)}" if differs else "")

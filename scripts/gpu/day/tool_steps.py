"""What NVIDIA's tools say: compute-sanitizer of a small training, ncu of the heaviest kernels."""
import csv
import os
import re

from context import expect, listed
from results import Failed, Skipped

ERROR_CODE = 9
HEAVY = "regex:gemm|max_pool"  # 28 launches of a micro-batch of dogcat
SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "WarpStateStats", "Occupancy")
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
KERNELS = {False: 32, True: 10}  # profiled, by `quick`
MISTAKES = {"memcheck": "out-of-bounds", "racecheck": "race", "initcheck": "uninitialised",
            "synccheck": "divergent-barrier"}  # of sanitizer_control, which each tool must find
TRAINING = ["--backend", "cuda", "--precision", "exact", "--steps", "1", "--limit-val", "0", "--verbose", "0"]


def small_training(day, name):
    """One that has every family of kernels, in odd sizes."""
    if not day.bundle.has("expected", "small.json"):
        raise Skipped("the pack has no small network")
    return [day.program(), "train", "--model", day.bundle.path("expected", "small.json"), "--data", "synthetic:20",
            *TRAINING, "--out", day.file(name)]


def sanitizer(tool):
    def run(day):
        training = small_training(day, tool)
        control = check_control(day, tool)
        done, summaries, findings = look(day, tool, training)
        day.results.facts.setdefault("compute-sanitizer", {})[tool] = {
            "summaries": summaries, "said": findings[:40], "control": control}
        if done.code == ERROR_CODE or any(errors_of(text) for text in summaries):
            about = [line for line in findings if line != "COMPUTE-SANITIZER"]
            raise Failed(f"{'; '.join(summaries)}: {about[0] if about else done.last_line()}")
        expect(done, f"compute-sanitizer's {tool}")
        if not summaries:
            raise Failed(f"compute-sanitizer's {tool} gave no summary: {done.last_line()}")
        return f"{summaries[-1]}, {control}"
    return run


def look(day, tool, program):
    """(what it did, its summaries, its other lines)"""
    words = [day.tool("compute-sanitizer"), "--tool", tool, "--target-processes", "all", "--error-exitcode",
             str(ERROR_CODE), "--print-limit", "20", *day.under_tool(program)]
    done = day.run(words, environment=tool_environment(day))
    summaries = re.findall(r"^=+ ((?:ERROR|RACECHECK) SUMMARY: .*)", done.text, re.M)
    return done, summaries, [line for line in re.findall(r"^=+ +(\S.*)", done.text, re.M) if "SUMMARY" not in line]


def check_control(day, tool):
    """What finds nothing in our kernels must find a mistake that is known, in the kernel that makes it."""
    program = day.bundle.path("device", "sanitizer_control")
    if not os.path.exists(program):
        return "no control: the pack has none"
    if day.emulated:
        return "no control: the device is emulated"
    mistake = MISTAKES[tool]
    done, summaries, findings = look(day, tool, [program, mistake])
    if done.cut:
        expect(done, f"{tool} of the control")
    kernel = "control_" + mistake.replace("-", "_")
    if not any(errors_of(text) for text in summaries) or not any(kernel in line for line in findings):
        raise Failed(f"{tool} does not report {kernel}, a kernel with a known mistake, so what it says of others "
                     f"means nothing: {'; '.join(summaries) or done.last_line()}")
    return f"and it reports the control's {mistake}"


def errors_of(summary):
    """Whether it counts any: `ERROR SUMMARY: 3 errors`, `RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)`."""
    return any(int(n) for n in re.findall(r"(\d+) (?:errors?|hazards?|warnings?)\b", summary))


def tool_environment(day):
    """The tool itself has the libraries of the system; its program is given those of the pack."""
    return {**{name: value for name, value in day.environment.items() if name != "LD_LIBRARY_PATH"},
            **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}}


def profile(day):
    path = day.tool("ncu")
    program = small_training(day, "ncu") if day.emulated else [
        day.program(), "train", "--data", "synthetic:200", "--batch", "128", *TRAINING, "--out", day.file("ncu")]
    words = [path, "--csv", "--page", "details", "--clock-control", "none", "--target-processes", "all",
             "--kernel-name", HEAVY, "--launch-count", str(KERNELS[day.quick])]
    for section in SECTIONS:
        words += ["--section", section]
    done = None
    for extra in (["--metrics", CONFLICTS], []):  # a version that does not know the metric refuses all
        done = day.run([*words, *extra, *day.under_tool(program)], environment=tool_environment(day))
        if done.code == 0 or done.cut or "metric" not in done.text.lower():
            break
    if "ERR_NVGPUCTRPERM" in done.text:
        raise Skipped("the driver lets nobody but administrators read counters (ERR_NVGPUCTRPERM)")
    kernels = kernels_of(done.text)
    day.results.facts["ncu"] = kernels
    if not kernels:
        expect(done, "ncu")
        raise Failed(f"ncu profiled no kernel: {done.last_line()}")
    for kernel in kernels:
        add_figures(day, kernel)
    late = f", cut after {done.seconds:.0f} s" if done.cut else ""
    if not done.cut:
        expect(done, f"ncu, after {len(kernels)} launches,")
    return f"{len(kernels)} launches of {len({k['kernel'] for k in kernels})} kernels{late}: " + listed(
        [f"{k['kernel']} {k['metrics'].get('Compute (SM) Throughput', '?')} % of its arithmetic" for k in kernels], 2)


def kernels_of(text):
    """Launches in order, from ncu's CSV: a line for each metric."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    launches = {}
    for row in csv.DictReader(lines):
        if not row.get("Metric Name"):
            continue
        launch = launches.setdefault(row["ID"], {
            "kernel": short_name(row["Kernel Name"]), "name": row["Kernel Name"], "grid": row.get("Grid Size"),
            "block": row.get("Block Size"), "metrics": {}, "units": {}})
        launch["metrics"][row["Metric Name"]] = as_number(row["Metric Value"])
        launch["units"][row["Metric Name"]] = row.get("Metric Unit", "")
    return list(launches.values())


def short_name(name):
    """`max_pool_forward_kernel`, `gemm Forward` of the whole signature."""
    plain = re.sub(r"<.*", "", name.replace("(anonymous namespace)::", "")).split("(")[0].split("::")[-1]
    direction = re.search(r"gemm<.*\b(\w+)>\(", name)
    return " ".join([plain.split()[-1] if plain.split() else name, *([direction[1]] if direction else [])])


def as_number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text


MICROSECONDS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}


def add_figures(day, kernel):
    duration = kernel["metrics"].get("Duration")
    unit = kernel["units"].get("Duration", "us")
    if isinstance(duration, float) and unit in MICROSECONDS:
        kernel["microseconds"] = duration * MICROSECONDS[unit]

"""What ncu says of the heaviest kernels of a step."""
import re

import kernel_waits
from context import expect, listed
from results import Failed, Skipped
from sanitizer_steps import training

SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "WarpStateStats", "Occupancy")
MOST_UNKNOWN = 4  # metrics that ncu refuses one by one; then it goes without any
USUAL_GPU = "H100"  # whose launches are taken for those of a GPU that was not foreseen
STEPS = 2
QUICK_LAUNCHES = 6


def profile(name):
    """The last launches of a step and the first of the next one: what is heavy lies at the images, where backward ends
    and forward begins. Without graphs, since kernels are the same in both and ncu runs them one by one in any case."""
    def run(day):
        foreseen = (day.bundle.read_json("expected", "profiles.json") or {}).get(name)
        if not foreseen:
            raise Skipped("the pack does not know which launches are heavy")
        launches, done = look(day, name, foreseen)
        rows = kernel_waits.by_family(launches)
        missing = [kernel for kernel in families(day, foreseen) if kernel not in {row["kernel"] for row in rows}]
        day.results.facts.setdefault("ncu", {})[name] = {"launches": launches, "families": rows, "missing": missing}
        if not launches:
            expect(done, "ncu")
            raise Failed(f"ncu profiled no kernel: {done.last_line()}")
        if not done.cut:
            expect(done, f"ncu, after {len(launches)} launches,")
        late = f", cut after {done.seconds:.0f} s" if done.cut else ""
        lost = f"; not seen: {listed(missing)}" if missing and not day.quick else ""
        return f"{len(launches)} launches of {len(rows)} families{late}: " + "; ".join(
            f"{row['kernel']} waits for {kernel_waits.reasons(row, 2)}" for row in rows[:2]) + lost
    return run


def of_gpu(day, by_gpu):
    """What was foreseen for this GPU."""
    return next((value for gpu, value in by_gpu.items() if gpu.lower() in day.device.lower()), by_gpu[USUAL_GPU])


def families(day, foreseen):
    return of_gpu(day, foreseen["families"])


def program(day, name, foreseen):
    out = ["--out", day.file("ncu-" + name.replace(" ", "-"))]
    if day.emulated:
        return training(day, "small", "bf16", "ncu-" + name.replace(" ", "-"))
    return [day.program(), "train", *foreseen["words"], "--backend", "cuda", "--steps", str(STEPS), "--no-graph",
            "--limit-val", "0", "--verbose", "0", *out]


def look(day, name, foreseen):
    """(launches, what ncu did)"""
    count = min(foreseen["count"], QUICK_LAUNCHES) if day.quick else foreseen["count"]
    words = [day.tool("ncu"), "--csv", "--page", "details", "--clock-control", "none", "--target-processes", "all",
             "--kernel-name", "regex:" + foreseen["kernels"], "--launch-skip", str(of_gpu(day, foreseen["skip"])),
             "--launch-count", str(count)]
    for section in SECTIONS:
        words += ["--section", section]
    words_of_program = day.under_tool(program(day, name, foreseen))
    unknown = day.results.facts.setdefault("unknown_to_ncu", [])
    for _ in range(MOST_UNKNOWN + 2):
        metrics = [metric for metric in kernel_waits.METRICS if metric not in unknown]
        asked = ["--metrics", ",".join(metrics)] if metrics else []
        done = day.run([*words, *asked, *words_of_program], environment=day.tool_environment())
        refused = refused_metrics(done, metrics, len(unknown))
        if not refused:
            break
        unknown += refused
    if "ERR_NVGPUCTRPERM" in done.text:
        raise Skipped("the driver lets nobody but administrators read counters (ERR_NVGPUCTRPERM)")
    return kernel_waits.launches_of(done.text), done


def refused_metrics(done, metrics, before):
    """Those that this version or GPU does not know: it then profiles nothing, and names one of them."""
    if done.cut or "Failed to find metric" not in done.text:
        return []
    named = [text.replace("\\", "")
             for text in re.findall(r"Failed to find metric (?:regex:\^?)?([\w.\\]+)", done.text)]
    refused = [metric for metric in metrics if any(metric == one or metric.startswith(one.rstrip(".") + ".")
                                                   for one in named)]
    return refused if refused and before < MOST_UNKNOWN else metrics

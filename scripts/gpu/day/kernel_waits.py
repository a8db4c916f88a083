"""What ncu wrote, by families of kernels, and why their warps wait."""
import csv
import re

# ncu has an average of warps that wait for a reason for each instruction that is issued: cycles that a warp spends on
# it between two of its own. `selected` is the cycle in which it is issued. `gmma` is Hopper's alone.
REASONS = ("barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle",
           "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected",
           "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait")
WAITS = {reason: f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" for reason in REASONS}
SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed"
ISSUE = "sm__inst_executed.avg.per_cycle_active"
TENSOR = "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"
METRICS = (*WAITS.values(), SHARED, TENSOR, "sm__inst_executed_pipe_tensor.sum",
           "sm__inst_executed_pipe_tensor_op_hmma.sum", ISSUE, "smsp__inst_executed.sum", "lts__t_bytes.sum",
           "dram__bytes.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum")
RATES = {"shared": SHARED, "tensor": TENSOR, "l2": "L2 Cache Throughput", "dram": "DRAM Throughput",
         "issue": ISSUE}
TILE = re.compile(r"GemmTile<(?:\(int\))?(\d+), ?(?:\(int\))?(\d+)")
MICROSECONDS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}


def launches_of(text):
    """Launches in order, from ncu's CSV: a line for each metric."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    launches = {}
    for row in csv.DictReader(lines):
        if not row.get("Metric Name"):
            continue
        name = row["Kernel Name"]
        launch = launches.setdefault(row["ID"], {
            "kernel": family_of(name), "name": name, "grid": row.get("Grid Size"),
            "block": row.get("Block Size"), "metrics": {}, "units": {}})
        launch["metrics"][row["Metric Name"]] = as_number(row["Metric Value"])
        launch["units"][row["Metric Name"]] = row.get("Metric Unit", "")
    for launch in launches.values():
        launch["microseconds"] = microseconds(launch)
    return list(launches.values())


def family_of(name):
    """`max_pool_forward`, `gemm Forward 128x128` of the whole signature."""
    plain = re.sub(r"<.*", "", name.replace("(anonymous namespace)::", "")).split("(")[0].split("::")[-1]
    plain = (plain.split() or [name])[-1].removesuffix("_kernel")
    direction, tile = re.search(r"gemm<.*\b(\w+)>\(", name), TILE.search(name)
    return " ".join([plain, *([direction[1]] if direction else []),
                     *([f"{tile[1]}x{tile[2]}"] if tile else [])])


def as_number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text


def microseconds(launch):
    duration, unit = launch["metrics"].get("Duration"), launch["units"].get("Duration", "us")
    return duration * MICROSECONDS[unit] if isinstance(duration, float) and unit in MICROSECONDS else None


def by_family(launches):
    """[{kernel, launches, microseconds, cycles between two instructions of a warp, parts of them by reason, rates}],
    the longest first. Averages count each launch by its time."""
    found = {}
    for launch in launches:
        found.setdefault(launch["kernel"], []).append(launch)
    rows = [family(name, of_name) for name, of_name in found.items()]
    return sorted(rows, key=lambda row: -(row["microseconds"] or 0))


def family(name, launches):
    waits = {reason: average(launches, metric) for reason, metric in WAITS.items()}
    waits = {reason: value for reason, value in waits.items() if value is not None}
    cycles = sum(waits.values())
    times = [launch["microseconds"] for launch in launches]
    return {"kernel": name, "launches": len(launches),
            "microseconds": sum(times) if None not in times else None, "cycles": cycles or None,
            "waits": {reason: value / cycles for reason, value in waits.items() if value > 0},
            "rates": {rate: average(launches, metric) for rate, metric in RATES.items()}}


def average(launches, metric):
    """None where no launch has it."""
    having = [(launch["metrics"][metric], launch["microseconds"] or 1) for launch in launches
              if isinstance(launch["metrics"].get(metric), float)]
    return sum(value * time for value, time in having) / sum(time for _, time in having) if having else None


def reasons(row, most=3):
    """`long_scoreboard 42 %, wait 20 %`: what a warp does most of the time when it does not begin an instruction."""
    waits = sorted(((part, reason) for reason, part in row["waits"].items() if reason != "selected"), reverse=True)
    return ", ".join(f"{reason} {100 * part:.0f} %" for part, reason in waits[:most]) or "not told"

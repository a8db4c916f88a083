"""What compute-sanitizer says of trainings, and of kernels with a known mistake."""
import os
import re

from context import expect
from results import Failed, Skipped

ERROR_CODE = 9
MISTAKES = {"memcheck": "out-of-bounds", "racecheck": "race", "initcheck": "uninitialised",
            "synccheck": "divergent-barrier"}  # of sanitizer_control, which each tool must find
# (network of the pack, precision). `large` has the large tiles, which bf16 and TF32 alone have.
THOROUGH = (("large", "bf16"), ("small", "bf16"), ("small", "exact"))
TRAININGS = {"memcheck": THOROUGH, "racecheck": THOROUGH, "initcheck": (("small", "bf16"),),
             "synccheck": (("small", "bf16"),)}
STEPS = 3  # the first enqueues its kernels, the second and third are a CUDA graph
IMAGES = {True: 4, False: None}  # of a batch, on the emulated device and on a GPU: None is the network's own


def training(day, network, precision, name):
    """A short one as the words of a command."""
    if not day.bundle.has("expected", f"{network}.json"):
        raise Skipped(f"the pack has no {network} network")
    model = day.bundle.read_json("expected", f"{network}.json")
    batch = IMAGES[day.emulated] or model["recipe"]["batch"]
    return [day.program(), "train", "--model", day.bundle.path("expected", f"{network}.json"), "--data",
            f"synthetic:{2 * batch}", "--batch", str(batch), "--backend", "cuda", "--precision", precision, "--steps",
            str(STEPS), "--limit-val", "0", "--verbose", "0", "--out", day.file(name)]


def sanitizer(tool):
    def run(day):
        control = check_control(day, tool)
        said = [look_at_training(day, tool, *which) for which in TRAININGS[tool]]
        return f"{'; '.join(said)}; {control}"
    return run


def look_at_training(day, tool, network, precision):
    which = f"{network} in {precision}"
    done, summaries, findings = look(day, tool, training(day, network, precision, f"{tool}-{network}-{precision}"))
    day.results.facts.setdefault("compute-sanitizer", {}).setdefault(tool, {})[which] = {
        "summaries": summaries, "said": findings[:40], "seconds": round(done.seconds, 2)}
    if done.code == ERROR_CODE or any(errors_of(text) for text in summaries):
        about = [line for line in findings if line != "COMPUTE-SANITIZER"]
        raise Failed(f"{which}: {'; '.join(summaries)}: {about[0] if about else done.last_line()}")
    expect(done, f"compute-sanitizer's {tool} of {which}")
    if not summaries:
        raise Failed(f"compute-sanitizer's {tool} of {which} gave no summary: {done.last_line()}")
    return f"{which}: {summaries[-1].partition(': ')[2]}"


def look(day, tool, program):
    """(what it did, its summaries, its other lines)"""
    words = [day.tool("compute-sanitizer"), "--tool", tool, "--target-processes", "all", "--error-exitcode",
             str(ERROR_CODE), "--print-limit", "20", *day.under_tool(program)]
    done = day.run(words, environment=day.tool_environment())
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

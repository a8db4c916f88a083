"""A day with a GPU, from the pack's folder to a folder of results."""
import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bundle
import order
import summary
from context import Day
from processes import PACK, Commands
from results import FAILED, NOT_RUN, OK, SKIPPED, Cut, Failed, Result, Results, Skipped, Stopped

LEAST_SECONDS = 2   # a step is begun with
AT_THE_END = 3      # seconds kept for the summary
EMULATED_TIMES = 4  # as long as a GPU may a CPU take, which others use, too
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def find_device():
    """Whether a GPU is here, by the driver's own word: the program's may be what is wrong."""
    tool = shutil.which("nvidia-smi")
    if tool:
        try:
            done = subprocess.run([tool, "-L"], text=True, capture_output=True, timeout=20)
            if done.returncode == 0 and "GPU" in done.stdout:
                return True
        except (OSError, subprocess.TimeoutExpired):
            pass
    return os.path.exists("/dev/nvidia0")


def why_not(emulated):
    """Why no day can be made, or None."""
    if emulated not in (None, "", "plain"):
        return 2, f"CPUTRAIN_EMULATED={emulated}: the pack has the emulated device `plain` alone"
    if not emulated and not find_device():
        return 77, "skipped: no GPU is here (CPUTRAIN_EMULATED=plain takes the emulated device)"
    return None


def stop(number, _):
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped(signal.Signals(number).name)


def say(text):
    """Nobody need listen: all of it is in files, too."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")


def make_step(day, step):
    limit = step.seconds[day.quick] * (EMULATED_TIMES if day.emulated else 1)
    if day.left() - AT_THE_END < LEAST_SECONDS:
        return Result(step.name, NOT_RUN, 0, "out of time")
    began = time.monotonic()
    day.step_end = min(began + limit, day.end - AT_THE_END)
    try:
        outcome, text = OK, step.run(day)
    except Skipped as why:
        outcome, text = SKIPPED, why
    except Failed as why:
        late = isinstance(why, Cut) and day.left() < AT_THE_END + 0.5
        outcome, text = (NOT_RUN, f"out of time: {why}") if late else (FAILED, why)
    except Exception as error:  # a mistake of this script costs one step
        outcome, text = FAILED, f"{type(error).__name__}: {error}"
    return Result(step.name, outcome, time.monotonic() - began, str(text).replace(day.bundle.folder, PACK))


def make_steps(day, results, only=None):
    """Returns the signal that ended them early, if one did."""
    stopped = None
    for step in order.steps():
        if stopped:
            results.add(Result(step.name, NOT_RUN, 0, f"the day was ended by {stopped}"))
            continue
        if only and not any(word in step.name.lower() for word in only):
            results.add(Result(step.name, SKIPPED, 0, "not asked for"))
            continue
        day.commands.write(f"== {step.name}\n")
        try:
            result = make_step(day, step)
        except Stopped as why:
            stopped = str(why)
            result = Result(step.name, FAILED, 0, f"ended by {stopped}")
        results.add(result)
        say(f"{result.name}: {result.outcome}, {result.seconds:.1f} s, {result.text}")
    return stopped


def run(pack, out, seconds, quick, only=None):
    began = time.monotonic()
    emulated = os.environ.get("CPUTRAIN_EMULATED")
    refused = why_not(emulated)
    if refused:
        print(f"gpu_day: {refused[1]}", file=sys.stderr)
        return refused[0]
    os.makedirs(out, exist_ok=True)
    results = Results(out)
    work = tempfile.mkdtemp(prefix="cputrain-day-")
    commands = Commands(results.path("log.txt"), work)
    for number in SIGNALS:
        signal.signal(number, stop)
    try:
        with open(os.path.join(pack, "pack.json")) as file:
            made_from = json.load(file)
        results.head = {"device": "the emulated device" if emulated else "a GPU", "emulated": bool(emulated),
                        "quick": quick, "budget": seconds, "seconds": 0.0, "pack": made_from["commit"],
                        "date": datetime.date.today().isoformat(), "packed": made_from}
        day = Day(bundle.unpack(pack, work), commands, results, seconds, quick, bool(emulated), began)
        results.facts["spare_libraries"] = day.bundle.take_missing_libraries(day.environment)
        results.facts["unpacked_seconds"] = round(time.monotonic() - began, 1)
        make_steps(day, results, only)
    finally:
        commands.end_all()
        shutil.rmtree(work, ignore_errors=True)
    results.head["seconds"] = round(time.monotonic() - began, 1)
    results.write()
    page = summary.text(results)
    with open(results.path("summary.txt"), "w") as file:
        file.write(page)
    say("\n" + page.rstrip())
    return 1 if results.failed() else 0

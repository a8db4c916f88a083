"""A day with a GPU, from the pack's folder to a folder of results."""
import datetime
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
from context import Day, given_python
from processes import PACK, Commands
from results import FAILED, NOT_RUN, OK, SKIPPED, Cut, Failed, Refused, Result, Results, Skipped, Stopped
from usage import Usage
from workplace import Workplace

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


def check_device(emulated, missing):
    """Refuses a day that could not make any step. `missing`: what the pack was made without."""
    if emulated not in (None, "", "plain"):
        raise Refused(2, f"CPUTRAIN_EMULATED={emulated}: the pack has the emulated device `plain` alone")
    if not emulated and not find_device():
        raise Refused(77, "skipped: no GPU is here (CPUTRAIN_EMULATED=plain takes the emulated device)")
    needed = bundle.EMULATED_DEVICE if emulated else bundle.PLUGIN
    if needed in missing:
        raise Refused(77, f"skipped: the pack was made without {needed}; make one where scripts/gpu_day can build it")


def unknown(only):
    """Words that are in no step's name."""
    names = [step.name.lower() for step in order.steps()]
    return [word for word in only if not word or not any(word in name for name in names)]


def ignore_signals():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def stop(number, _):
    ignore_signals()
    raise Stopped(signal.Signals(number).name)


def say(text):
    """All of it is in files, too."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")


def make_step(day, step):
    limit = step.seconds[day.quick] * (EMULATED_TIMES if day.emulated else 1)
    if day.quick and not step.expected[True]:
        return Result(step.name, SKIPPED, 0, "a rehearsal leaves it out")
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


def asked_for(step, only):
    return not only or any(word in step.name.lower() for word in only)


def not_asked_for(step):
    return Result(step.name, SKIPPED, 0, "not asked for")


def make_steps(day, results, only=None):
    usage = Usage(day)
    try:
        for step in order.steps():
            if not asked_for(step, only):
                results.add(not_asked_for(step))
                continue
            day.commands.write(f"== {step.name}\n")
            with usage.of_step(step.name):
                result = make_step(day, step)
            results.add(result)
            say(f"{result.name}: {result.outcome}, {result.seconds:.1f} s, {result.text}")
    finally:
        results.facts["usage"] = usage.end()


def note_the_rest(results, only, why):
    made = [result.name for result in results.steps]
    for step in order.steps():
        if step.name not in made:
            results.add(Result(step.name, NOT_RUN, 0, why) if asked_for(step, only) else not_asked_for(step))


def claim(out):
    """The folder of results, which another day that began at the same time does not get."""
    mixed = Refused(2, f"{out} is not an empty folder (results of days shall not be mixed); name another one")
    if os.path.exists(out) and (not os.path.isdir(out) or os.listdir(out)):
        raise mixed
    os.makedirs(out, exist_ok=True)
    try:
        with open(os.path.join(out, "log.txt"), "x"):
            return Results(out)
    except FileExistsError:
        raise mixed


def unpack_and_make_steps(place, commands, results, pack, seconds, quick, only, began):
    place.start_guard(commands.token)
    day = Day(bundle.unpack(pack, place.folder), commands, results, seconds, quick, results.head["emulated"], began)
    results.facts["expected_seconds"] = {step.name: step.expected[quick] for step in order.steps()}
    results.facts["spare_libraries"] = day.bundle.take_missing_libraries(day.environment)
    results.facts["unpacked_seconds"] = round(time.monotonic() - began, 1)
    make_steps(day, results, only)


def stoppable(results, only, place, commands, make):
    """Returns the signal that ended it early, if one did. Nothing is left of it."""
    stopped = None
    try:
        make()
        ignore_signals()
    except Stopped as why:
        stopped = signal.Signals[str(why)]
        note_the_rest(results, only, f"the day was ended by {stopped.name}")
    finally:
        ignore_signals()
        commands.end_all()
        place.remove()
    return stopped


def finish(results, began):
    results.head["seconds"] = round(time.monotonic() - began, 1)
    results.write()
    page = summary.text(results)
    with open(results.path("summary.txt"), "w") as file:
        file.write(page)
    say("\n" + page.rstrip())


def make_day(pack, out, seconds, quick, only):
    began = time.monotonic()
    given_python()
    emulated = os.environ.get("CPUTRAIN_EMULATED")
    made_from = bundle.describe(pack)
    check_device(emulated, made_from["missing"])
    results = claim(out)
    results.head = {"device": "the emulated device" if emulated else "a GPU", "emulated": bool(emulated),
                    "quick": quick, "budget": seconds, "seconds": 0.0, "pack": made_from["commit"],
                    "date": datetime.date.today().isoformat(), "packed": made_from}
    try:
        place = Workplace()
        commands = Commands(results.path("log.txt"), place.folder)
        stopped = stoppable(results, only, place, commands, lambda: unpack_and_make_steps(
            place, commands, results, pack, seconds, quick, only, began))
    except (OSError, Refused, Stopped):
        if not results.steps:  # OUT can be named again
            os.remove(results.path("log.txt"))
        raise
    finish(results, began)
    return 128 + stopped if stopped else 1 if results.failed() else 0


def run(pack, out, seconds, quick, only=None):
    for number in SIGNALS:
        signal.signal(number, stop)
    try:
        return make_day(pack, out, seconds, quick, only)
    except Stopped as signalled:
        number = signal.Signals[str(signalled)]
        code, why = 128 + number, f"the day was ended by {number.name} before it began (nothing was written)"
    except Refused as refusal:
        code, why = refusal.code, refusal
    except OSError as error:
        code, why = 74, (f"cannot write {error.filename or out}: {error.strerror or error} "
                         "(a day keeps what it finds); "
                         f"name another OUT, or make room in it and in {tempfile.gettempdir()}, or set TMPDIR")
    print(f"gpu_day: {why}", file=sys.stderr)
    return code

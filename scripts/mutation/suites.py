"""The suites of a build as CTest lists them, run one at a time with a limit, under a mutation or without one."""
import dataclasses
import json
import os
import re
import signal
import subprocess
import time

LEFT_OUT = {"slow", "bench", "docs", "package", "hosts"}
stopped = 0  # the signal that asked for it


class Stopped(Exception):
    """In the place of what a suite or a build would have said."""


def stop(number, _):
    """A signal's handler: whoever awaits a process ends it soon."""
    global stopped
    stopped = number


@dataclasses.dataclass
class Suite:
    name: str
    labels: list
    command: list  # empty before it is built
    environment: dict
    folder: str
    skipped: int = None  # the exit code of a suite that cannot run here
    passes: list = ()  # patterns of what it prints, in the place of exit codes
    seconds: float = 0  # without a mutation
    reached: set = ()  # numbers of mutations


def suite_of(test):
    known = {p["name"]: p["value"] for p in test["properties"]}
    environment = dict(word.split("=", 1) for word in known.get("ENVIRONMENT", ()))
    for word in known.get("ENVIRONMENT_MODIFICATION", ()):
        name, path = word.split("=path_list_prepend:")
        environment[name] = os.pathsep.join([path, *filter(None, [os.environ.get(name)])])
    command = list(test.get("command", ()))
    if any(word.endswith("_test.py") for word in command):
        command.append("--failfast")
    return Suite(test["name"], known.get("LABELS", []), command, environment, known["WORKING_DIRECTORY"],
                 known.get("SKIP_RETURN_CODE"), known.get("PASS_REGULAR_EXPRESSION", ()))


def listed(build, pattern):
    """Those whose names match, but for LEFT_OUT."""
    said = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True)
    suites = [suite_of(test) for test in json.loads(said.stdout)["tests"]]
    return [s for s in suites if re.search(pattern, s.name) and not LEFT_OUT & set(s.labels)]


def programs_of(build, suites):
    """What has to be built for them, as paths that ninja knows: CTest names no command that is not there yet."""
    names, found = {s.name for s in suites}, set()
    for folder, _, files in os.walk(build):
        if "CTestTestfile.cmake" not in files:
            continue
        with open(os.path.join(folder, "CTestTestfile.cmake")) as f:
            for name, words in re.findall(r"^add_test\((?:\[=*\[)?(.*?)(?:\]=*\])? (.*)\)$", f.read(), re.M):
                found.update(re.findall(rf'{re.escape(build)}/([^"\\;\s]+)', words) if name in names else ())
    for suite in suites:
        found.update(v[len(build) + 1:] for v in suite.environment.values() if v.startswith(build + "/"))
    known = subprocess.run(["ninja", "-t", "targets", "all"], cwd=build, capture_output=True, text=True, check=True)
    return sorted(found & set(re.findall(r"^(.*): ", known.stdout, re.M)))


def end(process):
    """With all that it started; launchers are given time to end their ranks."""
    for number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def await_end(process, limit=float("inf")):
    """Whether it ended in time. Nothing that it started is left."""
    last = time.monotonic() + limit
    while process.poll() is None and not stopped and time.monotonic() < last:
        time.sleep(0.05)
    in_time = process.returncode is not None
    end(process)
    if stopped:
        raise Stopped
    return in_time


def failed_test(said, code):
    """The first that failed, as GoogleTest or unittest names it; -11 is a signal."""
    found = re.search(r"^\[  FAILED  \] ([\w./]+)|^(?:FAIL|ERROR): (\w+)", said, re.M)
    return found[1] or found[2] if found else f"exit code {code}"


def run(suite, environment, limit, log):
    """("passed", "failed" or "timed out", seconds, the test that failed); a suite stops at it."""
    began = time.monotonic()
    everything = {**os.environ, **suite.environment, **environment, "GTEST_FAIL_FAST": "1"}
    with open(log, "w+", errors="replace") as out:
        try:
            process = subprocess.Popen(suite.command, cwd=suite.folder, env=everything, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        except (OSError, IndexError):
            return "failed", 0, "it is not there"
        in_time = await_end(process, limit)
        seconds = round(time.monotonic() - began, 1)
        out.seek(0)
        said = out.read()
    if not in_time:
        return "timed out", seconds, None
    good = (any(re.search(p, said) for p in suite.passes) if suite.passes
            else process.returncode in (0, suite.skipped))
    return ("passed", seconds, None) if good else ("failed", seconds, failed_test(said, process.returncode))

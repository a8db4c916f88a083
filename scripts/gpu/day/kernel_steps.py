"""Are the kernels right? The test programs on the device, and selftest, twice and beside the emulated device."""
import concurrent.futures
import json
import os
import re

from bundle import NOT_TESTS
from context import SKIPPED_CODE, expect, listed
from results import Cut, Failed, Skipped

AT_ONCE = 4


def run_device_tests(day):
    programs = [p for p in day.bundle.programs("device") if os.path.basename(p) not in NOT_TESTS]
    if not programs:
        raise Skipped("the pack has no test programs for a GPU, which are built where nvcc is")
    if day.emulated:
        raise Skipped("the device is emulated, and these programs have kernels for a GPU alone")
    pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
    try:
        runs = list(pool.map(lambda p: day.run([p, "--gtest_brief=1"]), programs))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    facts = {os.path.basename(p): facts_of_tests(done) for p, done in zip(programs, runs)}
    day.results.facts["device_tests"] = facts
    wrong = [f"{name}: {f['why']}" for name, f in facts.items() if f["why"]]
    if wrong:
        known = [f for f in facts.values() if f["why"] and not f["cut"]]
        raise (Failed if known else Cut)("; ".join(wrong))
    return ", ".join(f"{name} {f['passed']}" for name, f in facts.items()) + " passed"


def facts_of_tests(done):
    passed = re.search(r"\[  PASSED  \] (\d+)", done.text)
    failed = sorted(set(re.findall(r"\[  FAILED  \] ([\w./]+[./]\w+)", done.text)))
    why = ""
    if done.cut:
        why = f"cut after {done.seconds:.0f} s"
    elif failed:
        why = f"{len(failed)} failed, {listed(failed)}"
    elif done.code == SKIPPED_CODE:  # the day began since a GPU is here
        why = f"found no GPU, {done.last_line()}"
    elif done.code:
        why = f"ended with {done.code}, {done.last_line()}"
    elif not passed or int(passed[1]) == 0:
        why = f"tested nothing, {done.last_line()}"
    return {"code": done.code, "seconds": round(done.seconds, 1), "passed": int(passed[1]) if passed else 0,
            "failed": failed, "cut": done.cut, "why": why}


def selftest(day, name):
    """What selftest wrote. It ends with 1 where a case failed, and has then written all the same."""
    path = day.file(name + ".json")
    done = day.cputrain("selftest", "--backend", "cuda", "--json", path)
    expect(done, "cputrain selftest", good=(0, 1))
    if not os.path.exists(path):
        raise Failed(f"cputrain selftest ended with {done.code} and wrote nothing: {done.last_line()}")
    with open(path) as file:
        return json.load(file)


def run_selftest(day):
    first = selftest(day, "selftest")
    day.results.facts["selftest"] = {"passed": first["passed"], "failed": first["failed"]}
    day.results.write_json("selftest.json", first)
    wrong = [case["name"] for case in first["cases"] if not case["passed"]]
    if wrong or first["failed"]:
        raise Failed(f"{first['failed']} of {len(first['cases'])} cases: {listed(wrong)}")
    nearest = max(first["cases"], key=lambda case: case["error"] / case["limit"] if case["limit"] else 0)
    return f"{first['passed']} cases passed, nearest to its limit: {nearest['name']} {nearest['error']:.1e}"


def hashes(result):
    return {case["name"]: case.get("hash") for case in result["cases"]}


def earlier_selftest(day):
    try:
        with open(day.results.path("selftest.json")) as file:
            return json.load(file)
    except OSError:
        raise Skipped("there is no selftest to compare with") from None


def repeat_selftest(day):
    first = hashes(earlier_selftest(day))
    again = hashes(selftest(day, "selftest_again"))
    differ = [name for name in first if first[name] != again.get(name)]
    day.results.facts.setdefault("selftest", {})["other_bits_again"] = differ
    if differ:
        raise Failed(f"other bits in {len(differ)} of {len(first)} cases: {listed(differ)}")
    return f"the same bits in {len(first)} cases"


def compare_with_emulated(day):
    """A GPU's exp and log and its fused multiply-adds are others, so bits may differ: only their distance counts."""
    expected = day.bundle.read_json("expected", "selftest.json")
    if not expected:
        raise Skipped("the pack has no results of the emulated device")
    here, there = ({case["name"]: case for case in result["cases"]} for result in (earlier_selftest(day), expected))
    both = [name for name in here if name in there]
    same = [name for name in both if here[name].get("hash") == there[name].get("hash")]
    wider = [name for name in both if further(here[name], there[name])]
    day.results.facts["beside_emulated"] = {
        "cases": len(both), "same_bits": len(same), "larger_errors": wider,
        "missing": sorted(set(there) - set(here)), "others": sorted(set(here) - set(there))}
    lost = sorted(set(there) - set(here))
    if lost:
        raise Failed(f"{len(lost)} of the emulated device's {len(there)} cases are missing here: {listed(lost)}")
    unknown = [name for name in both if here[name]["error"] is None]
    if unknown:
        raise Failed(f"{len(unknown)} of {len(both)} cases have no error, only NaN: {listed(unknown)}")
    return f"{len(same)} of {len(both)} cases have the same bits" + (
        f", errors over 4 times as large in {len(wider)}: {listed(wider)}" if wider else "")


def further(here, there):
    return here["error"] is not None and here["error"] > 4 * max(there["error"] or 0, 1e-8)

"""What compare_peers found, as tables in Markdown and as JSON."""
import json
import os
import platform
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "measurements"))
import comparison
import intervals
import origin
import runs

NAMES = {"ours": "cputrain", "tensorflow": "TensorFlow", "pytorch": "PyTorch"}
SCRIPT = "scripts/compare_peers"
FILE = "peers.json"


def environment(program, cpus):
    with open("/proc/cpuinfo") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return {**origin.of_today(program), "cpu": models[0] if models else platform.machine(),
            "cpus_online": os.cpu_count(), "cpus_used": cpus, "system": platform.platform()}


def summary(cell):
    """Figures of each program over all rounds of one network, and ratios within a round."""
    rounds, figures = cell["rounds"], {}
    for program in rounds[0] if rounds else []:
        results = [r[program] for r in rounds]
        rates = [statistics.median(r["images_per_second"]) for r in results]
        seconds = [statistics.median(r["cpu_seconds_per_image"]) for r in results]
        figures[program] = {"images_per_second": runs.spread(rates), "cpu_seconds_per_image": runs.spread(seconds),
                            "cpus_busy": runs.spread([r * s for r, s in zip(rates, seconds)]),
                            "peak_bytes": max(r["peak_bytes"] for r in results)}
        if program != "ours" and "ours" in rounds[0]:
            ratios = [statistics.median(r["ours"]["images_per_second"]) / rate for r, rate in zip(rounds, rates)]
            figures[program]["ours_times"] = {**runs.spread(ratios), "interval": intervals.of_median(ratios)}
    return figures


def text_of(s, form, scale=1):
    return runs.spread_text([scale * s["median"], scale * s["min"], scale * s["max"]], form)


def ratio_of(figures):
    """cputrain's images/s by a framework's, and whether the interval of 95 % tells them apart."""
    times = figures.get("ours_times")
    if not times:
        return ""
    low, high = times["interval"] or (2, 2)  # with few rounds nothing is claimed
    return text_of(times, ".2f") + (": no difference" if low <= 1 <= high else "")


def weights_of(cell):
    """Of what weights figures are, with the density that cputrain finds between layers with them."""
    found = [r["ours"].get("density") for r in cell["rounds"] if "ours" in r]
    density = [value for value in found if value is not None]
    return (("as given" if cell["epochs"] is None else f"after {comparison.text_of_epochs(cell['epochs'])}")
            + (f" (density {statistics.median(density):.2f})" if density else ""))


def network_of(cell):
    return f"{cell['model']}, {cell['precision']}, {weights_of(cell)}"


def rows_of(result, cell):
    for program, figures in summary(cell).items():
        name = f"{NAMES[program]} {result['versions'][program].split()[0]}"
        yield [network_of(cell), cell["threads"], name, ", ".join(cell["settings"].get(program, {}).values()),
               text_of(figures["images_per_second"], ".1f"), ratio_of(figures),
               text_of(figures["cpu_seconds_per_image"], ".1f", 1e3), f"{figures['cpus_busy']['median']:.2f}",
               f"{figures['peak_bytes'] / 1e9:.2f}"]


def trial_rows(cell):
    for framework, trials in cell["trials"].items():
        for trial in trials:
            setting = ", ".join(trial["setting"].values())
            chosen = trial["setting"] == cell["settings"].get(framework)
            if "failed" in trial:
                figures = ["failed: " + trial["failed"].replace("|", "/"), "", ""]
            else:
                figures = [f"{max(trial['images_per_second']):.1f}",
                           f"{1e3 * min(trial['cpu_seconds_per_image']):.1f}", trial["busy_threads"]]
            yield [network_of(cell), cell["threads"], NAMES[framework], f"**{setting}**" if chosen else setting,
                   *figures]


def counted(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def markdown(result):
    e, o = result["environment"], result["options"]
    weights = "as given" if o["weights_given"] else "those after as many epochs of cputrain on them as each row says"
    sizes = sorted({f"{c['model']} at {c['image_size']}x{c['image_size']} with batch {c['batch']}"
                    for c in result["cells"]})
    text = (f"{origin.sentence(e)} {e['cpu']}, {counted(e['cpus_online'], 'CPU')}: {'; '.join(sizes)}.\n\n" +
            runs.block(result["command"], not_run="it installs frameworks and takes minutes") +
            "Whole training steps on the same photographs, parameters and CPUs. "
            f"Weights are {weights}. Each program runs with the setting that was quickest in a trial. They take turns, "
            "and the order is reversed after every round. [peers.json](peers.json) has all trials and rounds.\n\n"
            f"Each figure is the median (lowest to highest) of {counted(o['rounds'], 'round')}. A round is "
            f"{counted(o['steps'], 'step')} after {counted(o['warm_up'], 'step')} of warm-up; cputrain warms up until "
            "it has chosen its kernels. Ratios are taken within a round; \"no difference\" is said where the interval of "
            "95 % of their median (six rounds at least) holds 1. CPU time is that of all threads. Memory is "
            "the most that was resident, with photographs and the program itself.\n\n")
    planned = len(o["models"]) * (1 if o["weights_given"] else len(o["epochs"])) * len(o["threads"]) * len(o["precision"])
    if len(result["cells"]) < planned:
        text += f"Here are {len(result['cells'])} of the {planned} comparisons of this command, which goes on where it was ended.\n\n"
    text += runs.table(["network, precision, weights", "threads", "program", "setting", "images/s", "cputrain by it",
                        "ms of CPU per image", "CPUs busy", "memory, GB"],
                       [row for cell in result["cells"] for row in rows_of(result, cell)])
    trials = [row for cell in result["cells"] for row in trial_rows(cell)]
    if trials:
        text += (f"\nThe trials: the quickest of {counted(o['trial_steps'], 'step')} each, with a batch of "
                 f"{max(c['trial_batch'] for c in result['cells'])} at most. Every choice is tried with the best of those before it, and "
                 "the setting taken is bold. A setting counts only where its losses before and after the first step "
                 "are those of cputrain.\n\n")
        text += runs.table(["network, precision, weights", "threads", "program", "setting", "images/s", "ms of CPU per image",
                            "threads busy"], trials)
    return text


def resumed(result, out):
    """The result, or what OUT/peers.json has of the same command, program and machine."""
    path = os.path.join(out, FILE) if out else ""
    if not os.path.exists(path):
        return result
    with open(path) as f:
        earlier = json.load(f)
    if begun_by(earlier) == begun_by(result):
        return {key: earlier[key] for key in result}
    comparison.say(f"{path} is of another command, program or machine: it is made anew")
    return result


def begun_by(result):
    """What a command must share with an earlier one to go on with its cells; day and checkout are not part of it."""
    environment = {key: value for key, value in result["environment"].items() if key not in ("date", "clean")}
    return [result["command"], result["options"], result["versions"].get("ours"), environment]


def write(result, out):
    """OUT/peers.json, where there is a folder for it."""
    result["summaries"] = [{**{k: cell[k] for k in ("model", "epochs", "precision", "batch", "threads")}, **summary(cell)}
                           for cell in result["cells"]]
    if not out:
        return
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, FILE)
    with open(path + ".new", "w") as f:
        json.dump({"generated_by": SCRIPT, **result}, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)


def publish(result, out):
    """The tables in OUT/README.md where that has marks for them; else they are printed."""
    if out:
        runs.publish_as(SCRIPT, out, markdown(result))
    else:
        print(runs.wrapped(markdown(result)))

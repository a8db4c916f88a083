"""What was measured, as a table in Markdown and as JSON."""
import datetime
import json
import os
import platform
import statistics
import subprocess

NAMES = {"ours": "cputrain", "tensorflow": "TensorFlow", "pytorch": "PyTorch"}


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def environment(root, cpus):
    with open("/proc/cpuinfo") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    commit = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()
    return {"date": datetime.date.today().isoformat(), "cpu": models[0] if models else platform.machine(),
            "cpus_online": os.cpu_count(), "cpus_used": cpus, "system": platform.platform(), "commit": commit}


def summary(cell):
    """Of one network at one number of threads: images/s, peak memory and ratios of ours, all over rounds."""
    figures = {}
    for framework in cell["rounds"][0]:
        runs = [r[framework] for r in cell["rounds"]]
        figures[framework] = {
            "images_per_second": spread([statistics.median(run["images_per_second"]) for run in runs]),
            "peak_bytes": max(run["peak_bytes"] for run in runs)}
    peers = [f for f in figures if f != "ours"]
    if "ours" in figures:
        def ratio(round_, peer):
            return (statistics.median(round_["ours"]["images_per_second"]) /
                    statistics.median(round_[peer]["images_per_second"]))
        for peer in peers:
            figures[peer]["ours_times"] = spread([ratio(r, peer) for r in cell["rounds"]])
        if peers:
            figures["ours"]["times_the_fastest"] = spread(
                [min(ratio(r, peer) for peer in peers) for r in cell["rounds"]])
    return figures


def text_of(s, form):
    return f"{s['median']:{form}} ({s['min']:{form}} to {s['max']:{form}})"


def markdown(result):
    e, o = result["environment"], result["options"]
    peers = " and ".join(NAMES[f] for f in o["frameworks"] if f != "ours")
    weights = "as given" if o["weights_given"] else (
        f"after {o['epochs']} epoch{'' if o['epochs'] == 1 else 's'} of cputrain on them")
    lines = [f"# Training steps{' beside ' + peers if peers else ''}", "",
             f"{e['cpu']}, {e['cpus_online']} CPUs, {e['date']}, commit {e['commit'] or 'unknown'}; "
             + ", ".join(f"{NAMES[f]} {v}" for f, v in result["versions"].items()) + ".", "",
             f"    {result['command']}", "",
             f"Whole training steps in float32 on the same photographs, weights {weights};",
             "every network has the same parameters and, before training, the same loss in all frameworks. Each",
             f"figure is the median (lowest to highest) of {o['rounds']} rounds of {o['steps']} steps after "
             f"{o['warm_up']}; frameworks take",
             "turns, in an order that turns round, each on the same CPUs. Ratios are taken within a round. Memory is",
             "the most that was resident, photographs and the framework itself included.", "",
             "| network | batch | threads | framework | images/s | cputrain / it | peak memory | of the FMA peak |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for cell in result["cells"]:
        for framework, figures in summary(cell).items():
            lines.append(row(cell, framework, figures))
    return "\n".join(lines) + "\n"


def row(cell, framework, figures):
    name = " ".join([NAMES[framework], *cell["settings"].get(framework, {}).values()])
    ratio = text_of(figures["ours_times"], ".2f") if "ours_times" in figures else ""
    peaks = [r["ours"]["fraction_of_peak"] for r in cell["rounds"]] if framework == "ours" else []
    return (f"| {cell['model']} {cell['image_size']}x{cell['image_size']} | {cell['batch']} | {cell['threads']} "
            f"| {name} | {text_of(figures['images_per_second'], '.1f')} | {ratio} "
            f"| {figures['peak_bytes'] / 1e9:.2f} GB | {text_of(spread(peaks), '.2f') if peaks else ''} |")


def write(result, path):
    """FILE.md beside FILE.json, whichever of the two, or neither ending, was said."""
    base = path[:-3] if path.endswith(".md") else path[:-5] if path.endswith(".json") else path
    os.makedirs(os.path.dirname(os.path.abspath(base)), exist_ok=True)
    result["summaries"] = [{**{k: cell[k] for k in ("model", "batch", "threads")}, **summary(cell)}
                           for cell in result["cells"]]
    with open(base + ".json", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    with open(base + ".md", "w") as f:
        f.write(markdown(result))
    return base

"""The plot of README.md: images/s of a training step of `dogcat`, on CPUs and on a GPU, beside other programs.

scripts/tables plot OUT runs it. It reads peers.json of two cores and the benchmarks of one GPU, which others have
measured, and writes OUT/images_per_second.svg. All figures are in float32 or as exact. Of PyTorch on the GPU it takes
the quickest such mode. One file serves light and dark pages: it has no ground, and its colours follow the reader's.
"""
import json
import math
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CPUS, GPU = "results/epyc-zen4-2-cores", "results/gpu-h200"
NAME = "images_per_second.svg"
LEAST, MOST = 10, 10_000  # of the axis
LEFT, RIGHT, WIDTH = 110, 700, 760  # pixels
TOP, ROW, GAP, BAR = 62, 28, 34, 18
STYLE = """<style>
text { fill: #1d2129; font: 14px system-ui, "DejaVu Sans", sans-serif }
.title { font-size: 16px; font-weight: 600 } .soft { fill: #5b6472; font-size: 12px }
line { stroke: #d8dde5 } .ours { fill: #0072b2 } .other { fill: #98a1ae }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e7ec } .soft { fill: #9aa4b2 } line { stroke: #343b46 } .ours { fill: #4ba3dd } .other { fill: #6d7785 }
}
</style>"""


def read(*path):
    with open(os.path.join(ROOT, *path)) as file:
        return json.load(file)


def groups():
    """[(processor, [(program, images/s)])]: medians."""
    cell = max((s for s in read(CPUS, "peers.json")["summaries"] if s["model"] == "dogcat" and s["precision"] == "float"),
               key=lambda s: (s["threads"], s.get("epochs") or 0))
    step = read(GPU, "benchmarks.json")["step_exact_256"]
    modes = [mode for mode in read(GPU, "pytorch.json")["results"]
             if mode["status"] == "measured" and mode["precision"] == "float32" and mode["batch"] == step["batch"]]
    best = max(mode["images_per_second"]["median"] for mode in modes)
    names = (("cputrain", "ours"), ("TensorFlow", "tensorflow"), ("PyTorch", "pytorch"))
    return [(f"{cell['threads']} cores of an AMD EPYC (Zen 4)",
             [(name, cell[key]["images_per_second"]["median"]) for name, key in names]),
            ("One NVIDIA H200", [("cputrain", step["images_per_second"]["median"]), ("PyTorch", best)])]


def place(value):
    """The axis is logarithmic."""
    return LEFT + (RIGHT - LEFT) * math.log(value / LEAST) / math.log(MOST / LEAST)


def text(x, y, words, kind="", anchor="start"):
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{words}</text>'


def svg(groups):
    bars, y = [], TOP
    for processor, programs in groups:
        bars.append(text(LEFT, y + 15, processor, "soft"))
        y += 24
        for program, rate in programs:
            end = place(rate)
            kind = "ours" if program == "cputrain" else "other"
            bars += [text(LEFT - 10, y + 14, program, anchor="end"),
                     f'<rect x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="{BAR}" rx="2" class="{kind}"/>',
                     text(end + 8, y + 14, f"{rate:,.0f}")]
            y += ROW
        y += GAP - ROW + 4
    axis, tick = [], LEAST
    while tick <= MOST:
        if tick < MOST:  # the last line would go through figures
            axis.append(f'<line x1="{place(tick):.1f}" y1="{TOP}" x2="{place(tick):.1f}" y2="{y}"/>')
        axis.append(text(place(tick), y + 18, f"{tick:,}", "soft", "middle"))
        tick *= 10
    height = y + 30
    said = "; ".join(f"{processor}: " + ", ".join(f"{program} {rate:,.0f}" for program, rate in programs)
                     for processor, programs in groups)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="Training, images per second. {said}">', STYLE,
        text(LEFT, 22, "Training: images per second", "title"),
        text(LEFT, 42, "one network of 13 million weights, 256x256 pixels, float32; the axis is logarithmic", "soft"),
        *axis, *bars, "</svg>"]) + "\n"


def main():
    path = os.path.join(sys.argv[1], NAME)
    os.makedirs(sys.argv[1], exist_ok=True)
    with open(path, "w") as file:
        file.write(svg(groups()))
    print(path)


if __name__ == "__main__":
    main()

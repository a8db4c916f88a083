"""The day on one page, which is the last that it prints."""
import kernel_waits

MOST_CHARACTERS = 13_500
COLUMNS = 100  # of a step


def shortened(text, most):
    return text if len(text) <= most else text[:most - 3] + "..."


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def step_lines(steps):
    widest = max([len(step.name) for step in steps], default=0)
    for step in steps:
        head = f"  {step.name:<{widest}}  {step.outcome:<7}  {step.seconds:6.1f} s  "
        yield head + shortened(step.text, COLUMNS - len(head))


def figure_lines(figures):
    widest = max([len(f["what"]) for f in figures], default=0)
    yield f"  {'':<{widest}}  {'predicted':>10}  {'measured':>10}  {'ratio':>6}"
    for f in figures:
        yield (f"  {f['what']:<{widest}}  {number(f['predicted']):>10}  {number(f['measured']):>10}  "
               f"{number(f['ratio']):>6}  {f['unit']}")


def waits_lines(profiles):
    """A line for each family of kernels that ncu saw."""
    rows = [(name, row) for name, of_profile in profiles.items() for row in of_profile["families"]]
    widest = max([len(row["kernel"]) for _, row in rows], default=0)
    before = None
    for name, row in rows:
        if name != before:
            yield f"  {name + ':':<{widest + 2}}{'us':>6}{'shared':>7}{'L2':>5}{'DRAM':>5}{'tensor':>7}  warps wait for"
        rates = [percent(row["rates"].get(rate)) for rate in ("shared", "l2", "dram", "tensor")]
        yield (f"    {row['kernel']:<{widest}}{number(row['microseconds']):>6}{rates[0]:>7}{rates[1]:>5}{rates[2]:>5}"
               f"{rates[3]:>7}  {kernel_waits.reasons(row, 2)}")
        before = name


def part(title, lines):
    lines = list(lines)
    return [title, *lines, ""] if lines else []


def percent(value):
    return "-" if value is None else f"{value:.0f}%"


def in_order_of_worth(figures):
    """Whole steps before single layers, of which there are many."""
    return sorted(figures, key=lambda figure: figure["unit"] != "images/s")


def text(results):
    head = results.head
    lines = [f"cputrain's day with a GPU{', a rehearsal' if head['quick'] else ''}: {head['device']}",
             f"pack of {head['pack']}, {head['date']}, {head['seconds']:.0f} of {head['budget']:.0f} s", "",
             "Steps:", *step_lines(results.steps), "",
             *part("Why warps wait, by ncu (rates are of what the GPU could):",
                   waits_lines(results.facts.get("ncu", {}))),
             "Figures (ratio: measured by predicted):", *figure_lines(in_order_of_worth(results.figures))]
    outcomes = [step.outcome for step in results.steps]
    counts = ", ".join(f"{outcomes.count(word)} {word}" for word in ("ok", "failed", "skipped", "not run"))
    last = [f"Details: {name}: {step}" for name, step in failures(results.steps)]
    last += ["", f"{len(outcomes)} steps: {counts}"]
    if results.failed():
        last.append("FAILED: " + ", ".join(results.failed()))
    whole = "\n".join(lines)
    room = MOST_CHARACTERS - sum(len(line) + 1 for line in last)
    if len(whole) > room:
        whole = whole[:room - 30] + "\n... (day.json has the rest)"
    return "\n".join([whole, *last]) + "\n"


def failures(steps):
    return [(step.name, shortened(step.text, 400)) for step in steps if step.outcome == "failed"]

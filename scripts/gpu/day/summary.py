"""The day on one page, which is the last that it prints."""
MOST_CHARACTERS = 9_000
COLUMNS = 118


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


def text(results):
    head = results.head
    lines = [f"cputrain's day with a GPU{', a rehearsal' if head['quick'] else ''}: {head['device']}",
             f"pack of {head['pack']}, {head['date']}, {head['seconds']:.0f} of {head['budget']:.0f} s", "",
             "Steps:", *step_lines(results.steps), "",
             "Figures (ratio: measured by predicted):", *figure_lines(results.figures)]
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

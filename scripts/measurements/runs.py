"""What the parts of scripts/tables share: commands that are run and published, files that say what made them."""
import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import textwrap

sys.dont_write_bytecode = True
import origin

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def arguments(description):
    """A parser with what every measurement takes: OUT and --data."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("out", help="folder of this machine's results")
    p.add_argument("--data", required=True, help="class folders of photographs")
    p.add_argument("--about", default="the images of DIR", help="what DIR is, for the tables [%(default)s]")
    return p


def sentence_start(text):
    """The text as a sentence begins; capitals in it stay, such as those of names."""
    return text[:1].upper() + text[1:]


def on_ranks(ranks, *words):
    """`./cputrain WORDS` on so many ranks of this machine, as a list of words."""
    launcher = ["mpirun", "-np", str(ranks)]
    if ranks > 1:
        launcher += ["--bind-to", "none"]
    if ranks > len(os.sched_getaffinity(0)):
        launcher += ["--oversubscribe"]
    return [*launcher, "./cputrain", *words]


def run(command, told=False):
    """Standard output of a command that must succeed; Open MPI may run as root. `told`: people see its progress."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=None if told else subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{((done.stderr or '') + done.stdout)[-2000:]}")
    return done.stdout


def published(command, **names):
    """The command as text, each value of `names` in capitals: published(c, DIR=data) names no folder of a machine."""
    written = {value: name for name, value in names.items()}
    return shlex.join(written.get(word, word) for word in command)


def metrics(folder):
    """Lines of a run folder's metrics.jsonl; none where there is no such file or the training did not finish."""
    try:
        with open(os.path.join(folder, "metrics.jsonl")) as f:
            lines = [json.loads(line) for line in f]
    except FileNotFoundError:
        return []
    return lines if lines and lines[-1]["type"] == "summary" and lines[-1]["outcome"] == "finished" else []


def machine_of(folder):
    """Processor, libraries and program of a run folder, without names of hosts and folders."""
    with open(os.path.join(folder, "environment.json")) as f:
        facts = json.load(f)
    machine = {key: facts["machine"].get(key) for key in ("cpu", "cpu_id", "instruction_set", "cores",
                                                          "hardware_threads", "memory_gb")}
    return {"program": f"cputrain {facts['cputrain']} ({facts['build']})", "started": facts["started"],
            "machine": machine, "backend": facts["backend"], "communication": facts["communication"],
            "libraries": facts["libraries"]}


def origin_of(folder):
    """Date and commit of a run folder."""
    with open(os.path.join(folder, "environment.json")) as f:
        return origin.of_run(json.load(f))


def precisions():
    """Those that this machine has instructions for."""
    with open("/proc/cpuinfo") as f:
        return ["float", "bf16"] if re.search(r"\b(avx512_bf16|amx_bf16)\b", f.read()) else ["float"]


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def spread_text(values, form):
    """Median and range: `3.1 (2.9 to 3.4)`."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def write_json(path, part, result):
    with open(path, "w") as f:
        json.dump({"generated_by": f"scripts/tables {part}", **result}, f, indent=1)
        f.write("\n")


def table(head, rows):
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in [head, ["---"] * len(head), *rows]) + "\n"


def folded(command):
    """A command in lines of a document's length; a flag and its value stay together."""
    joined = re.sub(r"(--\S+) (?=[^-\s])", "\\1\0", command)
    lines = textwrap.wrap(joined, 114, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    return " \\\n".join(lines).replace("\0", " ")


def block(*commands, not_run=""):
    """Commands as documents have them; `not_run` is the reason why tests do not run them."""
    lines = ["```sh", *map(folded, commands), "```"]
    return "\n".join([f"<!-- not run: {not_run} -->", *lines] if not_run else lines) + "\n\n"


def wrapped(text):
    """Paragraphs in lines of a document's length; tables, commands and comments as they are."""
    paragraphs, is_command = [], False
    for paragraph in text.strip().split("\n\n"):
        is_command = is_command or "```" in paragraph
        prose = not is_command and not paragraph.startswith("|")
        paragraphs.append(textwrap.fill(paragraph, 118, break_on_hyphens=False) if prose else paragraph)
        is_command = is_command and not paragraph.endswith("```")
    return "\n\n".join(paragraphs)


def publish(out, part, text):
    publish_as(f"scripts/tables {part}", out, text)


def publish_as(made_by, out, text):
    """Prints the text, and puts it into OUT/README.md where that has the marks of what made it, between them."""
    text = wrapped(text)
    print(text)
    begin, end = f"<!-- generated by {made_by} -->\n", f"<!-- end of {made_by} -->\n"
    path = os.path.join(out, "README.md")
    if not os.path.exists(path):
        return
    with open(path) as f:
        readme = f.read()
    if begin not in readme or end not in readme:
        print(f"scripts/tables: {path} has no marks of `{made_by}`, so the table above is not in it; add two lines to it:\n"
              f"{begin}{end}", end="", file=sys.stderr)
        return
    before, rest = readme.split(begin, 1)
    with open(path, "w") as f:
        f.write(before + begin + "\n" + text + "\n\n" + end + rest.split(end, 1)[1])

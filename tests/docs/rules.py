"""The rules for documents. CONTRIBUTING.md has them in words."""
import os
import re
import subprocess

from documents import CODE_SPAN, LIST_ITEM, Document, Finding, anchors, files, is_table, links, sentences

MOST_WORDS = 29  # in a sentence
LONGEST_LINE = 120
LONGEST = {"README.md": 130}  # lines of a document
LONGEST_CELL = {"README.md": 120}  # characters of a table's cell
# Guides for those who change the program: src/README.md and CONTRIBUTING.md lead to them. README.md leads to all others.
OF_DEVELOPERS = re.compile(r"src/README|src/scaling/README|datasets/loader/|backends/(cpu|cuda)/|scripts/(gpu|peers)/")
MOST_MARKED = 1 / 3  # of a document's commands: those that are not run
WORDS = {  # that have a better one
    r"pictures?": "image (of data), plot or table",
    r"(?:hangs?|hung|hanging) on": "depends on",
    r"one's own": "its own",
}
# Folders of somebody's machine.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:root|home|work|Users|mnt|media)/\w")
OTHER_PROGRAMS = """
    --allow-run-as-root --bind-to --display-map --host --hostfile --map-by --mca --oversubscribe --report-bindings
    --use-hwthread-cpus --with-ft
    --array --cpus-per-task --dependency --exclusive --export --gpus-per-node --gres --mem --mpi --nodes --ntasks
    --ntasks-per-node --parsable --partition --requeue --signal --time --wait
    --branch --build --build-arg --depth --install --output-on-failure --prefix --preset --rerun-failed --target
    --test-dir
    --bind --contain --cleanenv --device --fakeroot --gpus --ipc --network --nv --pwd --rm --shm-size --user --volume
    --constraint --env --entrypoint --hostname --init --interactive --name --tty --workdir
    --no-cache --pull --tag --file --format --filter --zone --filters --query --instance-ids --logdir --port
    --no-install-recommends --reinstall --upgrade --show --info --contents
""".split()


# Rules. Each gives the findings in one document.

def form(document, _):
    found = list(document.mistakes)
    name = document.path
    most = LONGEST.get(name)
    if most and len(document.lines) > most:
        found.append(Finding(name, most + 1, f"{len(document.lines)} lines, more than {most}"))
    for number, line in [*document.prose, *((f.line + i, line) for f in document.fences if f.language == "sh"
                                            for i, line in enumerate(f.lines))]:
        if len(line) > LONGEST_LINE and not is_table(line):
            found.append(Finding(name, number, f"{len(line)} characters, more than {LONGEST_LINE}"))
    most = LONGEST_CELL.get(name, LONGEST_LINE ** 2)
    found += [Finding(name, number, f"a cell of {len(cell.strip())} characters, more than {most}")
              for number, line in document.prose if is_table(line)
              for cell in line.strip().strip("|").split("|") if len(cell.strip()) > most]
    blocks = [f for f in document.fences if f.language == "sh"]
    marked = [f for f in blocks if f.reason]
    # Pages of results are of commands that measure for minutes and hours.
    if not name.startswith("results/") and len(marked) > max(1, len(blocks) * MOST_MARKED):
        found.append(Finding(name, marked[-1].line, f"{len(marked)} of {len(blocks)} blocks are marked `not run`, "
                                                    "more than a third"))
    above = ""
    for number, text in document.prose:
        if re.match(r"(<<<<<<<|=======|>>>>>>>)( |$)", text):
            found.append(Finding(name, number, "a mark of a merge that was not finished"))
        if text.startswith("    ") and text.strip() and not above.strip() and not in_list(document, number):
            found.append(Finding(name, number, "an indented block: write a fence (```sh, ```text)"))
        above = text
    return found


def in_list(document, number):
    """Does the paragraph above this line belong to an item of a list?"""
    for line in reversed(document.lines[:number - 1]):
        if LIST_ITEM.match(line):
            return True
        if line.strip() and not line.startswith(" "):
            return False
    return False


def short_sentences(document, _):
    return [Finding(document.path, sentence.line, f"a sentence of {sentence.words} words, more than {MOST_WORDS}: "
                                                  f"{' '.join(sentence.text.split()[:8])} ...")
            for sentence in sentences(document) if sentence.words > MOST_WORDS]


def words(document, _):
    found = []
    for number, text in document.prose:
        plain = re.sub(rf"{CODE_SPAN}|\]\([^)]*\)", "", text)
        for pattern, better in WORDS.items():
            for match in re.finditer(rf"\b{pattern}\b", plain, re.IGNORECASE):
                found.append(Finding(document.path, number, f'"{match[0]}": write {better}'))
    for number, line in enumerate(document.lines, 1):
        path = MACHINE_PATH.search(line)
        if path:
            found.append(Finding(document.path, number, f"a path of somebody's machine: {line[path.start():][:40]}"))
    return found


def live_links(document, _):
    found = []
    folder = os.path.dirname(document.path)
    for number, target in links(document):
        if re.match(r"(https?|mailto):", target):
            continue
        path, _, anchor = target.partition("#")
        place = os.path.normpath(os.path.join(folder, path)) if path else document.path
        if place.startswith(("..", "/")):
            found.append(Finding(document.path, number, f"a link out of the project: {target}"))
        elif not os.path.exists(os.path.join(document.root, place)):
            found.append(Finding(document.path, number, f"a dead link: there is no {place}"))
        elif anchor and (not place.endswith(".md") or anchor not in anchors(Document(place, document.root))):
            found.append(Finding(document.path, number, f"a dead link: {place} has no heading #{anchor}"))
    return found


FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")


def known_flags(document, flags):
    """Flags in inline code, and in commands that are not run, exist somewhere."""
    found = []
    places = [(number, span) for number, text in document.prose for span in re.findall(r"`([^`]+)`", text)]
    for fence in document.fences:
        if fence.language == "sh" and fence.reason:
            places += [(fence.line + i, line.partition(" # ")[0]) for i, line in enumerate(fence.lines)]
    for number, span in places:
        for flag in FLAG.findall(span):
            if flag not in flags:
                found.append(Finding(document.path, number, f"no command has a flag {flag}"))
    return found


def all_guides(document, _):
    """README.md has a table that leads to every guide of users, each in a row of its own."""
    if document.path != "README.md":
        return []
    rows = [line for _, line in document.prose if is_table(line)]
    guides = [f for f in files(document.root)
              if re.match(r"(src|backends|datasets|scripts)/(.*/)?(README|tutorial)\.md$", f) and not OF_DEVELOPERS.match(f)]
    return [Finding("README.md", 1, f"its tables lead {count} times to {guide}, not once") for guide in guides
            for count in [sum(f"({guide})" in row for row in rows)] if count != 1]


RULES = (form, short_sentences, words, live_links, known_flags, all_guides)


def check(document, flags):
    """All findings, by line. `flags`: of the program, the scripts and others."""
    found = [finding for rule in RULES for finding in rule(document, flags)]
    return sorted(found, key=lambda f: f.line)


# Flags.

COMMANDS = ("train", "eval", "predict", "report", "export", "data check", "data info", "data pack", "data synth",
            "weights fetch", "weights list", "weights path", "bench step", "bench allreduce", "bench input",
            "bench kernels", "tune", "sweep", "simulate", "info", "selftest")


def flags_in(text):
    """`--[no-]bind` is two."""
    return set(FLAG.findall(text)) | {p + n for n in re.findall(r"--\[no-\]([a-z][\w-]*)",
                                                                text) for p in ("--", "--no-")}


def flags_of_program(program):
    """What `cputrain COMMAND --help-all` lists, of all commands."""
    found = {"--help", "--help-all", "--version"}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CPUTRAIN")}
    for command in COMMANDS:
        for word in ("--help-all", "--help"):
            done = subprocess.run([program, *command.split(), word], text=True, capture_output=True, timeout=60,
                                  stdin=subprocess.DEVNULL, env=environment)
            if done.returncode == 0:
                found |= flags_in(done.stdout)
                break
    return found


def flags_of_scripts(root):
    """What scripts and measurements in Python know: any flag that their text has."""
    found = set()
    for path in files(root):
        if path.startswith(("scripts/", "tests/bench/", "tests/docs/")) and not path.endswith(".md"):
            with open(os.path.join(root, path), errors="replace") as file:
                found |= set(FLAG.findall(file.read()))
    return found


def all_flags(program, root):
    return flags_of_program(program) | flags_of_scripts(root) | set(OTHER_PROGRAMS)

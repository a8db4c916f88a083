"""The project's documents and their parts: fences, running text, sentences, links."""
import os
import re
import shutil
import subprocess
from dataclasses import dataclass

CODE_SPAN = r"``.+?``|`[^`]+`"


@dataclass
class Finding:
    """What a document does against a rule."""
    document: str
    line: int
    text: str

    def __str__(self):
        return f"{self.document}:{self.line}: {self.text}"


@dataclass
class Fence:
    """Lines between two fences; `line` is that of the first of them, counted from 1."""
    language: str
    line: int
    lines: list
    reason: str = ""  # why it is not run

    @property
    def is_run(self):
        return self.language == "sh" and not self.reason


@dataclass
class Before:
    """A hidden preparation."""
    line: int
    command: str


class Document:
    """`fences` and `steps` (blocks and preparations to run) in order; `prose`: (line, text) of what lies outside of
    fences and comments."""

    def __init__(self, path, root):
        self.path, self.root = path, root
        with open(os.path.join(root, path), encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        if self.lines and not self.lines[-1]:
            self.lines.pop()
        self.fences, self.steps, self.prose, self.mistakes = [], [], [], []
        self.read()

    def mistake(self, line, text):
        self.mistakes.append(Finding(self.path, line, text))

    def read(self):
        fence, reason, in_comment = None, None, False
        for number, line in enumerate(self.lines, 1):
            opened = re.match(r"( {0,3})```+\s*(\S*)", line)
            if fence is not None:
                if re.match(r" {0,3}```+\s*$", line):
                    fence = None
                else:
                    fence.lines.append(line)
            elif opened and not in_comment:
                fence = Fence(opened[2], number + 1, [], reason[1] if reason else "")
                self.fences.append(fence)
                if fence.language == "sh":
                    self.steps.append(fence)
                if not fence.language:
                    self.mistake(number, "a fence without a language (```sh is run, ```text is not)")
                reason = None
            else:
                if reason and line.strip():
                    self.mistake(reason[0], "`not run:` stands on the line above a fence")
                    reason = None
                text, in_comment = self.without_comments(line, in_comment)
                marked = re.fullmatch(r"\s*<!-- not run: *(.*?) *-->\s*", line)
                before = re.fullmatch(r"\s*<!-- before: *(.*?) *-->\s*", line)
                if marked:
                    reason = (number, marked[1])
                    if len(marked[1].split()) < 2:
                        self.mistake(number, "`not run:` needs a reason in words")
                elif before:
                    self.steps.append(Before(number, before[1]))
                elif re.search(r"<!-- *(not run|before)\b", re.sub(CODE_SPAN, "", line)):
                    self.mistake(number, "write <!-- not run: REASON --> or <!-- before: COMMAND --> on one line")
                self.prose.append((number, text))
        if fence is not None:
            self.mistake(fence.line - 1, "a fence that is never closed")
        if reason:
            self.mistake(reason[0], "`not run:` stands on the line above a fence")

    @staticmethod
    def without_comments(line, inside):
        """The line without HTML comments, and whether one goes on in the next line. Code spans stay as they are."""
        text = ""
        while line:
            if inside:
                _, end, line = line.partition("-->")
                inside = not end
            else:
                start = re.match(rf"(?:{CODE_SPAN}|(?!<!--).)*", line).end()
                text, line, is_open = text + line[:start], line[start + len("<!--"):], start < len(line)
                inside = is_open
        return text, inside


def is_generated(path, root):
    """What `cputrain report` or another program wrote: a report.md with its report.csv, or a file that says so."""
    if os.path.basename(path) == "report.md" and os.path.exists(os.path.join(root, os.path.dirname(path),
                                                                             "report.csv")):
        return True
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return bool(re.match(r"<!-- generated\b", file.readline(), re.IGNORECASE))


def files(root):
    """All files of the project by path: those that git has or would take, else those that are here."""
    if shutil.which("git"):
        git = ["git", "-c", "safe.directory=*", "-C", root]
        listed = subprocess.run([*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], text=True,
                                capture_output=True)
        top = subprocess.run([*git, "rev-parse", "--show-prefix"], text=True, capture_output=True)
        if listed.returncode == 0 and not top.stdout.strip():
            return sorted({f for f in listed.stdout.split("\0") if f and os.path.exists(os.path.join(root, f))})
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if not re.match(r"build|runs$|sweeps$|\.git$|__pycache__$", f)]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def documents(root):
    """Paths of the documents that people write."""
    return [f for f in files(root) if f.endswith(".md") and not is_generated(f, root)]


# Sentences.

ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|vs|cf|etc|approx|no|fig|et al|resp|incl)\.(?=\s)", re.IGNORECASE)
END = re.compile(r"[.!?][\"')*_]*\s+(?=[\"'(*_]*[A-Z0-9])")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")


def is_table(text):
    return text.lstrip().startswith("|")


def paragraphs(document):
    """(first line, text) of running text: neither headings nor tables; every item of a list is one."""
    found, current = [], None
    last = 0
    for number, text in document.prose:
        gap = number != last + 1
        last = number
        stripped = text.strip()
        if not stripped or is_table(text) or re.match(r"#{1,6} ", stripped) or re.fullmatch(r"[-=*_ ]{3,}", stripped):
            current = None
            continue
        if LIST_ITEM.match(text) or gap:
            current = None
        if current is None:
            current = [number, []]
            found.append(current)
        current[1].append((number, LIST_ITEM.sub("", text, count=1) if not current[1] else stripped))
    return found


@dataclass
class Sentence:
    line: int
    text: str
    words: int  # a code span is one, of a link its text counts


def sentences(document):
    for _, lines in paragraphs(document):
        text, starts = "", []
        for number, line in lines:
            starts.append((len(text), number))
            text += line.strip() + " "
        hidden = re.sub(CODE_SPAN, lambda m: "C" + "o" * (len(m[0]) - 1), text)
        hidden = LINK.sub(blank_link, hidden)
        hidden = ABBREVIATIONS.sub(lambda m: m[0][:-1] + "_", hidden)
        position = 0
        for end in [*(m.end() for m in END.finditer(hidden)), len(hidden)]:
            line = max(n for at, n in starts if at <= position)
            yield Sentence(line, text[position:end].strip(), count_words(hidden[position:end]))
            position = end


def blank_link(match):
    """The link's text, which may begin a sentence, and behind it what fills up the characters that the link had."""
    return (match[1].capitalize() + "_" * len(match[0]))[:len(match[0])]


def count_words(sentence):
    return sum(1 for word in sentence.split() if re.search(r"[A-Za-z0-9]", word))


# Links.

def slug(heading):
    """GitHub's anchor of a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(document):
    found = set()
    for _, text in document.prose:
        heading = re.match(r"#{1,6} +(.*?)(?: +#+)?\s*$", text)
        if heading:
            name, n = slug(heading[1]), 1
            while name in found:
                name, n = f"{slug(heading[1])}-{n}", n + 1
            found.add(name)
    return found


def links(document):
    """(line, target) of every link and image."""
    for number, text in document.prose:
        plain = re.sub(CODE_SPAN, "", text)
        for target in re.findall(r"\]\(([^)\s]*)[^)]*\)", plain) + re.findall(r"^\s*\[[^\]]+\]:\s+(\S+)", plain):
            yield number, target
        for target in re.findall(r"<(?:img|source|a)\b[^>]*?(?:src|srcset|href)=\"([^\"]+)\"", text):
            yield number, target

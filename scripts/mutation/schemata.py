"""Mutations of C++ sources, and sources that hold many of them: each is an expression that asks mutant_is(n) which of
its two forms is meant (switch.h). Where expressions end is told by brackets; what does not compile is left out later.
"""
import dataclasses
import hashlib
import itertools
import re

NOISE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/'
                   r"|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
# Declarations, and what a compiler wants to know. Assertions are not in the program. A function without a return at its
# end has no loop that ends, says C++.
NOT_MUTATED = re.compile(r"\s*(template|using|typedef|namespace|class|struct|enum|friend|extern|case|static_assert"
                         r"|assert|requires|concept|static constexpr|static inline constexpr)\b"
                         r"|.*\b(operator\b|if constexpr\b|while \(true\))|.*\) .*= 0;")
SWAPS = {
    "relational": (r"(?<=\s)(?:[<>]=?|[=!]=)(?=\s)",
                   {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}),
    "arithmetic": (r"(?<=\s)(?:[-+*/]|[-+]=)(?=\s)", {"+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+="}),
    "logical": (r"(?<=\s)(?:&&|\|\|)(?=\s)", {"&&": "||", "||": "&&"}),
    "min_max": (r"(?<=std::)(?:min|max)(?=[(<])", {"min": "max", "max": "min"}),
    "constant": (r"(?<![\w.'])[01](?=(?:\.0?)?[fFuUlL]*(?![\w.']))", {"0": "1", "1": "0"}),
    "boolean": (r"\b(?:true|false)\b", {"true": "false", "false": "true"}),
}
SWITCH = b'#include "mutation/switch.h"\n#line 1\n'  # not in a file that is included inside a namespace, as *.inl
LONGEST = 600  # characters of an expression that is written twice
PAIRS = {")": "(", "]": "[", "}": "{"}


@dataclasses.dataclass(frozen=True)
class Mutation:
    id: str
    room: str
    file: str
    line: int  # the first; the last is `end_line`
    end_line: int
    start: int  # what the schema replaces, and what it then has for each form
    end: int
    old: str
    new: str
    operator: str

    def schema(self, number, text):
        """It has as many lines, so that compilers name those of the source."""
        old, new = text[self.start:self.end], self.new
        if old.endswith(";"):
            return f"{{ if (mutant_is({number})) {{ {new.strip('; ') and new} }} else {{ {old} }} }}"
        return f"(mutant_is({number}) ? ({new}) : ({old}))"


def masked(text):
    """`text` with as many characters, without comments and preprocessor's lines, and with literals as words."""
    return NOISE.sub(lambda m: re.sub(r"[^\n]", " " if m[0].lstrip()[0] in "/#" else "_", m[0]), text)


def on_one_line(text):
    text = NOISE.sub(lambda m: "" if m[0].startswith("/") else m[0], text)
    return re.sub(r"\s*\n\s*", " ", text).strip()


def opening(code, i):
    """Where the bracket opens that closes at i; 0 where none does."""
    depth = 0
    for k in range(i, -1, -1):
        depth += (code[k] in PAIRS) - (code[k] in PAIRS.values())
        if depth == 0:
            return k
    return 0


def is_block(code, start, end):
    """Braces around statements, not around values."""
    before = code[:start].rstrip()
    return (";" in code[start:end] or not before or before[-1] in ");{}:" or
            re.search(r"\b(else|do|try|const|noexcept|override)$", before[-12:]) is not None)


def is_assignment(code, i):
    return code[i] == "=" and code[i - 1] not in "=!<>" and code[i + 1:i + 2] != "="


def ends_left(code, i):
    """Whether the expression that goes on at i + 1 begins there: i is a delimiter's last character."""
    c = code[i]
    if c in ",;?([{" or is_assignment(code, i):
        return True
    if c == ":":
        return ":" not in (code[i - 1], code[i + 1:i + 2])
    return (not re.match(r"\w", code[i + 1:i + 2]) and
            re.search(r"(?<!\w)(return|throw|else|do)$", code[max(0, i - 7):i + 1]) is not None)


def left_end(code, i):
    while i > 0 and not ends_left(code, i - 1):
        if code[i - 1] in PAIRS:
            start = opening(code, i - 1)
            word = re.search(r"(\w*)\s*$", code[max(0, start - 12):start])[1]
            if word in ("if", "for", "while", "switch", "constexpr") or (
                    code[i - 1] == "}" and is_block(code, start, i)):
                break
            i = start
        else:
            i -= 1
    return i


def right_end(code, i, delimiters=",;?:"):
    """The same to the right; a closing bracket ends every expression."""
    depth = 0
    while i < len(code):
        c = code[i]
        scope = c == ":" and ":" in (code[i - 1], code[i + 1:i + 2])
        if depth == 0 and (c in PAIRS or c in delimiters and not scope):
            break
        depth += (c in PAIRS.values()) - (c in PAIRS)
        i += 1
    return i


def is_one(code):
    """Whether a text is one expression: no comma or semicolon but in its brackets, each of which closes."""
    depth = 0
    for c in code:
        depth += (c in PAIRS.values()) - (c in PAIRS)
        if depth < 0 or (depth == 0 and c in ",;"):
            return False
    return depth == 0


def enclosing(code, start, end, new):
    """The smallest expression around code[start:end] that can be chosen by `?:`; None where there is none."""
    inner = (start, end)
    while True:
        left, right = left_end(code, start), right_end(code, end)
        whole = code[left:inner[0]] + new + code[inner[1]:right]
        before = code[:left - 1][-1:]
        values = code[left - 1:left] == "{" and right < len(code) and re.match(r"[\w>]", before)  # T{0} takes no int
        if is_one(code[left:right]) and is_one(masked(whole)) and not values:
            break
        if left == 0 or code[left - 1] not in "([{" and not values or right - left > LONGEST:
            return None
        start, end = left - 1, right + 1
    left += len(code[left:right]) - len(code[left:right].lstrip())
    right = left + len(code[left:right].rstrip())
    declares = re.match(r"(const |static )*[\w:]+(<.*>)?[&*]* \w+\s*[({]", code[left:right])
    return None if declares or not 0 < right - left <= LONGEST else (left, right)


def swaps(code):
    for operator, (pattern, by) in SWAPS.items():
        for m in re.finditer(pattern, code):
            yield operator, m.start(), m.end(), by[m[0]]


def negations(code, text):
    for m in re.finditer(r"\bif \(", code):
        end = right_end(code, m.end(), "")
        start = m.end() + code[m.end():end].rfind(";") + 1
        if end < len(code) and not any(is_assignment(code, i) for i in range(start, end)):
            yield "negation", start, end, f"!({text[start:end].strip()})"


def deletions(code):
    """Calls, assignments and increments that are statements."""
    words = "return|throw|delete|if|for|while|switch|do|else|using|goto|static_assert|assert"
    for m in re.finditer(r"(?:[;{})]|\belse)\s+(?=[\w*+(-])", code):
        start, end = m.end(), right_end(code, m.end(), ";")
        statement = code[start:end]
        if m[0][0] == ")" and not re.search(r"\b(if|for|while) $", code[:opening(code, m.start())]):
            continue
        if code[end:end + 1] != ";" or len(statement) > LONGEST or re.match(rf"(?:{words}|[A-Z]\w*\()\b", statement):
            continue
        if re.match(r"(\+\+|--)[\w.>\[\]-]+$|[^\s(=]+(\(.*\)$|\s(?:[-+*/|&^]|<<|>>)?=\s)", statement, re.S):
            yield "deletion", start, end + 1, ";"


def line_around(text, start, end):
    return text[text.rfind("\n", 0, start) + 1:(text + "\n").index("\n", end)]


def mutation(room, file, text, operator, outer, inner, new, nth, id=None):
    """`outer` is what the schema replaces; `inner`, a part of it, becomes `new`."""
    old = on_one_line(text[outer[0]:outer[1]])
    mutated = on_one_line(text[outer[0]:inner[0]] + new + text[inner[1]:outer[1]])
    key = (operator, old, mutated, line_around(text, inner[0], inner[0]).strip())
    number = next(nth.setdefault(key, itertools.count()))
    said = hashlib.sha256("\n".join((*key, str(number))).encode()).hexdigest()
    lines = (text.count("\n", 0, outer[0]) + 1, text.count("\n", 0, outer[1]) + 1)
    return Mutation(id or f"{file}:{operator}:{said[:8]}", room, file, *lines, *outer, old, mutated, operator)


def candidates(room, file, text):
    """Every mutation of a file that the operators know."""
    code, nth, found = masked(text), {}, []
    for operator, start, end, new in itertools.chain(swaps(code), negations(code, text), deletions(code)):
        line, before = line_around(code, start, start), code[code.rfind("\n", 0, start) + 1:start]
        if NOT_MUTATED.match(line) or re.search(r"\w<[^<>;(){}]*$", before):  # a template's arguments
            continue
        outer = (start, end) if operator == "deletion" else enclosing(code, start, end, new)
        strings = operator == "arithmetic" and outer and "__" in code[slice(*outer)]
        if outer and not strings:
            found.append(mutation(room, file, text, operator, outer, (start, end), new, nth))
    return found


def by_hand(room, entry, text):
    """The mutation of a list's line: id, file, old, new. ValueError says what is wrong with it."""
    old, new, code = entry["old"], entry["new"], masked(text)
    if text.count(old) != 1:
        raise ValueError(f"{entry['id']}: {entry['file']} has its old text {text.count(old)} times")
    start, end = text.index(old), text.index(old) + len(old)
    first = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    least = min(len(old), len(new)) - first
    last = next((i for i in range(least) if old[-1 - i] != new[-1 - i]), least)
    inner, change = (start + first, end - last), new[first:len(new) - last]
    outer = enclosing(code, *inner, change) if new.strip("; ") and is_one(masked(
        old[first:len(old) - last] + change)) else None
    if not outer and old.endswith(";"):
        outer = inner = (start, end)
        change = new or ";"
    if not outer:
        raise ValueError(f"{entry['id']}: neither an expression nor whole statements")
    return mutation(room, entry["file"], text, "by hand", outer, inner, change, {}, entry["id"])


def in_order(seed, mutations):
    """All of them in the order in which they are drawn: operators in turn. An edit elsewhere changes nothing in it."""
    def place(word):
        return hashlib.sha256(f"{seed}:{word}".encode()).hexdigest()
    kinds = {}
    for m in sorted(mutations, key=lambda m: place(m.id)):
        kinds.setdefault(m.operator, []).append(m)
    turns = itertools.zip_longest(*(kinds[k] for k in sorted(kinds, key=place)))
    return [m for turn in turns for m in turn if m]


def without_overlap(mutations, taken=()):
    """Those that lie apart from each other and from `taken`, in their order."""
    kept = list(taken)
    for m in mutations:
        if all(m.file != k.file or m.end <= k.start or k.end <= m.start for k in kept):
            kept.append(m)
            yield m


def with_schemata(text, numbered):
    """A file's text that holds its mutations, a list of (number, Mutation). Lines keep their numbers. A constant that
    is changed when the program runs is none for the compiler."""
    for number, m in sorted(numbered, key=lambda pair: -pair[1].start):
        head = max(text.rfind(c, 0, m.start) for c in ";{}") + 1
        before = text[head:m.start]
        if re.search(r"\bconstexpr [^(){]*=[^=]*$", before):
            before = before.replace("constexpr ", "const     ", 1)
        text = text[:head] + before + m.schema(number, text) + text[m.end:]
    return text

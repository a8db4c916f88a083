"""Machine code of a GPU (SASS) as nvdisasm prints it: instructions of each kernel, and its main loop."""
import collections
import re

SECTION = re.compile(r"\s*\.section\s+\.text\.(\w+),")
LABEL = re.compile(r"(\.L_x_\d+):")
INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")
BRANCH = re.compile(r"\bBRA\b.*?\(?(\.L_x_\d+)\)?")
PREDICATE = re.compile(r"@!?U?P\w+\s+")


class Kernel:
    """`instructions` in order; `labels`: name -> index of the instruction behind it."""

    def __init__(self, name):
        self.name, self.instructions, self.labels = name, [], {}

    def end(self):
        """Leaves out what fills the section up: the branch to itself behind the code, and NOPs."""
        while self.instructions and self.is_filling(len(self.instructions) - 1):
            self.instructions.pop()

    def is_filling(self, at):
        branch = BRANCH.search(self.instructions[at])
        return self.instructions[at].startswith("NOP") or bool(branch and self.labels.get(branch[1]) == at)

    def main_loop(self):
        """Instructions of the smallest loop that has all tensor-core instructions, without those that warps share
        out among them; and these."""
        tensor = [i for i, text in enumerate(self.instructions) if mnemonic(text) == "HMMA"]
        loops = [(self.labels[branch[1]], i) for i, text in enumerate(self.instructions)
                 for branch in [BRANCH.search(text)] if branch and self.labels.get(branch[1], i + 1) <= i]
        around = [(begin, end) for begin, end in loops if tensor and begin <= tensor[0] and tensor[-1] <= end]
        if not around:
            raise ValueError(f"{self.name}: no loop has all tensor-core instructions")
        begin, end = min(around, key=lambda loop: loop[1] - loop[0])
        first, last = self.shared_out(begin, end)
        return (self.instructions[begin:first] + self.instructions[last:end + 1], self.instructions[first:last])


    def shared_out(self, loop_begin, loop_end):
        """(begin, end) of what a branch in the loop jumps over though tensor-core instructions are there: what warps
        share out, each in one of several steps. Nothing: (loop_begin, loop_begin)."""
        for i in range(loop_begin, loop_end):
            branch = BRANCH.search(self.instructions[i])
            target = self.labels.get(branch[1], 0) if branch else 0
            if i < target <= loop_end and any(mnemonic(text) == "HMMA" for text in self.instructions[i + 1:target]):
                return i + 1, target
        return loop_begin, loop_begin


def mnemonic(text):
    """IMAD of `@!P2 IMAD.IADD R0, R0, 0x1, -R9`."""
    return re.split(r"[.\s]", PREDICATE.sub("", text), maxsplit=1)[0]


def kernels_in(text):
    found = []
    for line in text.splitlines():
        section, label, instruction = SECTION.match(line), LABEL.match(line), INSTRUCTION.match(line)
        if section:
            found.append(Kernel(section[1]))
        elif found and label:
            found[-1].labels[label[1]] = len(found[-1].instructions)
        elif found and instruction:
            found[-1].instructions.append(instruction[1])
    for kernel in found:
        kernel.end()
    return found


def counted(instructions):
    return collections.Counter(mnemonic(text) for text in instructions)


def runs_of(wanted, instructions):
    """{length: how often} of instructions of the kind that follow each other."""
    runs, length = collections.Counter(), 0
    for text in [*instructions, ""]:
        if mnemonic(text) == wanted:
            length += 1
        elif length:
            runs[length] += 1
            length = 0
    return runs

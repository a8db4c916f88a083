"""How long launches take on a GPU: the largest of five times, as if each were all that the kernel does.

    issue    instructions of all warps, an HMMA for tensor_issue of them / (multiprocessors x schedulers x clock)
    tensor   HMMA of all warps x tensor_cycles / (multiprocessors x schedulers x clock)
    l2       bytes of the tiles that blocks copy to shared memory / l2
    dram     bytes of the maps and weights, each once / dram
    latency  round trips to memory, one after the other x round_trip

A matrix product's time is taken longer by its last wave: 300 blocks where 264 run at a time take as long as 528. Then
comes `full`, the part of issue and tensor that kernels reach; rates of memory are those that copies reach. `launch` is
the time until the next kernel begins.

Left out: pipes that take an instruction every second cycle, conflicts of shared memory's banks, what caches keep from
one kernel to the next, and branches, which all count as taken."""
import json
import os
import re

import plan
from kernels import KERNELS

HERE = os.path.dirname(os.path.abspath(__file__))
HARDWARE = os.path.join(HERE, "hardware.json")
INSTRUCTIONS = os.path.join(KERNELS, "instructions.txt")
PRODUCT = re.compile(r"gemm<(\w+)Numbers,GemmTile<\(GemmTileSize\)(\d),(\d+),(\d+)>,(\w+)>")
TABLE_REMEDY = "give a table that scripts/kernel_instructions prints"
HARDWARE_REMEDY = "give a file made like scripts/gpu/hardware.json"
UNITS = {"ghz": 1e9, "gbs": 1e9, "us": 1e-6}  # at the end of a figure's name
BOUNDS = ("issue", "tensor", "l2", "dram", "latency")


class Kernel:
    """A line of the table: instructions outside of the main loop, in it, and its HMMA; of both those that warps do by
    turns."""

    def __init__(self, outside, loop=0, tensor=0, warps=0, turn=0, turn_tensor=0):
        self.outside, self.loop, self.tensor, self.warps = outside, loop, tensor, warps
        self.turn, self.turn_tensor = turn, turn_tensor

    def of_step(self, turns):
        """(instructions, HMMA) of a warp, on average."""
        return self.loop + self.turn / turns, self.tensor + self.turn_tensor / turns


def text_of(path, remedy):
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); {remedy}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text; {remedy}") from None


def read_instructions(path, architecture):
    """{(precision, problem, tile) or kernel: Kernel}"""
    found, section = {}, None
    for line in text_of(path, TABLE_REMEDY).splitlines():
        words = line.split()
        if line.startswith("sm_"):
            section = words[0].rstrip(":")
        elif section == f"sm_{architecture}" and words and words[0].isdigit():
            try:
                add_kernel(found, line, words)
            except (IndexError, ValueError, ZeroDivisionError):
                raise ValueError(f"{path} has a line that is no kernel's: {line.strip()}; {TABLE_REMEDY}") from None
    if not any(isinstance(key, tuple) for key in found):
        raise ValueError(f"{path} has no matrix products for sm_{architecture}; {TABLE_REMEDY}")
    return found


def add_kernel(found, line, words):
    product = PRODUCT.search(line)
    if product:
        add_product(found, product, words)
    else:
        found[words[1]] = Kernel(int(words[0]))


def add_product(found, product, words):
    precision, tile, rows_of_warp, columns_of_warp, problem = product.groups()
    tile = list(plan.TILES)[int(tile)]
    rows, columns = plan.TILES[tile]
    warps = rows // int(rows_of_warp) * (columns // int(columns_of_warp))
    outside, loop, turn, _, tensor, turn_tensor = words[:6]
    found[precision.lower(), problem, tile] = Kernel(int(outside), int(loop), int(tensor), warps, int(turn),
                                                     int(turn_tensor))


def figures_of(name, figures):
    """{figure without its unit: number}"""
    found = {}
    for key, entry in [*figures["of_all"].items(), *figures["gpus"][name].items()]:
        if isinstance(entry, dict):
            plain, _, unit = key.rpartition("_")
            found[plain if unit in UNITS else key] = entry["value"] * UNITS.get(unit, 1)
    return found


class Gpu:
    def __init__(self, name, figures, instructions):
        self.name = name
        self.instructions = read_instructions(instructions, figures["gpus"][name]["architecture"])
        self.of = figures_of(name, figures)

    def precisions(self):
        return sorted({key[0] for key in self.instructions if isinstance(key, tuple)})

    def limits(self, launch, precision):
        """Seconds of each of the five."""
        of = self.of
        cycles = of["multiprocessors"] * of["schedulers"] * of["clock"]
        if launch.plan is None:
            each = self.instructions[launch.kernel].outside if launch.kernel else 0
            issued, tensor, tiles, longer = launch.warps * each, 0, 0, 1
        else:
            made, kernel = launch.plan, self.instructions[precision, launch.kernel, launch.plan.tile]
            steps = made.tiles * made.steps  # of blocks' main loops
            of_step, tensor_of_step = kernel.of_step(made.turns)
            tensor = kernel.warps * steps * tensor_of_step
            issued = (kernel.warps * (steps * of_step + made.blocks * kernel.outside) +
                      tensor * (of["tensor_issue"] - 1))
            tiles = steps * sum(plan.TILES[made.tile]) * plan.STEP_BYTES
            longer = self.by_last_wave(made.blocks)
        return {"issue": longer * issued / (cycles * of["full"]),
                "tensor": longer * tensor * of["tensor_cycles"] / (cycles * of["full"]),
                "l2": longer * tiles / of["l2"], "dram": longer * launch.bytes / of["dram"],
                "latency": launch.round_trips * of["round_trip"]}

    def text_of(self, launch, precision):
        """What limits() makes its times of."""
        if launch.plan is None:
            each = self.instructions[launch.kernel].outside if launch.kernel else 0
            return f"{launch.name}, {launch.warps} warps of {each} instructions, {launch.bytes} bytes"
        made, kernel = launch.plan, self.instructions[precision, launch.kernel, launch.plan.tile]
        rows, columns = plan.TILES[made.tile]
        return (f"{launch.name}, {made.tiles} tiles of {rows} x {columns} by {made.steps} steps, in {made.blocks} "
                f"blocks of {kernel.warps} warps ({self.by_last_wave(made.blocks):.3f} for the last wave); a warp has "
                f"{kernel.loop} instructions a step ({kernel.tensor} HMMA), {kernel.turn} ({kernel.turn_tensor}) in one of "
                f"{made.turns}, and {kernel.outside} besides, "
                f"{launch.bytes} bytes")

    def by_last_wave(self, blocks):
        wave = plan.BLOCKS_OF_MULTIPROCESSOR * self.of["multiprocessors"]
        return plan.pieces(blocks, wave) * wave / blocks

    def time(self, launch, precision):
        """(seconds, what bounds them)"""
        limits = self.limits(launch, precision)
        bound = max(BOUNDS, key=limits.get)
        seconds = limits[bound]
        return seconds + self.of["launch"], bound if seconds > self.of["launch"] else "launch"


def names_of(figures, name):
    """Names of all figures of a GPU, as the file has them."""
    return {*figures["of_all"], *figures["gpus"][name]}


def read_hardware(path=HARDWARE):
    try:
        figures = json.loads(text_of(path, HARDWARE_REMEDY))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON ({error}); {HARDWARE_REMEDY}") from None
    if path != HARDWARE:
        check_hardware(path, figures)
    return figures


def check_hardware(path, figures):
    """Raises where a file lacks what ours has."""
    try:
        if not figures["gpus"]:
            raise KeyError("a GPU in gpus")
        ours = read_hardware()
        wanted = names_of(ours, next(iter(ours["gpus"])))
        for name in figures["gpus"]:
            missing = wanted - names_of(figures, name)
            if missing:
                raise KeyError(f"{sorted(missing)[0]} of {name}")
            values = figures_of(name, figures).values()
            if len(values) < len(wanted) - 1 or not all(0 < value < 1e30 for value in values):  # all but `architecture`
                raise ValueError
    except KeyError as error:
        raise ValueError(f"{path} lacks {error.args[0]}; {HARDWARE_REMEDY}") from None
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"{path} has other than figures above 0, each with its value; {HARDWARE_REMEDY}") from None

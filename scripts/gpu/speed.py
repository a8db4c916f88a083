"""How long launches take on a GPU, of five bounds, each as if it were all that the kernel does:

    issue    instructions of all warps / (multiprocessors x schedulers x clock). In a matrix product an HMMA takes a
             scheduler as long as a probe measured beside so many other instructions (hmma_cycles)
    shared   bytes that the blocks of a product write to shared memory and that their warps read there, of which
             shared_counted take a turn of their own / (multiprocessors x shared_bytes x clock)
    l2       bytes of tiles that blocks copy to shared memory: those of weights, which all blocks read together, at
             l2_together, others at l2
    dram     bytes of the maps and weights, each once / dram
    latency  round trips to memory, one after the other, through dram or l2

Kernels that have a main loop and are no products of gemm.h (the first block's) do it so many times. Their `issue` is at
least what the tensor cores are busy.

Bounds of a product overlap in part, as a `Rule` says. Its time is taken longer by its last wave: 300 blocks where 264
run at a time take as long as 528. Of other kernels the longest bound counts, and they reach issue_reached of the
schedulers. `launch` is the time until the next kernel begins.

Left out: pipes that take an instruction every second cycle, conflicts of shared memory's banks, what caches keep from
one kernel to the next, and how long a block takes to begin and to end while others of its multiprocessor wait."""
import json
import math
import os
import re
from dataclasses import dataclass

import plan
from kernels import TABLES

HERE = os.path.dirname(os.path.abspath(__file__))
HARDWARE = os.path.join(HERE, "hardware.json")
INSTRUCTIONS = os.path.join(TABLES, "instructions.txt")
PRODUCT = re.compile(r"gemm<(\w+)Numbers,GemmTile<(\d+),(\d+),(\d+),(\d+),\d+>,(\w+)>")
MAKE_SUMS = ("Forward", "BackwardData")  # products that can make sums of columns for a batch norm
TABLE_REMEDY = "give a table that scripts/kernel_instructions prints"
HARDWARE_REMEDY = "give a file made like scripts/gpu/hardware.json"
UNITS = {"ghz": 1e9, "gbs": 1e9, "us": 1e-6}  # at the end of a figure's name
BOUNDS = ("issue", "shared", "l2", "dram", "latency")


@dataclass(frozen=True)
class Rule:
    """A product takes the `norm`-norm of its bounds, of which issue and shared memory are reached in part."""
    norm: float
    reached: float

    def parts(self, bounds):
        return {name: bounds[name] / (self.reached if name in ("issue", "shared") else 1) for name in BOUNDS[:-1]}

    def joined(self, bounds):
        parts = self.parts(bounds).values()
        return max(parts) if math.isinf(self.norm) else sum(part ** self.norm for part in parts) ** (1 / self.norm)


# All three explain the products of the days on an H100 and an H200 about as well: scripts/predict_gpu --days has their
# errors. Those products were all in `exact`, where shared memory has little to do. So others have a range.
EXPECTED = Rule(2, 0.86)
FASTEST, SLOWEST = Rule(math.inf, 0.79), Rule(1.5, 1.0)
RULES = (FASTEST, EXPECTED, SLOWEST)


@dataclass(frozen=True)
class Work:
    """What a launch has to do, whatever the GPU: days with one keep it of each launch."""
    name: str
    blocks: int
    dram: int             # bytes
    instructions: float   # of all warps
    hmma: float = 0       # those of them that are tensor cores'
    shared: int = 0       # bytes that go to shared memory or come from it
    tiles: int = 0        # bytes of tiles that are copied through L2
    together: int = 0     # bytes of tiles that all blocks read together
    trips: int = 1        # to the device's memory, one after the other
    l2_trips: int = 0     # the same of what L2 holds
    tensor: float = 0     # HMMA of kernels that are no products of gemm.h


class Kernel:
    """A line of the table: instructions outside of the main loop, in it, and its HMMA; of both those that warps share
    out. A warp's part of a tile has `rows` and `columns`."""

    def __init__(self, outside, loop=0, tensor=0, warps=0, share=0, share_tensor=0, rows=0, columns=0):
        self.outside, self.loop, self.tensor, self.warps = outside, loop, tensor, warps
        self.share, self.share_tensor, self.rows, self.columns = share, share_tensor, rows, columns

    def of_step(self, bias_parts):
        """(instructions, HMMA) of a warp, on average."""
        return self.loop + self.share / bias_parts, self.tensor + self.share_tensor / bias_parts


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
    elif words[1].isdigit():  # no product of gemm.h, but with a main loop
        found[words[16]] = Kernel(int(words[0]), int(words[1]), int(words[4]))
    else:
        found[words[1]] = Kernel(int(words[0]))


def add_product(found, product, words):
    precision, *sides, problem = product.groups()
    rows, columns, rows_of_warp, columns_of_warp = map(int, sides)
    warps = rows // rows_of_warp * (columns // columns_of_warp)
    outside, loop, share, _, tensor, share_tensor = words[:6]
    found[precision.lower(), problem, f"{rows}x{columns}"] = Kernel(
        int(outside), int(loop), int(tensor), warps, int(share), int(share_tensor), rows_of_warp, columns_of_warp)


def figures_of(name, figures):
    """{figure without its unit: number}"""
    found = {}
    for key, entry in [*figures["of_all"].items(), *figures["gpus"][name].items()]:
        if isinstance(entry, dict):
            plain, _, unit = key.rpartition("_")
            value = entry["value"]
            found[plain if unit in UNITS else key] = value if isinstance(value, list) else value * UNITS.get(unit, 1)
    return found


def beside(table, others):
    """Cycles of an HMMA beside so many other instructions, between and beyond the (others, cycles) of the table."""
    for (fewer, least), (more, most) in zip(table, table[1:]):
        if others <= more:
            return least + (most - least) * max(others - fewer, 0) / (more - fewer)
    more, most = table[-1]
    return most + others - more


class Gpu:
    def __init__(self, name, figures, instructions):
        self.name = name
        self.instructions = read_instructions(instructions, figures["gpus"][name]["architecture"])
        self.of = figures_of(name, figures)

    def precisions(self):
        return sorted({key[0] for key in self.instructions if isinstance(key, tuple)})

    def work(self, launch, precision):
        if launch.plan is None:
            kernel = self.instructions[launch.kernel] if launch.kernel else Kernel(0)
            return Work(launch.name, launch.blocks, launch.bytes,
                        launch.warps * kernel.outside + launch.iterations * kernel.loop, trips=launch.round_trips,
                        l2_trips=launch.l2_trips, tensor=launch.iterations * kernel.tensor)
        made, kernel = launch.plan, self.instructions[precision, launch.kernel, launch.plan.tile]
        steps = made.tiles * made.steps  # of blocks' main loops
        instructions, hmma = kernel.of_step(made.bias_parts)
        rows, columns = plan.TILES[made.tile]
        # A step is written once, and each warp reads its part of both operands; sums go through there to the result.
        shared = (steps * plan.STEP_BYTES * (rows + columns + kernel.warps * (kernel.rows + kernel.columns)) +
                  made.blocks * 2 * plan.SUM_BYTES * rows * columns)
        outside = "outside_done" if makes_sums(launch) or launch.kernel not in MAKE_SUMS else "outside_plain"
        together = columns if launch.kernel in plan.WEIGHTS_ARE_B else 0
        return Work(launch.name, made.blocks, launch.bytes,
                    kernel.warps * (steps * instructions + made.blocks * kernel.outside * self.of[outside]),
                    kernel.warps * steps * hmma, shared, steps * plan.STEP_BYTES * (rows + columns - together),
                    steps * plan.STEP_BYTES * together)

    def bounds(self, work):
        """Seconds of each of the five, each as if it were reached in full."""
        of = self.of
        schedulers = of["multiprocessors"] * of["schedulers"]
        if work.hmma:
            each = max(of["tensor_cycles"], beside(of["hmma_cycles"], work.instructions / work.hmma - 1))
            issue, clock = work.hmma * each / (schedulers * of["clock"]), of["clock"]
        else:
            clock = of["clock_without_tensor"]
            issue = max(work.instructions / (schedulers * clock * of["issue_reached"]),
                        work.tensor * of["tensor_cycles"] / (schedulers * of["clock"]))
        return {"issue": issue,
                "shared": work.shared * of["shared_counted"] / (of["multiprocessors"] * of["shared_bytes"] * clock),
                "l2": work.tiles / of["l2"] + work.together / of["l2_together"], "dram": work.dram / of["dram"],
                "latency": work.trips * of["round_trip"] + work.l2_trips * of["l2_trip"]}

    def by_last_wave(self, blocks):
        wave = plan.BLOCKS_OF_MULTIPROCESSOR * self.of["multiprocessors"]
        return plan.pieces(blocks, wave) * wave / blocks

    def time(self, work, rule=EXPECTED, gap="launch"):
        """(seconds, what bounds them)"""
        bounds = self.bounds(work)
        weighed = {**bounds, **rule.parts(bounds)} if work.hmma else bounds
        bound = max(BOUNDS, key=weighed.get)
        seconds = bounds[bound]
        if work.hmma:
            seconds = max(self.by_last_wave(work.blocks) * rule.joined(bounds), bounds["latency"])
        return seconds + self.of[gap], bound if seconds > self.of[gap] else "launch"

    def text_of(self, work):
        """What bounds() makes its times of."""
        if not work.hmma:
            return f"{work.name}, {work.instructions:,.0f} instructions of warps, {work.dram:,} bytes"
        return (f"{work.name}, {work.blocks:,} blocks ({self.by_last_wave(work.blocks):.3f} for the last wave), "
                f"{work.hmma:,.0f} HMMA and {work.instructions / work.hmma - 1:.2f} other instructions for each; "
                f"bytes: {work.dram:,} of memory, {work.tiles:,} and {work.together:,} of tiles, {work.shared:,} of "
                "shared memory")


def makes_sums(launch):
    return launch.plan.slices == 1 and launch.planned_writes > 0


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


def check_table(table):
    """Numbers of other instructions rise from 0."""
    counts = [count for count, _ in table]
    if counts[0] != 0 or counts != sorted(set(counts)) or len(counts) < 2:
        raise ValueError
    return [cycles for _, cycles in table]


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
            found = figures_of(name, figures)
            values = [*check_table(found.pop("hmma_cycles")), *found.values()]
            # All but `architecture` and the table.
            if len(found) < len(wanted) - 2 or not all(0 < value < 1e30 for value in values):
                raise ValueError
    except KeyError as error:
        raise ValueError(f"{path} lacks {error.args[0]}; {HARDWARE_REMEDY}") from None
    except (AttributeError, IndexError, TypeError, ValueError):
        raise ValueError(f"{path} has other than figures above 0, each with its value; {HARDWARE_REMEDY}") from None

"""How a matrix product is shared by blocks: backends/cuda/kernels/gemm_plan.h in Python. A test compares the two."""
from dataclasses import dataclass

TILES = {"tall": (128, 32), "wide": (32, 128), "square": (64, 64), "large": (128, 64)}  # in the order of GemmTileSize
STEP_BYTES = 128
LEAST_STEPS_OF_SLICE = 8
BLOCKS_OF_MULTIPROCESSOR = 2


def pieces(a, b):
    return -(-a // b)


@dataclass(frozen=True)
class Extent:
    rows: int
    columns: int
    depth: int
    parts: int = 1

    def tiles(self, tile):
        rows, columns = TILES[tile]
        return pieces(self.rows, rows) * pieces(self.columns, columns) * self.parts


@dataclass(frozen=True)
class Plan:
    tile: str
    tiles: int   # of all parts
    slices: int  # of the depth
    steps: int   # of the whole depth

    @property
    def blocks(self):
        return self.tiles * self.slices


def choose_tile(extent, most_slices, multiprocessors):
    if extent.columns <= 32:
        return "tall"
    if extent.rows <= 32:
        return "wide"
    fits = pieces(extent.rows, 128) * 128 * 8 <= pieces(extent.rows, 64) * 64 * 9
    busy = extent.tiles("large") * most_slices >= multiprocessors
    return "large" if fits and busy else "square"


def plan(extent, element, multiprocessors):
    """`element`: bytes of an operand's number."""
    steps = pieces(extent.depth, STEP_BYTES // element)
    most = 1 if steps < 2 * LEAST_STEPS_OF_SLICE else steps // LEAST_STEPS_OF_SLICE
    tile = choose_tile(extent, most, multiprocessors)
    tiles, wave = extent.tiles(tile), multiprocessors * BLOCKS_OF_MULTIPROCESSOR
    wanted = 1 if tiles == 0 or wave < tiles else wave // tiles
    return Plan(tile, tiles, min(wanted, most), steps)

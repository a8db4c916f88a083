"""How a matrix product is shared by blocks: backends/cuda/kernels/products/gemm_plan.h in Python. A test compares
them."""
from dataclasses import dataclass

TILES = {"tall": (128, 32), "wide": (32, 128), "square": (64, 64), "large": (128, 64),
         "huge": (128, 128), "tower": (256, 64)}  # in the order of GemmTileSize
WARPS_BESIDE = {"tall": 1, "wide": 4, "square": 2, "large": 2, "huge": 2, "tower": 1}
NUMBERS = {"exact": 4, "tf32": 4, "bf16": 2}  # bytes of an operand's number, by precision
MOST_TURNS = 8
STEP_BYTES = 128
SUM_BYTES = 4
WEIGHTS_ARE_B = ("Forward", "BackwardData")  # problems in which all blocks read the same columns
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
    depth_inside: bool = True

    def tiles(self, tile):
        rows, columns = TILES[tile]
        return pieces(self.rows, rows) * pieces(self.columns, columns) * self.parts


@dataclass(frozen=True)
class Plan:
    tile: str
    tiles: int   # of all parts
    slices: int  # of the depth
    steps: int   # of the whole depth
    turns: int   # of warps that sum the bias' gradient

    @property
    def blocks(self):
        return self.tiles * self.slices


def fits(side):
    return pieces(side, 128) * 128 * 8 <= pieces(side, 64) * 64 * 9


def choose_tile(extent, precision, most_slices, multiprocessors):
    if extent.columns <= 32:
        return "tall"
    if extent.rows <= 32:
        return "wide"
    if not fits(extent.rows):
        return "square"
    busy = [tile for tile in ("huge", "large") if extent.tiles(tile) * most_slices >= multiprocessors]
    waves = lambda tile: pieces(extent.tiles(tile), multiprocessors * BLOCKS_OF_MULTIPROCESSOR)
    if precision != "exact":
        if "huge" in busy and fits(extent.columns):
            return "huge"
        if extent.depth_inside and 2 * waves("tower") * 8 <= waves("large") * 9:
            return "tower"
    return "large" if "large" in busy else "square"


def plan(extent, precision, multiprocessors):
    steps = pieces(extent.depth, STEP_BYTES // NUMBERS[precision])
    most = 1 if steps < 2 * LEAST_STEPS_OF_SLICE else steps // LEAST_STEPS_OF_SLICE
    tile = choose_tile(extent, precision, most, multiprocessors)
    tiles, wave = extent.tiles(tile), multiprocessors * BLOCKS_OF_MULTIPROCESSOR
    wanted = 1 if tiles == 0 or wave < tiles else wave // tiles
    turns = min(pieces(extent.columns, TILES[tile][1]) * WARPS_BESIDE[tile], MOST_TURNS)
    return Plan(tile, tiles, min(wanted, most), steps, turns)

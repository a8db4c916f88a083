"""How a matrix product is shared by blocks: backends/cuda/kernels/products/gemm_plan.h in Python. A test compares
them."""
from dataclasses import dataclass

TILES = {"128x32": (128, 32), "32x128": (32, 128), "64x64": (64, 64), "128x64": (128, 64),
         "128x128": (128, 128), "256x64": (256, 64)}
WARPS_ACROSS = {"128x32": 1, "32x128": 4, "64x64": 2, "128x64": 2, "128x128": 2, "256x64": 1}
NUMBERS = {"exact": 4, "tf32": 4, "bf16": 2}  # bytes of an operand's number, by precision
MOST_BIAS_PARTS = 8
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
    tile: str        # rows by columns, as in TILES
    tiles: int       # of all parts
    slices: int      # of the depth
    steps: int       # of the whole depth
    bias_parts: int  # partial sums of the bias' gradient in a slice

    @property
    def blocks(self):
        return self.tiles * self.slices


def fits(side):
    return pieces(side, 128) * 128 * 8 <= pieces(side, 64) * 64 * 9


def choose_tile(extent, precision, most_slices, multiprocessors):
    if extent.columns <= 32:
        return "128x32"
    if extent.rows <= 32:
        return "32x128"
    if not fits(extent.rows):
        return "64x64"
    busy = [tile for tile in ("128x128", "128x64") if extent.tiles(tile) * most_slices >= multiprocessors]
    waves = lambda tile: pieces(extent.tiles(tile), multiprocessors * BLOCKS_OF_MULTIPROCESSOR)
    if precision != "exact":
        if "128x128" in busy and fits(extent.columns):
            return "128x128"
        if extent.depth_inside and 2 * waves("256x64") * 8 <= waves("128x64") * 9:
            return "256x64"
    return "128x64" if "128x64" in busy else "64x64"


def plan(extent, precision, multiprocessors):
    steps = pieces(extent.depth, STEP_BYTES // NUMBERS[precision])
    most = 1 if steps < 2 * LEAST_STEPS_OF_SLICE else steps // LEAST_STEPS_OF_SLICE
    tile = choose_tile(extent, precision, most, multiprocessors)
    tiles, wave = extent.tiles(tile), multiprocessors * BLOCKS_OF_MULTIPROCESSOR
    wanted = 1 if tiles == 0 or wave < tiles else wave // tiles
    bias_parts = min(pieces(extent.columns, TILES[tile][1]) * WARPS_ACROSS[tile], MOST_BIAS_PARTS)
    return Plan(tile, tiles, min(wanted, most), steps, bias_parts)

"""Which kernels a training step launches, layer by layer: blocks, bytes and, of matrix products, the plan. The
layers are those of `cputrain info --json -`; a test compares launches and blocks with those of the emulated device."""
from dataclasses import dataclass, field

from plan import Extent, Plan, pieces, plan
from walk import Walk

FLOAT = 4
QUAD = 4        # floats that a thread moves at a time
NUMBERS = "ExactNumbers"  # how maps are stored (kernels/numbers.h)
THREADS = 256   # of a block of a kernel that is no matrix product
NUMBERS_OF_NORM = 4096  # that a block of block_norms takes
LINES_OF_COLUMNS = 32
FACTS = 80      # bytes of kernels/pass_facts.h
READS = 8       # of a thread that sums slices or rows, on their way at a time (kernels/gemm_slices.cu)
MOST_MAPS = 8   # that a call adds (kernels/elementwise.h)
LAYERS = ("input", "convolution", "dense", "zero_pad", "max_pool", "average_pool", "global_average_pool", "batch_norm",
          "add", "relu", "dropout", "flatten", "sigmoid", "softmax")


@dataclass(frozen=True)
class Launch:
    name: str     # as the backend calls it
    kernel: str   # as scripts/kernel_instructions calls it; of a matrix product the problem; "" where a rule chooses
    blocks: int
    bytes: int    # that go to the device's memory or come from it
    plan: Plan = None
    warps: int = 0        # of all blocks
    round_trips: int = 1  # to memory, each of which a thread waits for before it begins the next


@dataclass
class Operation:
    """What the backend makes of a layer: launches in each direction."""
    name: str
    forward: list = field(default_factory=list)
    data: list = field(default_factory=list)
    weights: list = field(default_factory=list)
    kernel: int = 0  # numbers of the layer's weights, as stored
    bias: int = 0
    penalised: bool = False  # its kernel, by L2

    def directions(self):
        return [(name, launches) for name in ("forward", "data", "weights") if (launches := getattr(self, name))]


@dataclass(frozen=True)
class Map:
    height: int
    width: int
    channels: int  # stored

    @property
    def positions(self):
        return self.height * self.width

    @property
    def count(self):
        return self.positions * self.channels


def stored(output):
    height, width, channels = output
    return Map(height, width, pieces(channels, 8) * 8)


def template(kernel, *arguments):
    """As scripts/kernel_instructions calls an instance for maps."""
    return f"{kernel}_kernel<{','.join([NUMBERS, *map(str, arguments)])}>"


def in_line(name, kernel, threads, bytes_moved):
    blocks = pieces(threads, THREADS)
    return Launch(name, kernel, blocks, bytes_moved, warps=blocks * THREADS // 32)


def lines_of_sum(slices):
    """Threads that share a sum, as in kernels/gemm_slices.h."""
    lines = 1
    while lines < 32 and lines * 8 < slices:
        lines *= 2
    return lines


def by_quads(name, kernel, positions, channels, bytes_moved):
    """As quad_launch() of kernels/quads.h."""
    quads = channels // QUAD
    tiles = pieces(quads, 64)
    across = pieces(quads, tiles)
    down = THREADS // across
    blocks = pieces(positions, down) * tiles
    return Launch(name, kernel, blocks, bytes_moved, warps=blocks * pieces(across * down, 32))


class Network:
    """Operations of a model at one number of images."""

    def __init__(self, layers, images, element, multiprocessors):
        self.images, self.element, self.multiprocessors = images, element, multiprocessors
        self.operations = []
        self.statistics = 0  # channels of all batch norms
        self.learns = False  # something that learns lies before the map
        self.map = None
        self.made = {"": (None, False)}  # map and learns by layer
        self.walk = Walk(layers)
        while not self.walk.ended():
            layer = self.walk.layer
            if layer["type"] not in LAYERS:
                raise ValueError(f"layer {layer['name']}: {layer['type']} is not among the layers of --backend cuda")
            self.map, self.learns = self.made[layer["from"][0]]
            getattr(self, "add_layers" if layer["type"] == "add" else layer["type"])(layer)
            self.made[self.walk.layer["name"]] = self.map, self.learns
            self.walk.advance()

    def add(self, layer, **directions):
        self.operations.append(Operation(layer["name"], **directions))

    def back(self, *launches):
        return list(launches) if self.learns else []

    def ranges(self):
        """[(numbers, penalised)] of parameters that an update treats alike, in the order of backward."""
        found, pending = [], 0
        for operation in reversed(self.operations):
            pending += operation.bias
            if operation.penalised:
                found += [(pending, False), (operation.kernel, True)]
                pending = 0
            else:
                pending += operation.kernel
        return [(count, penalised) for count, penalised in [*found, (pending, False)] if count]

    def update(self, state_arrays):
        """Norms of what is penalised. Then weights and states are read and written, and gradients read, in one launch
        for all ranges, whose blocks look up theirs. Its kernel depends on the rule."""
        launches = []
        for count, penalised in self.ranges():
            if penalised:
                blocks = pieces(count, NUMBERS_OF_NORM)
                launches.append(Launch("block_norms", "block_norms_kernel", blocks, count * FLOAT,
                                       warps=blocks * THREADS // 32))
        counts = [count for count, _ in self.ranges()]
        blocks = sum(pieces(count, THREADS * QUAD) for count in counts)
        launches.append(Launch("update", "", blocks, sum(counts) * FLOAT * (3 + 2 * state_arrays),
                               warps=blocks * THREADS // 32, round_trips=3))
        if self.statistics:
            launches.append(in_line("publish_statistics", "publish_statistics_kernel", self.statistics,
                                    self.statistics * 40))
        return launches

    # Each layer. self.map is what it reads.

    def input(self, layer):
        self.map = stored(layer["output"])
        height, width, colours = layer["output"]
        threads = self.images * self.map.positions * self.map.channels // QUAD
        moved = self.images * (height * width * colours + self.map.count * FLOAT)
        self.add(layer, forward=[Launch("write_facts", "write_facts_kernel<PassFacts>", 1, FACTS, warps=1),
                                 in_line("load_images", template("load_images"), threads, moved)])

    def convolution(self, layer):
        self.product(layer, self.map, stored(layer["output"]), layer["kernel"], layer["stride"])

    def dense(self, layer):
        self.product(layer, Map(1, 1, self.map.count), stored(layer["output"]), 1, 1)

    def product(self, layer, src, dst, size, stride):
        n, taps = self.images, size * size * src.channels
        windows, weights = n * dst.positions, dst.channels * taps
        moved = (n * (src.count + dst.count) + weights) * self.element
        covered = pieces(size, stride)
        data = Extent(n * pieces(src.height, stride) * pieces(src.width, stride), src.channels,
                      covered * covered * dst.channels, stride * stride)
        operation = Operation(
            layer["name"],
            forward=self.multiply("forward", "Forward", Extent(windows, dst.channels, taps), n * dst.count, moved),
            data=self.multiply("backward_data", "Data", data, n * src.count, moved) if self.learns else [],
            weights=self.multiply("backward_weights", "Weights", Extent(dst.channels, taps, windows), weights, moved),
            kernel=weights, penalised="l2" in layer)
        if layer["bias"]:
            operation.weights += self.bias_gradient(windows, dst.channels)
            operation.bias = dst.channels
        self.operations.append(operation)
        self.map, self.learns = dst, True

    def multiply(self, name, problem, extent, result, moved):
        made = plan(extent, self.element, self.multiprocessors)
        partials = made.slices * result * FLOAT if made.slices > 1 else 0
        launches = [Launch(f"convolution_{name}", problem, made.blocks, moved + partials, plan=made)]
        if partials:
            launches.append(self.add_slices(result, made.slices))
        return launches

    def add_slices(self, result, slices):
        lines = lines_of_sum(slices)
        blocks = pieces(result, THREADS // lines * QUAD)
        return Launch("add_slices", "add_slices_kernel", blocks, (slices + 1) * result * FLOAT,
                      warps=blocks * THREADS // 32, round_trips=pieces(pieces(slices, lines), READS))

    def bias_gradient(self, windows, channels):
        """parts_of_column() of kernels/convolution_plan.h."""
        parts = max(1, min(windows // 256, 256))
        blocks = pieces(channels, 32) * parts
        moved = (windows + parts) * channels * FLOAT
        rows = pieces(windows, parts)
        return [Launch("sum_columns", "sum_columns_kernel", blocks, moved, warps=blocks * THREADS // 32,
                       round_trips=pieces(rows, LINES_OF_COLUMNS * READS)),
                self.add_slices(channels, parts)]

    def pool(self, layer, kind, winner_bytes):
        src, dst = self.map, stored(layer["output"])
        moved = self.images * (src.count * FLOAT + dst.count * (FLOAT + winner_bytes))
        size = layer["size"] if layer["size"] in (2, 3) else 0
        self.add(layer,
                 forward=[by_quads(f"{kind}_forward", template(f"{kind}_forward", size), self.images * dst.positions,
                                   dst.channels, moved)],
                 data=self.back(by_quads(f"{kind}_backward", template(f"{kind}_backward"), self.images * src.positions,
                                         src.channels, moved)))
        self.map = dst

    def max_pool(self, layer):
        self.walk.takes_next("relu")
        self.pool(layer, "max_pool", 1)

    def zero_pad(self, layer):
        """What reads the zeros makes them, if it can."""
        convolution, pool = self.walk.only_next_is("convolution"), self.walk.only_next_is("max_pool")
        most = max(layer[side] for side in ("top", "bottom", "left", "right"))
        if convolution and convolution["padding"] == "valid" and most < convolution["kernel"]:
            self.walk.advance()
            self.convolution(convolution)
        elif pool and pool["padding"] == "valid":
            self.walk.advance()
            self.max_pool(pool)
        else:
            self.pool({**layer, "size": 1}, "max_pool", 1)

    def batch_norm(self, layer):
        """Statistics, factors, then one pass over the map, which adds and cuts as well."""
        count, positions = self.images * self.map.count, self.images * self.map.positions
        channels, learns = self.map.channels, self.learns
        added = self.walk.only_next_adds() is not None
        self.walk.at += added
        relu = self.walk.takes_next("relu")
        shares, of_channels = pieces(positions, 4), pieces(channels, 32)
        finish = lambda name: Launch(name, f"{name}_kernel", of_channels, channels * 16 * self.parts(positions)[0],
                                     warps=8 * of_channels)
        backward = [self.by_parts("sum_slopes", positions, (2 + 2 * (added and relu)) * count * FLOAT, 4),
                    finish("finish_slopes")]
        if learns:
            backward.append(by_quads("normalize_backward", template("normalize_backward"), shares, channels,
                                     3 * count * FLOAT))
        self.operations.append(Operation(layer["name"], bias=2 * channels, data=backward, forward=[
            self.by_parts("measure_channels", positions, count * FLOAT, 8), finish("finish_statistics"),
            by_quads("normalize", template("normalize"), shares, channels, (2 + added) * count * FLOAT)]))
        self.statistics += layer["output"][2]
        self.learns = True

    def parts(self, positions):
        """(parts, positions of one, tiles) of plan_channel_sums() of kernels/batch_norm.h."""
        packs = self.map.channels // QUAD
        tiles = pieces(packs, 32)
        rows = THREADS // pieces(packs, tiles)
        of_part = pieces(pieces(positions, pieces(2 * self.multiprocessors, tiles)), rows) * rows
        return pieces(positions, of_part), of_part, tiles

    def by_parts(self, name, positions, moved, at_once):
        """Threads load so many positions at once."""
        parts, of_part, tiles = self.parts(positions)
        across = pieces(self.map.channels // QUAD, tiles)
        blocks, rows = parts * tiles, THREADS // across
        return Launch(f"{name}", template(name), blocks, moved, warps=blocks * pieces(across * rows, 32),
                      round_trips=pieces(of_part, rows * at_once))

    def add_layers(self, layer):
        """Gradients of sums lie where those of their parts do: in networks that add a branch to what it began with."""
        count, maps = self.images * self.map.count, len(layer["from"])
        self.add(layer, forward=[in_line("add_maps", template("add_maps"), count // QUAD, (min(maps, MOST_MAPS) + 1) *
                                         count * FLOAT)] * (1 + pieces(max(0, maps - MOST_MAPS), MOST_MAPS - 1)))
        self.learns = any(self.made[name][1] for name in layer["from"])

    def copy_of_shared(self, layer):
        """What several read is copied for the one that changes it."""
        if not self.walk.is_shared(layer["from"][0]):
            return
        count = self.images * self.map.count
        copy = in_line("add_maps", template("add_maps"), count // QUAD, 2 * count * FLOAT)
        self.add({"name": f"{layer['name']} (copy)"}, forward=[copy], data=self.back(copy))

    def average_pool(self, layer):
        self.pool(layer, "average_pool", 0)

    def global_average_pool(self, layer):
        src, dst, name = self.map, stored(layer["output"]), "global_average_pool"
        moved = self.images * (src.count + dst.count) * FLOAT
        blocks = self.images * pieces(src.channels // QUAD, 8)
        forward = Launch(f"{name}_forward", template(f"{name}_forward"), blocks, moved,
                         warps=blocks * THREADS // 32)
        backward = by_quads(f"{name}_backward", template(f"{name}_backward"), self.images * src.positions, src.channels,
                            moved)
        self.add(layer, forward=[forward], data=self.back(backward))
        self.map = dst

    def relu(self, layer):
        self.copy_of_shared(layer)
        count = self.images * self.map.count
        self.add(layer, forward=[in_line("relu_forward", template("relu_forward"), count // QUAD, 2 * count * FLOAT)],
                 data=self.back(in_line("relu_backward", template("relu_backward"), count // QUAD, 3 * count * FLOAT)))

    def dropout(self, layer):
        self.copy_of_shared(layer)
        if layer["rate"] == 0:
            return
        count = self.images * self.map.count
        launch = by_quads("dropout", template("dropout"), self.images * self.map.positions, self.map.channels,
                          2 * count * FLOAT)
        self.add(layer, forward=[launch], data=self.back(launch))

    def flatten(self, _):
        pass

    def sigmoid(self, layer):
        self.loss(layer, "sigmoid_forward", pieces(self.images, 128))

    def softmax(self, layer):
        self.loss(layer, "softmax_forward", pieces(self.images, 4))

    def loss(self, layer, name, blocks):
        moved = self.images * self.map.channels * (3 * FLOAT + 8)  # logits, probabilities, their gradient, slopes
        self.add(layer, forward=[Launch(name, f"{name}_kernel<float>", blocks, moved, warps=4 * blocks),
                                 Launch("add_losses", "add_losses_kernel", 1, self.images * 16, warps=4)],
                 data=self.back(by_quads("cross_entropy_backward", template("cross_entropy_backward"), self.images,
                                         self.map.channels, moved)))

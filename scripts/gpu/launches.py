"""Which kernels a training step launches, layer by layer: blocks, bytes and, of matrix products, the plan. The
layers are those of `cputrain info --json -`. Tests compare launches, blocks and bytes with those of the emulated
device."""
from dataclasses import dataclass, field, replace

from maps import Map, before, seen, stored
from plan import NUMBERS, TILES, Extent, Plan, pieces, plan
from walk import Walk, takes_zeros

FLOAT = 4
QUAD = 4        # floats that a thread moves at a time
SECTOR = 32     # bytes that the memory reads or writes at least
PACK = 16       # bytes of a map that a thread moves at a time
THREADS = 256   # of a block of a kernel that is no matrix product
NUMBERS_OF_NORM = 4096  # that a block of block_norms takes
FACTS = 80      # bytes of kernels/pass_facts.h
MOVED = 24      # bytes of a channel's moved statistics (kernels/batch_norm/batch_norm.h)
TRANSPOSED = 32  # input and output channels of a tap that a block of transpose_weights takes
READS = 8       # of a thread that sums slices, or parts, on their way at a time (kernels/products/gemm_slices.cu)
MOST_MAPS = 8   # that a call adds (kernels/elementwise.h)
CHANNELS, MOST_LINES = 8, 128  # of a block that merges parts, and of each channel (kernels/batch_norm/channels.cu)
LAYERS = ("input", "convolution", "dense", "zero_pad", "max_pool", "average_pool", "global_average_pool", "batch_norm",
          "add", "relu", "relu6", "leaky_relu", "dropout", "flatten", "sigmoid", "softmax")


@dataclass(frozen=True)
class Launch:
    name: str     # as the backend calls it
    kernel: str   # as scripts/kernel_instructions calls it; of a matrix product the problem; "" where a rule chooses
    blocks: int
    bytes: int    # that go to the device's memory or come from it
    plan: Plan = None
    warps: int = 0        # of all blocks
    iterations: int = 0   # of their main loop, in kernels that have one and are none of gemm.h
    round_trips: int = 1  # to memory, each of which a thread waits for before it begins the next
    l2_trips: int = 0     # the same to what the kernel before wrote, which L2 still holds
    # Bytes among them that depend on the plan for so many images: partial sums, or maps that are read for them.
    planned_reads: int = 0
    planned_writes: int = 0


def with_planned(launch, reads=0, writes=0):
    return replace(launch, bytes=launch.bytes + reads + writes, planned_reads=launch.planned_reads + reads,
                   planned_writes=launch.planned_writes + writes)


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


@dataclass
class Norm(Operation):
    """A batch norm."""
    channels: int = 0
    masks: bool = False  # it cuts the gradient where that lies, behind an addition


def in_line(name, kernel, threads, bytes_moved):
    blocks = pieces(threads, THREADS)
    return Launch(name, kernel, blocks, bytes_moved, warps=blocks * THREADS // 32)


def lines_of_sum(slices, most=32):
    """Threads that share a sum, as in kernels/products/gemm_slices.h."""
    lines = 1
    while lines < most and lines * 8 < slices:
        lines *= 2
    return lines


class Network:
    """Operations of a model at one number of images. `accumulates`: gradients of weights are added to those of an
    earlier micro-batch."""

    def __init__(self, layers, images, precision, multiprocessors, accumulates=False):
        self.images, self.precision, self.multiprocessors = images, precision, multiprocessors
        self.accumulates = accumulates
        self.element = NUMBERS[precision]
        self.pack = PACK // self.element
        self.operations = []
        self.statistics = 0  # channels of all batch norms
        self.norms = {}      # by layer: the operation of the batch norm that made its map, which nothing has read yet
        self.norm = None     # that of the map that the layer reads
        self.products = {}   # by layer: the operation that writes its map, and rows of its tiles, where it has no slices
        self.learns = False  # something that learns lies before the map
        self.map = None
        self.left = None   # zeros before a row of the image, where two pixels share a position of its map
        self.adds = False  # to the gradient of the map, to which an operation behind this one has written
        self.unread = {}   # readers that have no operation yet, by layer
        self.made = {"": (None, False)}  # map and learns by layer
        self.walk = Walk(layers)
        while not self.walk.ended():
            layer = self.walk.layer
            if layer["type"] not in LAYERS:
                raise ValueError(f"layer {layer['name']}: {layer['type']} is not among the layers of --backend cuda "
                                 "that are known here")
            self.map, self.learns = self.made[layer["from"][0]]
            if layer["type"] != "flatten":
                self.norm = self.read_norm(layer["from"][0])
                self.adds = self.read(layer["from"][0])
            getattr(self, "add_layers" if layer["type"] == "add" else layer["type"])(layer)
            self.made[self.walk.layer["name"]] = self.map, self.learns
            self.walk.advance()

    def read(self, name):
        """Whether another operation reads what the layer made behind this one, which adds to its gradient then. Sums
        need not ask: they are the last to read the branch that they end."""
        name = self.walk.before_flatten(name)
        self.unread[name] = self.unread.get(name, self.walk.count_readers(name)) - 1
        return self.unread[name] > 0

    def read_norm(self, name):
        return self.norms.pop(self.walk.before_flatten(name), None)

    def template(self, kernel, *arguments, moves=False):
        """As scripts/kernel_instructions calls an instance for maps (kernels/numbers.h). `moves`: it only moves or
        compares numbers, so that floats do for those of TF32."""
        numbers = "exact" if moves and self.precision == "tf32" else self.precision
        return f"{kernel}_kernel<{','.join([numbers.capitalize() + 'Numbers', *map(str, arguments)])}>"

    def stored(self):
        """The type of a number of a map."""
        return "Bf16" if self.precision == "bf16" else "float"

    def by_packs(self, name, kernel, positions, channels, bytes_moved):
        """As launch_packs() of kernels/packs.h."""
        packs = channels // self.pack
        tiles = pieces(packs, 64)
        across = pieces(packs, tiles)
        down = THREADS // across
        blocks = pieces(positions, down) * tiles
        return Launch(name, kernel, blocks, bytes_moved, warps=blocks * pieces(across * down, 32))

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
        for all ranges, whose blocks look up theirs. Its kernel depends on the rule, and writes the copies that products
        read, too."""
        launches = []
        for count, penalised in self.ranges():
            if penalised:
                blocks = pieces(count, NUMBERS_OF_NORM)
                launches.append(Launch("block_norms", "block_norms_kernel", blocks, count * FLOAT,
                                       warps=blocks * THREADS // 32))
        counts = [count for count, _ in self.ranges()]
        blocks = sum(pieces(count, THREADS * QUAD) for count in counts)
        copied = 0 if self.precision == "exact" else self.element
        launches.append(Launch("update", "", blocks, sum(counts) * (FLOAT * (3 + 2 * state_arrays) + copied),
                               warps=blocks * THREADS // 32, round_trips=3))
        if self.statistics:
            launches.append(in_line("publish_statistics", "publish_statistics_kernel", self.statistics,
                                    self.statistics * (2 * MOVED + 2 * FLOAT)))
        return launches

    # Each layer. self.map is what it reads.

    def input(self, layer):
        facts = Launch("write_facts", "write_facts_kernel<PassFacts>", 1, FACTS, warps=1)
        taken = self.walk.takes_first_block()
        if taken:
            self.first_block(facts, layer["output"], *taken)
            return
        self.map, self.left = stored(layer["output"]), None
        height, width, colours = layer["output"]
        reader = self.walk.reads_pairs()
        if reader:
            convolution, zeros = reader
            self.left = before(convolution, width, convolution["output"][1], convolution["kernel"], zeros, "left")
            self.map = Map(height, pieces(self.left % 2 + width, 2), self.map.channels)
        threads = self.images * self.map.count // self.pack
        moved = self.images * (height * width * colours + self.map.count * self.element)
        self.add(layer, forward=[facts, in_line("load_images", self.template("load_images"), threads, moved)])

    def first_block(self, facts, image, convolution, pool):
        """As kernels/products/first_block_tile.h: a tile has 2 x 16 windows of the pool and 32 channels, and sees 6 x 34
        pixels. A winner takes four bits."""
        dst, n = stored(pool["output"]), self.images
        zeros = int(convolution["padding"] != "valid")
        along = lambda length, windows, tile: min(length, 2 * tile * pieces(windows, tile) + 2 - zeros)
        pixels = along(image[0], dst.height, 2) * along(image[1], dst.width, 16)
        moved = n * (pixels * image[2] + dst.count * self.element + dst.count // 2)
        weights, bias = dst.channels * 9 * 8, dst.channels if convolution["bias"] else 0
        groups, tiles = pieces(dst.channels, 32), n * pieces(dst.height, 2) * pieces(dst.width, 16)
        slices = min(tiles, pieces((3 if self.precision == "exact" else 4) * self.multiprocessors, groups))
        launch = lambda way, more: Launch(f"first_block_{way}", self.template(f"first_block_{way}"), slices * groups,
                                          moved + more, warps=4 * slices * groups, iterations=4 * tiles * groups)
        sums = [self.add_slices(count, slices, "exact", self.old_gradient(count)) for count in (weights, bias) if count]
        self.operations.append(Operation(
            convolution["name"], forward=[facts, launch("forward", weights * self.element + bias * FLOAT)],
            weights=[with_planned(launch("backward_weights", 0), writes=slices * (weights + dst.channels) * FLOAT), *sums],
            kernel=weights, bias=bias, penalised="l2" in convolution))
        self.map, self.learns = dst, True

    def convolution(self, layer, zeros=None):
        dst, size = stored(layer["output"]), layer["kernel"]
        left, self.left = self.left, None  # its first reader is the only one
        positions = seen(layer, self.map, dst, size, zeros, left)
        self.product(layer, self.map, dst, size, layer["stride"], positions, (zeros or layer)["from"][0],
                     1 if left is None else 2)

    def dense(self, layer):
        self.product(layer, Map(1, 1, self.map.count), stored(layer["output"]), 1, 1, 1, layer["from"][0])

    def takes_sum(self, source):
        """Whether a product of that layer's map adds the other part of the sum behind it, on which the walk then
        stands. Not of a sum with that map itself."""
        other = self.walk.only_next_adds()
        taken = other is not None and self.walk.before_flatten(other) != self.walk.before_flatten(source)
        if taken:
            self.read_norm(other)
        self.walk.at += taken
        return taken

    def product(self, layer, src, dst, size, stride, positions, source, pixels=1):
        """`positions`: of src that some window covers; `source`: the layer that made it; `pixels`: in a position."""
        if layer.get("groups", 1) != 1:
            raise ValueError(f"layer {layer['name']}: convolutions in groups are not known here")
        n, taps = self.images, size * pieces(size, pixels) * src.channels
        windows, weights = n * dst.positions, dst.channels * taps
        bytes_of = lambda *counts: sum(counts) * self.element
        of_src, of_dst, bias = n * positions * src.channels, n * dst.count, dst.channels if layer["bias"] else 0
        added = bytes_of(n * dst.count) if self.takes_sum(source) else 0
        covered = pieces(size, stride)
        data = Extent(n * pieces(src.height, stride) * pieces(src.width, stride), src.channels,
                      covered * covered * dst.channels, stride * stride)
        operation = Operation(
            layer["name"],
            forward=self.multiply("forward", "Forward", Extent(windows, dst.channels, taps), bytes_of(of_src, weights),
                                  n * dst.count, self.precision, bias * FLOAT + added),
            kernel=weights, penalised="l2" in layer)
        if self.learns:
            operation.data = [self.transpose_weights(src.channels, dst.channels, size * size),
                              *self.multiply("backward_data", "BackwardData", data, bytes_of(of_dst, weights),
                                             n * src.count, self.precision, self.old(bytes_of(n * src.count)))]
            if stride == 1:
                self.make_slopes(operation.data, n * src.positions, src.channels)
        of_weights = self.multiply("backward_weights", "BackwardWeights",
                                   Extent(dst.channels, taps, windows, depth_inside=False), bytes_of(of_src, of_dst),
                                   weights, "exact", self.old_gradient(weights))
        if size % pixels:  # a sector at the end of each row
            rows = dst.channels * size
            of_weights.append(in_line("clear_padding", "clear_padding_kernel", rows, rows * SECTOR))
        operation.weights = of_weights
        if bias:
            made = of_weights[0].plan
            of_bias = self.add_slices(bias, made.slices * made.bias_parts, "exact", self.old_gradient(bias))
            of_weights[0] = with_planned(of_weights[0], writes=of_bias.planned_reads)
            of_weights.append(of_bias)
            operation.bias = bias
        self.operations.append(operation)
        made = operation.forward[0].plan
        if made.slices == 1:
            self.products[self.walk.layer["name"]] = operation, TILES[made.tile][0]
        self.map, self.learns = dst, True

    def make_slopes(self, data, positions, channels):
        """The product, which writes the gradient last, makes slopes for the batch norm before it."""
        norm, product = self.norm, data[1].plan
        if not norm or norm.channels != channels or product.slices > 1:
            return
        parts, finish = pieces(positions, TILES[product.tile][0]), norm.data[1]
        data[1] = with_planned(data[1], (1 + norm.masks) * positions * channels * self.element + 3 * channels * FLOAT,
                               self.bytes_of_parts(channels, parts))
        norm.data[:2] = [self.finish(finish.name, channels, parts, finish.bytes - finish.planned_reads)]

    def transpose_weights(self, inputs, outputs, taps):
        blocks = taps * pieces(inputs, TRANSPOSED) * pieces(outputs, TRANSPOSED)
        return Launch("transpose_weights", f"transpose_weights_kernel<{self.stored()}>", blocks,
                      2 * inputs * outputs * taps * self.element, warps=blocks * THREADS // 32, round_trips=2)

    def multiply(self, name, problem, extent, factors, result, numbers, added):
        """`factors` and `added`, to the result, are bytes. Slices of a product are added by a launch of their own."""
        made = plan(extent, self.precision, self.multiprocessors)
        product = Launch(f"convolution_{name}", problem, made.blocks, factors, plan=made)
        if made.slices == 1:
            return [replace(product, bytes=factors + result * NUMBERS[numbers] + added)]
        sum_of_slices = self.add_slices(result, made.slices, numbers, added)
        return [with_planned(product, writes=sum_of_slices.planned_reads), sum_of_slices]

    def old(self, gradient):
        """What is read of the map's gradient where it is added to."""
        return gradient if self.adds else 0

    def old_gradient(self, weights):
        return weights * FLOAT if self.accumulates else 0

    def add_slices(self, result, slices, numbers, added):
        lines = lines_of_sum(slices)
        blocks = pieces(result, THREADS // lines * QUAD)
        launch = Launch("add_slices", f"add_slices_kernel<BiasAndAdd<{numbers.capitalize()}Numbers>>", blocks,
                        result * NUMBERS[numbers] + added, warps=blocks * THREADS // 32,
                        round_trips=pieces(pieces(slices, lines), READS))
        return with_planned(launch, reads=slices * result * FLOAT)

    def pool(self, layer, kind, winner_bytes, zeros=None):
        """A max pool compares, and has winners."""
        src, dst = self.map, stored(layer["output"])
        positions, of_position = seen(layer, src, dst, layer["size"], zeros), src.channels * self.element
        of_src, of_window = src.count * self.element, dst.channels * (self.element + winner_bytes)
        forward = positions * of_position + dst.positions * of_window
        # Windows on zeros alone, which are more than there are positions to see, are not read.
        backward = min(positions, dst.positions) * of_window + of_src + self.old(of_src)
        size = layer["size"] if layer["size"] in (2, 3) else 0
        by_windows = kind == "max_pool" and layer["size"] <= layer["stride"]
        kernel = (self.template("max_pool_backward_windows", 2 if size == 2 else 0) if by_windows else
                  self.template(f"{kind}_backward"))
        threads = dst.positions if by_windows else src.positions
        self.add(layer,
                 forward=[self.by_packs(f"{kind}_forward",
                                        self.template(f"{kind}_forward", size, moves=winner_bytes > 0),
                                        self.images * dst.positions, dst.channels, self.images * forward)],
                 data=self.back(self.by_packs(f"{kind}_backward", kernel, self.images * threads, src.channels,
                                              self.images * backward)))
        self.map = dst

    def max_pool(self, layer, zeros=None):
        self.walk.takes_next("relu")
        self.pool(layer, "max_pool", 1, zeros)

    def zero_pad(self, layer):
        """What reads the zeros makes them, if it can."""
        convolution, pool = self.walk.only_next_is("convolution"), self.walk.only_next_is("max_pool")
        if convolution and takes_zeros(convolution, layer):
            self.walk.advance()
            self.convolution(convolution, layer)
        elif pool and pool["padding"] == "valid":
            self.walk.advance()
            self.max_pool(pool, layer)
        else:
            self.pool({**layer, "size": 1, "stride": 1}, "max_pool", 1, layer)

    def batch_norm(self, layer):
        """Statistics, factors, then one pass over the map, which adds and cuts as well. A product before it makes its
        moments."""
        positions, of_map = self.images * self.map.positions, self.images * self.map.count * self.element
        channels, learns = self.map.channels, self.learns
        measure, parts = self.measure(layer["from"][0], positions, of_map)
        other = self.walk.only_next_adds()
        added = other is not None
        if added:
            self.read_norm(other)
        self.walk.at += added
        relu = self.walk.takes_next("relu")
        masks = added and relu
        shares, factors = pieces(positions, 4), channels * FLOAT  # a row of factors
        slopes = with_planned(self.by_parts("sum_slopes", positions, 4), (2 + masks) * of_map + 3 * factors,
                              masks * of_map)
        backward = [slopes, self.finish("finish_slopes", channels, self.parts(positions)[0],
                                        6 * factors + self.old_gradient(2 * channels))]
        if learns:
            backward.append(self.by_packs("normalize_backward", self.template("normalize_backward"), shares, channels,
                                          3 * of_map + self.old(of_map) + 5 * factors))
        made = Norm(layer["name"], bias=2 * channels, data=backward, channels=channels, masks=masks, forward=[
            *measure, self.finish("finish_statistics", channels, parts, 8 * factors + 2 * MOVED * channels),
            self.by_packs("normalize", self.template("normalize"), shares, channels,
                          (2 + added) * of_map + 3 * factors)])
        self.operations.append(made)
        self.norms[self.walk.layer["name"]] = made
        self.statistics += layer["output"][2]
        self.learns = True

    def measure(self, source, positions, of_map):
        """What makes moments, and how many parts: a launch that reads the map, or the product that wrote it."""
        if source not in self.products:
            launch = self.by_parts("measure_channels", positions, 8)
            return [with_planned(launch, reads=of_map)], self.parts(positions)[0]
        operation, rows = self.products[source]
        parts, product = pieces(positions, rows), operation.forward[0]
        if not product.planned_writes:
            operation.forward[0] = with_planned(product, writes=self.bytes_of_parts(self.map.channels, parts))
        return [], parts

    def finish(self, name, channels, parts, moved):
        """Two sums over the parts, which lines share."""
        blocks, lines = channels // CHANNELS, lines_of_sum(parts, MOST_LINES)
        launch = Launch(name, f"{name}_kernel", blocks, moved, warps=blocks * pieces(CHANNELS * lines, 32),
                        round_trips=0, l2_trips=pieces(pieces(parts, lines), READS))
        return with_planned(launch, reads=self.bytes_of_parts(channels, parts))

    def parts(self, positions):
        """(parts, positions of one, tiles) of plan_channel_sums() of kernels/batch_norm/batch_norm.h."""
        packs = self.map.channels // self.pack
        tiles = pieces(packs, 32)
        rows = THREADS // pieces(packs, tiles)
        of_part = pieces(pieces(positions, pieces(2 * self.multiprocessors, tiles)), rows) * rows
        return pieces(positions, of_part), of_part, tiles

    def bytes_of_parts(self, channels, parts):
        return 2 * FLOAT * channels * parts

    def by_parts(self, name, positions, at_once):
        """Threads load so many positions at once."""
        parts, of_part, tiles = self.parts(positions)
        across = pieces(self.map.channels // self.pack, tiles)
        blocks, rows = parts * tiles, THREADS // across
        launch = Launch(name, self.template(name), blocks, 0, warps=blocks * pieces(across * rows, 32),
                        round_trips=pieces(of_part, rows * at_once))
        return with_planned(launch, writes=self.bytes_of_parts(self.map.channels, parts))

    def add_layers(self, layer):
        """Gradients of sums lie where those of their parts do: in networks that add a branch to what it began with."""
        count, maps = self.images * self.map.count, len(layer["from"])
        for name in layer["from"]:
            self.read_norm(name)
        first = in_line("add_maps", self.template("add_maps"), count // self.pack,
                        (min(maps, MOST_MAPS) + 1) * count * self.element)
        self.add(layer, forward=[first] * (1 + pieces(max(0, maps - MOST_MAPS), MOST_MAPS - 1)))
        self.learns = any(self.made[name][1] for name in layer["from"])

    def copy_of_shared(self, layer):
        """What several read is copied for the one that changes it."""
        if not self.walk.is_shared(layer["from"][0]):
            return
        count = self.images * self.map.count
        copy = in_line("add_maps", self.template("add_maps"), count // self.pack, 2 * count * self.element)
        self.add({"name": f"{layer['name']} (copy)"}, forward=[copy], data=self.back(copy))

    def average_pool(self, layer):
        self.pool(layer, "average_pool", 0)

    def global_average_pool(self, layer):
        src, dst, name = self.map, stored(layer["output"]), "global_average_pool"
        moved, of_src = self.images * (src.count + dst.count) * self.element, self.images * src.count * self.element
        blocks = self.images * pieces(src.channels // self.pack, 8)
        forward = Launch(f"{name}_forward", self.template(f"{name}_forward"), blocks, moved,
                         warps=blocks * THREADS // 32)
        backward = self.by_packs(f"{name}_backward", self.template(f"{name}_backward"), self.images * src.positions,
                                 src.channels, moved + self.old(of_src))
        self.add(layer, forward=[forward], data=self.back(backward))
        self.map = dst

    def relu(self, layer, kind="relu", of="Relu"):
        self.copy_of_shared(layer)
        count = self.images * self.map.count
        packs, moved = count // self.pack, count * self.element
        template = lambda kernel: self.template(kernel, of, moves=of != "LeakyRelu")
        self.add(layer, forward=[in_line(f"{kind}_forward", template("activation"), packs, 2 * moved)],
                 data=self.back(in_line(f"{kind}_backward", template("activation_backward"), packs, 3 * moved)))

    def relu6(self, layer):
        self.relu(layer, "relu6", "Relu6")

    def leaky_relu(self, layer):
        self.relu(layer, "leaky_relu", "LeakyRelu")

    def dropout(self, layer):
        self.copy_of_shared(layer)
        if layer["rate"] == 0:
            return
        count = self.images * self.map.count
        launch = self.by_packs("dropout", self.template("dropout"), self.images * self.map.positions,
                               self.map.channels, 2 * count * self.element)
        self.add(layer, forward=[launch], data=self.back(launch))

    def flatten(self, _):
        pass

    def sigmoid(self, layer):
        self.loss(layer, "sigmoid_forward", pieces(self.images, 128), 1)

    def softmax(self, layer):
        self.loss(layer, "softmax_forward", pieces(self.images, 4), 2)  # exponentials lie there before slopes

    def loss(self, layer, name, blocks, times):
        """`times` slopes are read or written forward."""
        classes, loss, slope = layer["output"][2], 16, 8
        made = classes * (self.element + FLOAT + times * slope) + loss  # of logits, with probabilities
        gradient = classes * slope + self.map.channels * self.element
        self.add(layer, forward=[Launch(name, f"{name}_kernel<{self.stored()}>", blocks, self.images * made,
                                        warps=4 * blocks),
                                 Launch("add_losses", "add_losses_kernel", 1, self.images * loss, warps=4)],
                 data=self.back(self.by_packs("cross_entropy_backward", self.template("cross_entropy_backward"),
                                              self.images, self.map.channels, self.images * gradient)))

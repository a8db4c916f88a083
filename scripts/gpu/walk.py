"""The layers of a model in the order in which backends/cuda/compile.cpp makes operators of them."""
from collections import Counter


def linked(layers):
    """Each says which layers it reads, by name."""
    return [{**layer, "from": layer.get("from", [before["name"]])}
            for before, layer in zip([{"name": ""}, *layers], layers)]


def readers_of(layers):
    return Counter(name for layer in layers for name in layer["from"])


def pool_before_relu(layers):
    """As src/model/rewrite.h: a max pool goes before the ReLU that it alone reads."""
    layers, readers = linked(layers), readers_of(linked(layers))
    for i in range(1, len(layers)):
        relu, pool = layers[i - 1:i + 1]
        if ((relu["type"], pool["type"]) != ("relu", "max_pool") or pool["from"] != [relu["name"]]
                or readers[relu["name"]] != 1):
            continue
        for later in layers[i + 1:]:
            later["from"] = [relu["name"] if name == pool["name"] else name for name in later["from"]]
        layers[i - 1] = {**pool, "from": relu["from"]}
        layers[i] = {**relu, "from": [pool["name"]], "output": pool["output"]}
    return layers


def takes_zeros(convolution, zeros):
    most = max(zeros[side] for side in ("top", "bottom", "left", "right"))
    return convolution["padding"] == "valid" and most < convolution["kernel"]


class Walk:
    """Layer by layer; an operator may take those that follow."""

    def __init__(self, layers):
        self.layers = pool_before_relu(layers)
        self.readers = readers_of(self.layers)
        self.at = 0

    def ended(self):
        return self.at == len(self.layers)

    @property
    def layer(self):
        return self.layers[self.at]

    def advance(self):
        self.at += 1

    def only_next_is(self, kind):
        """The next layer, if it is of that type and alone reads this one, and nothing else."""
        if self.at + 1 == len(self.layers):
            return None
        name, after = self.layer["name"], self.layers[self.at + 1]
        return after if after["type"] == kind and after["from"] == [name] and self.readers[name] == 1 else None

    def only_next_adds(self):
        """The other layer that the next one adds to this one, if it adds two and alone reads this one."""
        if self.at + 1 == len(self.layers):
            return None
        name, after = self.layer["name"], self.layers[self.at + 1]
        if after["type"] != "add" or len(after["from"]) != 2 or self.readers[name] != 1 or name not in after["from"]:
            return None
        return after["from"][1 - after["from"].index(name)]

    def takes_next(self, kind):
        """Whether the operator takes the next layer as well; then the walk stands on that."""
        taken = self.only_next_is(kind) is not None
        self.at += taken
        return taken

    def takes_first_block(self):
        """(convolution, max pool) of what backends/cuda/ops/first_block_op.cpp makes with the input, on which the walk
        stands; then it stands on the ReLU. None: the network begins otherwise."""
        begin = self.at
        window = lambda size: tuple(self.layer.get(key, 1) for key in (size, "stride", "groups"))
        if self.takes_next("convolution") and window("kernel") == (3, 1, 1):
            convolution = self.layer
            if self.takes_next("max_pool") and window("size") == (2, 2, 1) and self.layer["padding"] == "valid":
                pool = self.layer
                if self.takes_next("relu"):
                    return convolution, pool
        self.at = begin
        return None

    def reads_pairs(self):
        """(convolution, zeros before it or None) where a convolution of stride 2 alone reads the image, on which the walk
        stands; None where the network begins otherwise."""
        begin, zeros = self.at, self.only_next_is("zero_pad")
        self.at += zeros is not None
        convolution = self.only_next_is("convolution")
        self.at = begin
        if not convolution or (convolution["stride"], convolution.get("groups", 1)) != (2, 1):
            return None
        return (convolution, zeros) if not zeros or takes_zeros(convolution, zeros) else None

    def before_flatten(self, name):
        """The layer whose output lies there."""
        layer = next((layer for layer in self.layers if layer["name"] == name), None)
        return self.before_flatten(layer["from"][0]) if layer and layer["type"] == "flatten" else name

    def is_shared(self, name):
        """Whether several operators read what the layer made. Flatten hands on what it reads."""
        return self.count_readers(name) > 1

    def count_readers(self, name):
        readers = [layer for layer in self.layers for read in layer["from"] if read == name]
        return sum(self.count_readers(layer["name"]) if layer["type"] == "flatten" else 1 for layer in readers)

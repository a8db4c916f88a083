"""A network of cputrain in PyTorch, from its graph as model files and weights have it."""
import torch
from torch import nn
from torch.nn import functional

import layers


class Flatten(nn.Module):
    """In Keras' order, height, width, channels, which is that of memory: nothing is copied."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


class Add(nn.Module):
    def forward(self, *maps):
        return sum(maps[1:], maps[0])


class Concat(nn.Module):
    def forward(self, *maps):
        return torch.cat(maps, 1)


class LayerNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class GlobalAveragePool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def translated(layer, shape):
    """The module, for input of this shape (without the batch); None for the loss."""
    kind = layer["type"]
    padding = layer.get("padding")
    same = padding == "same"
    if kind == "convolution" and (not same or layer["stride"] == 1):
        return nn.Conv2d(shape[0], layer["filters"], layer["kernel"], layer["stride"],
                         0 if padding == "valid" else layer["kernel"] // 2, groups=layer.get("groups", 1),
                         bias=layer["bias"])
    if kind == "dense":
        return nn.Linear(shape[0], layer["units"], layer["bias"])
    if kind == "max_pool" and not same:
        return nn.MaxPool2d(layer["size"], layer["stride"], layer["size"] // 2 if padding == "half" else 0)
    if kind == "average_pool" and padding == "valid":
        return nn.AvgPool2d(layer["size"], layer["stride"])
    if kind == "zero_pad":
        return nn.ZeroPad2d((layer["left"], layer["right"], layer["top"], layer["bottom"]))
    if kind == "batch_norm":
        return nn.BatchNorm2d(shape[0], layer["epsilon"], 1 - layer["momentum"])
    if kind == "leaky_relu":
        return nn.LeakyReLU(layer["slope"])
    if kind == "layer_norm" and layer["scale"]:
        return LayerNorm(shape[0], layer["epsilon"], bias=layer["offset"])
    if kind == "dropout":
        return nn.Dropout(layer["rate"])
    simple = {"relu": nn.ReLU, "relu6": nn.ReLU6, "silu": nn.SiLU, "flatten": Flatten, "add": Add, "concat": Concat,
              "global_average_pool": GlobalAveragePool}
    if kind in simple:
        return simple[kind]()
    if kind in ("sigmoid", "softmax"):
        return None
    layers.not_translated(layer)


def part_of(name):
    """The name of a module in a container, which has no dots."""
    return name.replace(".", "/")


def by_colour(value, device):
    """A number for all colours, or a list of three as what goes with maps of NCHW."""
    return torch.tensor(value, device=device).reshape(3, 1, 1) if isinstance(value, list) else value


class Network(nn.Module):
    """The layers up to the logits; images come as bytes and are scaled inside, as in cputrain."""

    def __init__(self, graph):
        super().__init__()
        self.input = graph["input"]
        self.parts, self.chain, previous = nn.ModuleDict(), [], "input"
        readers = {}
        sample = torch.zeros(1, self.input["channels"], self.input["height"], self.input["width"])
        maps = {"input": sample}
        for layer in graph["layers"]:
            read = layers.inputs_of(layer, previous)
            made = translated(layer, maps[read[0]].shape[1:])
            if made is None:
                break
            previous = layer["name"]
            with torch.no_grad():
                maps[previous] = made.eval()(*(maps[name] for name in read))
            for name in read:
                readers[name] = readers.get(name, 0) + 1
            self.parts[part_of(previous)] = made
            self.chain.append((previous, read))
        for name, read in self.chain:  # the usual saving of memory, where nothing else reads the map
            if isinstance(self.parts[part_of(name)], (nn.ReLU, nn.ReLU6, nn.LeakyReLU)):
                self.parts[part_of(name)].inplace = readers[read[0]] == 1
        self.last_reader = {source: name for name, read in self.chain for source in read}

    def forward(self, images):
        scale, offset = (by_colour(self.input[key], images.device) for key in ("scale", "offset"))
        maps = {"input": images.float() * scale + offset}
        for name, read in self.chain:
            value = self.parts[part_of(name)](*(maps[source] for source in read))
            for source in read:  # no map is held longer than backward needs it
                if self.last_reader[source] == name:
                    maps.pop(source, None)
            maps[name] = value
        return value


# Keras' layout to PyTorch's: kernels of convolutions are height x width x in x out there.
ORDERS = {4: (3, 2, 0, 1), 2: (1, 0), 1: (0,)}
NAMES = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias",
         "moving_mean": "running_mean", "moving_variance": "running_var"}


def load(network, arrays):
    with torch.no_grad():
        for name, array in arrays.items():
            layer, kind = name.rsplit("/", 1)
            target = getattr(network.parts[part_of(layer)], NAMES[kind])
            target.copy_(torch.tensor(array).permute(ORDERS[array.ndim]))


def count(network):
    """As Keras counts: moving statistics are parameters, too."""
    tensors = [*network.parameters(), *(b for b in network.buffers() if b.is_floating_point())]
    return sum(t.numel() for t in tensors)


def optimizer_of(recipe, parameters):
    rate = recipe["learning_rate"]
    if recipe["optimizer"] == "rmsprop":
        return torch.optim.RMSprop(parameters, rate, alpha=0.9, eps=1e-7)
    if recipe["optimizer"] == "adam":
        return torch.optim.Adam(parameters, rate, eps=1e-7)
    return torch.optim.SGD(parameters, rate, momentum=recipe.get("momentum", 0.0))


class Objective:
    """The loss of logits, with what the recipe penalises."""

    def __init__(self, network, graph):
        self.single = graph["layers"][-1]["type"] == "sigmoid"
        self.penalised = [(network.parts[layer["name"]].weight, layer["l2"])
                          for layer in graph["layers"] if layer.get("l2")]

    def loss(self, logits, labels):
        value = (functional.binary_cross_entropy_with_logits(logits[:, 0], labels.float()) if self.single
                 else functional.cross_entropy(logits, labels))
        return value + sum(l2 * weight.square().sum() for weight, l2 in self.penalised)

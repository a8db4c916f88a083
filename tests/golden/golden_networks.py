"""The built-in models in PyTorch, from the tables and block diagrams of their sources and of Keras'
documentation: a second implementation that shares nothing with src/model. Dropout is left out (rate
0), and so is L2 (the trainer adds it to the loss; it is not in a program's gradients).
"""
import numpy as np
import torch
import torch.nn.functional as F

from golden_numbers import start_values

NORM_EPSILON = float(np.float32(1.001e-5))  # floats in the program, on every backend
NORM_MOMENTUM = float(np.float32(0.99))
PIXEL_SCALE = float(np.float32(1) / np.float32(255))


class Pass:
    """Runs a network once. `tensors` holds weights by Keras' names, in Keras' layouts; what a layer
    does not find there it puts there (its first values), so a first pass makes them all, in order."""

    def __init__(self, tensors, training=True, frozen=()):
        self.tensors, self.training, self.frozen = tensors, training, frozen

    def tensor(self, name, *shape):
        if name not in self.tensors:
            self.tensors[name] = torch.from_numpy(start_values(name, shape))
        assert self.tensors[name].shape == shape, name
        return self.tensors[name]

    def conv(self, x, name, filters, size, stride=1, padding="valid", bias=True, groups=1):
        inputs = x.shape[1] // groups
        kernel = self.tensor(name + "/kernel", size, size, inputs, filters).permute(3, 2, 0, 1)
        bias = self.tensor(name + "/bias", filters) if bias else None
        return F.conv2d(x, kernel, bias, stride=stride, padding=padding, groups=groups)

    def dense(self, x, name, units):
        return x @ self.tensor(name + "/kernel", x.shape[1], units) + self.tensor(name + "/bias", units)

    def norm(self, x, name, epsilon, momentum):
        """PyTorch moves the moving variance towards the unbiased one, as tf.keras does for 4-D input;
        its momentum is the other share. A frozen layer uses its moving statistics, as in Keras."""
        gamma, beta, mean, variance = (self.tensor(f"{name}/{kind}", x.shape[1]) for kind in
                                       ("gamma", "beta", "moving_mean", "moving_variance"))
        live = self.training and name not in self.frozen
        return F.batch_norm(x, mean, variance, gamma, beta, live, 1 - float(np.float32(momentum)),
                            float(np.float32(epsilon)))

    def norm_relu(self, x, name):
        return F.relu(self.norm(x, name + "_bn", NORM_EPSILON, NORM_MOMENTUM))


def flatten(x):
    return x.permute(0, 2, 3, 1).flatten(1)  # N C H W -> height, width, channel


def numbered(base, i):
    return base if i == 0 else f"{base}_{i}"


def dogcat(run, x, classes):
    for i, filters in enumerate((32, 64, 128, 128)):
        x = F.max_pool2d(F.relu(run.conv(x, numbered("conv2d", i), filters, 3)), 2)
    x = F.relu(run.dense(flatten(x), "dense", 512))
    x = F.relu(run.dense(x, "dense_1", 256))
    return run.dense(x, "dense_2", 1 if classes == 2 else classes)


def nature7(run, x, classes):
    for i, filters in enumerate((16, 32, 32, 64, 128)):
        x = F.max_pool2d(F.relu(run.conv(x, numbered("conv2d", i), filters, 3)), 2)
    return run.dense(F.relu(run.dense(flatten(x), "dense", 128)), "dense_1", classes)


def chips(run, x, classes):
    for i, filters in enumerate((16, 32, 32, 64, 64)):
        x = F.relu(run.conv(x, numbered("conv2d", i), filters, 3, padding="same"))
        if i > 0:
            x = F.max_pool2d(x, 2)
    return run.dense(F.relu(run.dense(flatten(x), "dense", 128)), "dense_1", classes)


def vgg16(run, x, classes):
    for block, (filters, layers) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        for layer in range(1, layers + 1):
            x = F.relu(run.conv(x, f"block{block}_conv{layer}", filters, 3, padding="same"))
        x = F.max_pool2d(x, 2)
    x = F.relu(run.dense(flatten(x), "fc1", 4096))
    return run.dense(F.relu(run.dense(x, "fc2", 4096)), "predictions", classes)


def block_v2(run, x, name, filters, stride, projects):
    activated = run.norm_relu(x, name + "_preact")
    shortcut = x
    if projects:
        shortcut = run.conv(activated, name + "_0_conv", 4 * filters, 1, stride)
    elif stride > 1:
        shortcut = F.max_pool2d(x, 1, stride)  # of the raw input
    y = run.conv(activated, name + "_1_conv", filters, 1, bias=False)
    y = F.pad(run.norm_relu(y, name + "_1"), (1, 1, 1, 1))
    y = run.conv(y, name + "_2_conv", filters, 3, stride, bias=False)
    y = run.conv(run.norm_relu(y, name + "_2"), name + "_3_conv", 4 * filters, 1)
    return shortcut + y


def resnet_v2(blocks):
    def network(run, x, classes):
        x = run.conv(F.pad(x, (3, 3, 3, 3)), "conv1_conv", 64, 7, 2)
        x = F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2)  # zeros, which can win the pool
        for stack, count in enumerate(blocks):
            for i in range(1, count + 1):
                stride = 2 if i == count and stack < 3 else 1  # in the last block of a stack
                x = block_v2(run, x, f"conv{stack + 2}_block{i}", 64 << stack, stride, i == 1)
        x = run.norm_relu(x, "post").mean((2, 3))
        return run.dense(x, "predictions", classes)
    return network


class Units:
    """Convolutions without a bias and batch norms of torchvision's and timm's networks."""

    def __init__(self, run, epsilon=1e-5, momentum=0.9, same=False):
        self.run, self.figures, self.same = run, (epsilon, momentum), same

    def conv(self, x, name, filters, size, stride=1, groups=1):
        padding = size // 2
        if self.same:  # TensorFlow's: what is odd comes last
            total = [max((-(-n // stride) - 1) * stride + size - n, 0) for n in x.shape[2:]]
            x = F.pad(x, (total[1] // 2, -(-total[1] // 2), total[0] // 2, -(-total[0] // 2)))
            padding = 0
        return self.run.conv(x, name, filters, size, stride, padding, False, groups)

    def norm(self, x, name):
        return self.run.norm(x, name, *self.figures)

    def both(self, x, conv, norm, *shape):
        return self.norm(self.conv(x, conv, *shape), norm)


def resnet(blocks, wide):
    def block(u, x, name, filters, stride):
        out = 4 * filters if wide else filters
        shapes = [(filters, 1), (filters, 3, stride), (out, 1)] if wide else [(filters, 3, stride), (out, 3)]
        y = x
        for i, shape in enumerate(shapes, 1):
            y = F.relu(y) if i > 1 else y
            y = u.both(y, f"{name}.conv{i}", f"{name}.bn{i}", *shape)
        if x.shape != y.shape:
            x = u.both(x, name + ".downsample.0", name + ".downsample.1", out, 1, stride)
        return F.relu(x + y)

    def network(run, x, classes):
        u = Units(run)
        x = F.max_pool2d(F.relu(u.both(x, "conv1", "bn1", 64, 7, 2)), 3, 2, 1)
        for stack, count in enumerate(blocks):
            for i in range(count):
                x = block(u, x, f"layer{stack + 1}.{i}", 64 << stack, 2 if stack > 0 and i == 0 else 1)
        return run.dense(x.mean((2, 3)), "fc", classes)
    return network


def mobilenetv2(run, x, classes):
    u = Units(run)

    def unit(x, name, *shape):
        return F.relu6(u.both(x, name + ".0", name + ".1", *shape))

    def block(x, name, expansion, filters, stride):
        wide = x.shape[1] * expansion
        y, n = (x, 0) if expansion == 1 else (unit(x, name + ".conv.0", wide, 1), 1)
        y = unit(y, f"{name}.conv.{n}", wide, 3, stride, wide)
        y = u.both(y, f"{name}.conv.{n + 1}", f"{name}.conv.{n + 2}", filters, 1)
        return x + y if x.shape == y.shape else y

    x, number = unit(x, "features.0", 32, 3, 2), 1
    for expansion, filters, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                              (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            x = block(x, f"features.{number}", expansion, filters, stride if i == 0 else 1)
            number += 1
    return run.dense(unit(x, "features.18", 1280, 1).mean((2, 3)), "classifier.1", classes)


def efficientnet_lite0(run, x, classes):
    u = Units(run, epsilon=1e-3, momentum=0.99, same=True)

    def block(x, name, expansion, filters, stride, size):
        wide = x.shape[1] * expansion
        names = ["conv_pw", "conv_dw", "conv_pwl"] if expansion > 1 else ["conv_dw", "conv_pw"]
        shapes = [(wide, 1), (wide, size, stride, wide), (filters, 1)][-len(names):]
        y = x
        for i, (conv, shape) in enumerate(zip(names, shapes), 1):
            y = F.relu6(y) if i > 1 else y
            y = u.both(y, f"{name}.{conv}", f"{name}.bn{i}", *shape)
        return x + y if x.shape == y.shape else y

    x = F.relu6(u.both(x, "conv_stem", "bn1", 32, 3, 2))
    stages = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
              (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))
    for stage, (expansion, filters, count, stride, size) in enumerate(stages):
        for i in range(count):
            x = block(x, f"blocks.{stage}.{i}", expansion, filters, stride if i == 0 else 1, size)
    x = F.relu6(u.both(x, "conv_head", "bn2", 1280, 1))
    return run.dense(x.mean((2, 3)), "classifier", classes)


def densenet121(run, x, classes):
    u = Units(run)

    def activated(x, name, number, filters, size):
        return u.conv(F.relu(u.norm(x, f"{name}.norm{number}")), f"{name}.conv{number}", filters, size)

    x = F.max_pool2d(F.relu(u.both(x, "features.conv0", "features.norm0", 64, 7, 2)), 3, 2, 1)
    for block, layers in enumerate((6, 12, 24, 16), 1):
        if block > 1:
            x = F.avg_pool2d(activated(x, f"features.transition{block - 1}", "", x.shape[1] // 2, 1), 2)
        for layer in range(1, layers + 1):
            name = f"features.denseblock{block}.denselayer{layer}"
            x = torch.cat([x, activated(activated(x, name, 1, 128, 1), name, 2, 32, 3)], 1)
    return run.dense(F.relu(u.norm(x, "features.norm5")).mean((2, 3)), "classifier", classes)


NETWORKS = dict(dogcat=dogcat, nature7=nature7, chips=chips, vgg16=vgg16,
                resnet50v2=resnet_v2((3, 4, 6, 3)), resnet101v2=resnet_v2((3, 4, 23, 3)),
                resnet152v2=resnet_v2((3, 8, 36, 3)), resnet18=resnet((2, 2, 2, 2), False),
                resnet50=resnet((3, 4, 6, 3), True), mobilenetv2=mobilenetv2, densenet121=densenet121)
NETWORKS["efficientnet-lite0"] = efficientnet_lite0


def logits_of(name, run, pixels, classes):
    """Images x classes; one logit z of a sigmoid becomes (0, z), a softmax of the same probabilities."""
    dtype = next(iter(run.tensors.values())).dtype if run.tensors else torch.double
    x = torch.from_numpy(pixels).to(dtype).permute(0, 3, 1, 2) * PIXEL_SCALE
    z = NETWORKS[name](run, x, classes)
    return torch.cat([torch.zeros_like(z), z], 1) if z.shape[1] == 1 else z


def check_norm():
    """F.batch_norm against the formulas: biased variance to normalise with, unbiased to remember."""
    torch.manual_seed(1)
    x, gamma, beta = torch.randn(3, 5, 2, 4).double(), torch.randn(5).double(), torch.randn(5).double()
    mean, variance = torch.randn(5).double(), torch.rand(5).double()
    batch_mean, biased = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
    shape = (1, 5, 1, 1)
    expected = (x - batch_mean.view(shape)) / (biased.view(shape) + NORM_EPSILON).sqrt()
    expected = F.relu(expected * gamma.view(shape) + beta.view(shape))
    new_mean = mean - (mean - batch_mean) * (1 - NORM_MOMENTUM)
    new_variance = variance - (variance - biased * 24 / 23) * (1 - NORM_MOMENTUM)
    tensors = {"n_bn/gamma": gamma, "n_bn/beta": beta, "n_bn/moving_mean": mean,
               "n_bn/moving_variance": variance}
    assert torch.allclose(Pass(tensors).norm_relu(x, "n"), expected, rtol=0, atol=1e-13)
    assert torch.allclose(mean, new_mean, rtol=0, atol=1e-14)
    assert torch.allclose(variance, new_variance, rtol=0, atol=1e-14)

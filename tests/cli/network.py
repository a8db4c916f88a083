"""Inference a second time, in numpy and NCHW: single operators, and an ONNX graph of them. Follows
the operators' descriptions of ONNX' operator set 13, for what the program may write."""
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def pad(x, pads, value=0.0):
    top, left, bottom, right = pads
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=value)


def windows(x, kernel, strides, pads, value=0.0):
    """[N, C, rows, columns, kernel rows, kernel columns]"""
    views = sliding_window_view(pad(x, pads, value), kernel, axis=(2, 3))
    return views[:, :, ::strides[0], ::strides[1]]


def conv(x, weight, bias=None, strides=(1, 1), pads=(0, 0, 0, 0)):
    seen = windows(x, weight.shape[2:], strides, pads)
    y = np.einsum("nchwij,ocij->nohw", seen, weight, optimize=True)
    return y if bias is None else y + bias[:, None, None]


def grouped_conv(x, weight, bias, groups, strides, pads):
    parts = zip(np.split(x, groups, 1), np.split(weight, groups))
    y = np.concatenate([conv(part, kernel, None, strides, pads) for part, kernel in parts], 1)
    return y if bias is None else y + bias[:, None, None]


def max_pool(x, kernel, strides, pads=(0, 0, 0, 0)):
    return windows(x, kernel, strides, pads, -np.inf).max((4, 5))


def average_pool(x, kernel, strides, pads=(0, 0, 0, 0)):
    """Padding does not count."""
    ones = windows(np.ones_like(x), kernel, strides, pads).sum((4, 5))
    return windows(x, kernel, strides, pads).sum((4, 5)) / ones


def batch_norm(x, scale, shift, mean, variance, epsilon=1e-5):
    each = (slice(None),) + (None,) * (x.ndim - 2)
    return (x - mean[each]) / np.sqrt(variance[each] + epsilon) * scale[each] + shift[each]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def reshaped(x, shape):
    return x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(shape)])


def sliced(x, begins, ends, axes):
    cuts = [slice(None)] * x.ndim
    for begin, end, axis in zip(begins, ends, axes):
        cuts[axis] = slice(begin, end)
    return x[tuple(cuts)]


def cast(x, to):
    """To FLOAT, INT64 or DOUBLE by ONNX' numbers of types; floats stay double here."""
    return np.asarray(x).astype({1: np.float64, 7: np.int64, 11: np.float64}[to])


def divided(x, y):
    return x // y if np.asarray(x).dtype.kind == "i" else x / y


OPERATORS = {
    "Abs": lambda a, x: np.abs(x),
    "And": lambda a, x, y: x & y,
    "Cast": lambda a, x: cast(x, a["to"]),
    "CumSum": lambda a, x, axis: np.cumsum(x, int(axis)),
    "Div": lambda a, x, y: divided(x, y),
    "Equal": lambda a, x, y: x == y,
    "Floor": lambda a, x: np.floor(x),
    "Gather": lambda a, x, i: np.take(x, i, 0),
    "Greater": lambda a, x, y: x > y,
    "GreaterOrEqual": lambda a, x, y: x >= y,
    "Less": lambda a, x, y: x < y,
    "LessOrEqual": lambda a, x, y: x <= y,
    "MatMul": lambda a, x, y: x @ y,
    "Max": lambda a, x, y: np.maximum(x, y),
    "Min": lambda a, x, y: np.minimum(x, y),
    "Range": lambda a, begin, end, step: np.arange(begin, end, step),
    "ReduceMean": lambda a, x: x.mean(tuple(a["axes"]), keepdims=True),
    "ReduceSum": lambda a, x, axes: x.sum(tuple(axes), keepdims=True),
    "Round": lambda a, x: np.round(x),
    "Shape": lambda a, x: np.array(x.shape, np.int64),
    "Sqrt": lambda a, x: np.sqrt(x),
    "Sub": lambda a, x, y: x - y,
    "Where": lambda a, c, x, y: np.where(c, x, y),
    "Mul": lambda a, x, y: x * y,
    "Add": lambda a, x, y: x + y,
    "Relu": lambda a, x: np.maximum(x, 0),
    "LeakyRelu": lambda a, x: np.where(x > 0, x, a["alpha"] * x),
    "Sigmoid": lambda a, x: sigmoid(x),
    "Softmax": lambda a, x: softmax(x),
    "Transpose": lambda a, x: x.transpose(a["perm"]),
    "Flatten": lambda a, x: x.reshape(len(x), -1),
    "Reshape": lambda a, x, shape: reshaped(x, shape),
    "Slice": lambda a, x, b, e, axes: sliced(x, b, e, axes),
    "Pad": lambda a, x, p: pad(x, [p[2], p[3], p[6], p[7]]),
    "Gemm": lambda a, x, w, b=0: x @ w + b,
    "Conv": lambda a, x, w, b=None: grouped_conv(x, w, b, a.get("group", 1), a["strides"], a["pads"]),
    "Clip": lambda a, x, least, most: np.clip(x, least, most),
    "Concat": lambda a, *parts: np.concatenate(parts, a["axis"]),
    "MaxPool": lambda a, x: max_pool(x, a["kernel_shape"], a["strides"], a["pads"]),
    "AveragePool": lambda a, x: average_pool(x, a["kernel_shape"], a["strides"], a["pads"]),
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdims=True),
    "BatchNormalization": lambda a, x, *rest: batch_norm(x, *rest, a["epsilon"]),
}


def run_onnx(model, images):
    """Outputs of an onnx.ModelProto for float images [N, H, W, 3], in double."""
    from onnx import helper, numpy_helper
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    values = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in values.items()}
    values[model.graph.input[0].name] = images.astype(np.float64)
    for node in model.graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        inputs = [values[name] for name in node.input]
        values[node.output[0]] = OPERATORS[node.op_type](attributes, *inputs)
    return values[model.graph.output[0].name]

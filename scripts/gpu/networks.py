"""The networks that compute-sanitizer sees: between them they have every kernel that a training in bf16 launches, and
every tile of products in every direction. A test compares both with the plan and with launches of the emulated
device."""

# Odd sizes and channels, and all types of layers.
SMALL = {
    "format": "cputrain model 1", "name": "small",
    "recipe": {"image_size": 21, "batch": 10, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.02, "momentum": 0.9},
    "layers": [
        {"type": "convolution", "filters": 7, "kernel": 3, "padding": "same"}, {"type": "relu"},
        {"type": "max_pool", "name": "stem", "size": 2},
        {"type": "convolution", "filters": 7, "kernel": 3, "padding": "same", "bias": False},
        {"type": "batch_norm", "name": "branch"}, {"type": "add", "from": ["stem", "branch"]},
        {"type": "relu", "name": "trunk"},
        {"type": "zero_pad", "top": 1, "bottom": 1, "left": 1, "right": 1},
        {"type": "convolution", "name": "more", "filters": 7, "kernel": 3},
        {"type": "add", "name": "sum", "from": ["trunk", "more"]},
        {"type": "convolution", "name": "left", "filters": 20, "kernel": 3, "stride": 2, "l2": 0.001},
        {"type": "silu", "name": "left_silu"},
        {"type": "convolution", "name": "right", "from": ["sum"], "filters": 12, "kernel": 3, "stride": 2},
        {"type": "relu6", "name": "right_relu6"},
        {"type": "concat", "from": ["left_silu", "right_relu6"]},
        {"type": "convolution", "filters": 32, "kernel": 3, "padding": "same", "groups": 32}, {"type": "leaky_relu"},
        {"type": "average_pool", "size": 2}, {"type": "convolution", "filters": 40, "kernel": 1},
        {"type": "layer_norm"}, {"type": "batch_norm"}, {"type": "dropout", "rate": 0.2}, {"type": "global_average_pool"},
        {"type": "dense", "units": 45}, {"type": "relu"}, {"type": "dense", "units": "classes"}, {"type": "softmax"}]}
# Maps of 14 x 14 and 7 x 7 positions of so many images, and channels that make the plan take its large tiles. The first
# convolution reads pairs of pixels.
LARGE = {
    "format": "cputrain model 1", "name": "large",
    "recipe": {"image_size": 28, "batch": 184, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.02},
    "layers": [
        {"type": "convolution", "filters": 56, "kernel": 3, "stride": 2, "padding": "same", "bias": False},
        {"type": "batch_norm"}, {"type": "relu"}, {"type": "convolution", "filters": 56, "kernel": 3, "padding": "same"},
        {"type": "max_pool", "size": 3, "stride": 2, "padding": "same"}, {"type": "relu"},
        {"type": "convolution", "filters": 256, "kernel": 3, "padding": "same"}, {"type": "relu"},
        {"type": "convolution", "filters": 200, "kernel": 1}, {"type": "relu"},
        {"type": "convolution", "filters": 136, "kernel": 1}, {"type": "relu"},
        {"type": "global_average_pool"}, {"type": "dense", "units": 1}, {"type": "sigmoid"}]}

"""The convolutions of a network one by one, as PyTorch has cuDNN compute them: forward, data, weights and bias."""
import torch

from gpu_training import Clock, set_determinism, set_precision, spread
from pytorch_network import Network


def convolutions(graph):
    """(name, module, shape of an image's input)."""
    network, found = Network(graph), []

    def hook(name):
        return lambda module, given, _: found.append((name, module, tuple(given[0].shape[1:])))
    hooks = [part.register_forward_hook(hook(name)) for name, part in network.parts.items()
             if isinstance(part, torch.nn.Conv2d)]
    with torch.no_grad():
        shape = graph["input"]
        network.eval()(torch.zeros(1, shape["channels"], shape["height"], shape["width"]))
    for h in hooks:
        h.remove()
    return found


def made(shape, kind, device):
    return torch.randn(shape, device=device, dtype=kind).contiguous(memory_format=torch.channels_last)


def one(name, module, shape, first, request):
    kind = torch.bfloat16 if request["precision"] == "bf16" else torch.float32
    device, batch = request["device"], request["batch"]
    clock = Clock(device)
    x = made((batch, *shape), kind, device)
    weight = made(tuple(module.weight.shape), kind, device)
    bias = torch.zeros(weight.shape[0], device=device, dtype=kind) if module.bias is not None else None
    geometry = (list(module.stride), list(module.padding), list(module.dilation))
    y = torch.convolution(x, weight, bias, *geometry, False, [0, 0], 1)
    dy = made(tuple(y.shape), kind, device)

    def forward(_):
        torch.convolution(x, weight, bias, *geometry, False, [0, 0], 1)

    def backward(*wanted):
        def run(_):
            torch.ops.aten.convolution_backward(dy, x, weight, [weight.shape[0]], *geometry, False, [0, 0], 1, wanted)
        return run
    work = {"forward": forward, "weights": backward(False, True, False), "bias": backward(False, False, True)}
    if not first:  # gradients of images are not needed
        work["data"] = backward(True, False, False)
    products = y[0].numel() * weight[0].numel()
    return {"layer": name, **{direction: figures(clock, run, products if direction != "bias" else 0, request)
                              for direction, run in work.items()}}


def figures(clock, run, products, request):
    """`products`: multiply-adds of an image."""
    for i in range(3):
        run(i)
    clock.wait()
    once = min(clock.seconds(3, run))
    times = clock.seconds(max(5, min(100, int(0.05 / once))), run)
    seconds = spread(times)["median"]
    told = {"us_per_image": {k: 1e6 * v / request["batch"] for k, v in spread(times).items()}}
    if products:
        told["tflops"] = 2e-12 * products * request["batch"] / seconds
    return told


def measured(request, graph):
    set_precision(request["precision"])
    set_determinism(False, False)
    layers = [one(name, module, shape, i == 0, request)
              for i, (name, module, shape) in enumerate(convolutions(graph))]
    return {"status": "measured", "layers": layers}

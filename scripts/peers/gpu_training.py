"""Whole training steps of a network in PyTorch, in one mode: data on the device, forward, loss, backward, update."""
import time
import warnings

import torch
from torch.nn import functional

from pytorch_network import Network, Objective, count, optimizer_of

BATCHES = 4  # of different images, in turn
WARM_UP = 4  # steps after the first; CUDA graphs are recorded in these
SEED = 7


def images_like_photographs(count_, size, generator, device):
    """Bytes, count x height x width x 3, of smooth patches and some noise; and labels, the brighter half of each."""
    coarse = torch.rand(count_, 3, 16, 16, generator=generator)
    labels = (coarse.mean((1, 2, 3)) > 0.5).long()
    smooth = functional.interpolate(coarse.to(device), (size, size), mode="bilinear")
    noise = torch.rand(smooth.shape, device=device) * 0.1
    return ((smooth * 0.9 + noise) * 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous(), labels.to(device)


def set_precision(precision):
    """TF32 for all products, as the recipes of speed have it, or for none. bf16 leaves TF32 to what stays float."""
    tf32 = precision != "float32"
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32


def product_errors(request):
    """Errors of convolutions and dense products in this precision, by norm, against double: about 1e-6 for float32,
    3e-4 for TF32, 3e-3 for bf16. They tell what the settings above came to."""
    device, generator = request["device"], torch.Generator().manual_seed(SEED)
    x, w = torch.randn(4, 64, 24, 24, generator=generator), torch.randn(64, 64, 3, 3, generator=generator)
    x, w = x.to(device), w.to(device)
    products = {"convolution": (functional.conv2d, x, w), "dense": (torch.matmul, x.flatten(1)[:, :4096],
                                                                    w.flatten()[:4096 * 8].reshape(4096, 8))}
    errors = {}
    for name, (product, a, b) in products.items():
        with torch.autocast(device, torch.bfloat16, enabled=request["precision"] == "bf16"):
            got = product(a, b).double()
        right = product(a.double(), b.double())
        errors[name] = float((got - right).norm() / right.norm())
    return errors


def set_determinism(deterministic, strict):
    torch.use_deterministic_algorithms(deterministic, warn_only=not strict)
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = not deterministic


class Clock:
    """Seconds of steps, by CUDA events where there is CUDA."""

    def __init__(self, device):
        self.cuda = device == "cuda"

    def wait(self):
        if self.cuda:
            torch.cuda.synchronize()

    def seconds(self, steps, work):
        """The time of each of so many calls of work(i), whose work follows without a pause."""
        if not self.cuda:
            times = [time.perf_counter()]
            for i in range(steps):
                work(i)
                times.append(time.perf_counter())
            return [b - a for a, b in zip(times, times[1:])]
        events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
        events[0].record()
        for i in range(steps):
            work(i)
            events[i + 1].record()
        self.wait()
        return [1e-3 * a.elapsed_time(b) for a, b in zip(events, events[1:])]


class Training:
    def __init__(self, request, graph, recipe):
        self.request, self.device = request, request["device"]
        generator = torch.Generator().manual_seed(SEED)
        torch.manual_seed(SEED)
        last = request["layout"] == "channels-last"
        self.network = Network(graph).to(
            self.device, memory_format=torch.channels_last if last else torch.contiguous_format).train()
        self.batches = []
        for _ in range(BATCHES):
            pixels, labels = images_like_photographs(request["batch"], request["size"], generator, self.device)
            x = pixels.permute(0, 3, 1, 2)
            self.batches.append((x if last else x.contiguous(), labels))
        self.objective = Objective(self.network, graph)
        self.optimizer = optimizer_of(recipe, self.network.parameters())
        self.start = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.loss_of, self.update = self.made(request["engine"])

    def made(self, engine):
        if engine == "eager":
            return self.loss, self.optimizer.step
        mode = "reduce-overhead" if engine == "graphs" else "default"
        compiled = torch.compile(self.loss, dynamic=False, mode=mode)
        update = torch.compile(self.optimizer.step, dynamic=False) if engine == "all-compiled" else self.optimizer.step
        return compiled, update

    def loss(self, images, labels):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.request["precision"] == "bf16"):
            logits = self.network(images)
        return self.objective.loss(logits.float(), labels)

    def step(self, i):
        if self.request["engine"] == "graphs":
            torch.compiler.cudagraph_mark_step_begin()
        self.optimizer.zero_grad(set_to_none=True)
        value = self.loss_of(*self.batches[i % BATCHES])
        value.backward()
        self.update()
        return value

    def begin_again(self):
        torch.manual_seed(SEED)
        with torch.no_grad():
            for name, value in self.network.state_dict().items():
                value.copy_(self.start[name])
            for state in self.optimizer.state.values():
                for value in state.values():
                    if torch.is_tensor(value):
                        value.zero_()

    def weights_after(self, steps):
        """From the first ones on."""
        self.begin_again()
        for i in range(steps):
            self.step(i)
        return [parameter.detach().clone() for parameter in self.network.parameters()]


def same_bits(training):
    """Whether four steps end in the same weights twice."""
    return all(torch.equal(a, b) for a, b in zip(training.weights_after(4), training.weights_after(4)))


def graph_skips():
    """Why CUDA graphs were not taken, as torch.compile counts it."""
    counters = torch._dynamo.utils.counters["inductor"]
    return int(counters.get("cudagraph_skips", 0))


def spread(values):
    ordered = sorted(values)
    return {"median": ordered[len(ordered) // 2], "min": ordered[0], "max": ordered[-1]}


def round_figures(rounds, batch):
    """rounds: seconds of each step of each round."""
    steps = [1e3 * s for r in rounds for s in r]
    ordered = sorted(steps)
    return {"images_per_second": spread([batch * len(r) / sum(r) for r in rounds]),
            "step_ms": {**spread(steps), "p95": ordered[int(0.95 * (len(ordered) - 1))]},
            "rounds": len(rounds), "steps": len(steps)}


def began(training, clock):
    """(seconds of the first step, its loss); the steps of the warm-up follow."""
    start = time.perf_counter()
    first = float(training.step(0).detach())
    clock.wait()
    seconds = time.perf_counter() - start
    for i in range(WARM_UP):
        training.step(i)
    clock.wait()
    return seconds, first


def set_up(request):
    if request["engine"] != "eager":
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
    set_precision(request["precision"])
    set_determinism(request["deterministic"], strict=True)
    if request["device"] == "cuda":
        torch.cuda.reset_peak_memory_stats()


def first_steps(request, graph, recipe, clock, notes):
    """(training, seconds, loss). Where PyTorch has no deterministic form of something it refuses: that is noted, and
    the mode goes on with those that there are."""
    try:
        training = Training(request, graph, recipe)
        return training, *began(training, clock)
    except RuntimeError as e:
        if not request["deterministic"] or "deterministic" not in str(e):
            raise
        notes.append("refused: " + " ".join(str(e).split())[:200])
    set_determinism(True, strict=False)
    training = Training(request, graph, recipe)
    return training, *began(training, clock)


def measured(request, graph, recipe):
    """The figures of one mode. `request`: engine, precision, layout, deterministic, batch, size, device, and rounds,
    seconds (of a round), compile_only."""
    notes, clock = [], Clock(request["device"])
    set_up(request)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        training, first_seconds, loss = first_steps(request, graph, recipe, clock, notes)
        figures = {"status": "compiled", "first_step_seconds": first_seconds, "notes": notes}
        if request["compile_only"]:
            return figures
        figures.update(timed(training, clock, request), status="measured")
        figures["loss"] = [loss, float(training.step(0).detach())]
        figures["same_bits"] = same_bits(training)
        figures["product_errors"] = product_errors(request)
    if request["engine"] == "graphs":
        notes.append(f"torch.compile left CUDA graphs out {graph_skips()} times")
    figures["parameters"] = count(training.network)
    figures["peak_bytes"] = torch.cuda.max_memory_allocated() if clock.cuda else None
    return figures


def timed(training, clock, request):
    trial = clock.seconds(3, training.step)
    steps = max(3, min(400, int(request["seconds"] / min(trial))))
    return round_figures([clock.seconds(steps, training.step) for _ in range(request["rounds"])], request["batch"])

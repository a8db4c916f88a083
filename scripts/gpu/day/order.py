"""The steps of a day in their order: what is worth most comes first."""
import benchmark_steps as benchmarks
import kernel_steps as kernels
import machine_steps as machine
import pytorch_steps as pytorch
import tool_steps as tools
import training_steps as training


class Step:
    """`seconds`: at most so long, in a whole day and in a rehearsal."""

    def __init__(self, name, seconds, run):
        self.name, self.seconds, self.run = name, seconds, run


def steps():
    yield Step("machine", (20, 15), machine.look_at_machine)
    yield Step("libraries", (20, 10), machine.find_libraries)
    yield Step("info", (30, 20), machine.describe_device)
    yield Step("probes", (40, 40), machine.ask_probes)
    yield Step("PyTorch begins to compile", (10, 10), pytorch.begin_compiling)
    yield Step("device tests", (70, 40), kernels.run_device_tests)
    yield Step("selftest", (40, 30), kernels.run_selftest)
    yield Step("selftest again", (40, 30), kernels.repeat_selftest)
    yield Step("selftest beside emulated", (5, 5), kernels.compare_with_emulated)
    yield Step("curve beside the CPU's", (25, 25), training.compare_curve)
    yield Step("same hash again", (20, 20), training.repeat_curve)
    yield Step("2 ranks on one device", (25, 25), training.share_device)
    yield Step("NCCL of one rank", (20, 20), training.sum_alone)
    yield Step("NCCL of 2 ranks on one device", (20, 20), training.sum_on_one_device)
    yield Step("a rank is killed", (45, 40), training.kill_rank)
    yield Step("photographs", (15, 15), training.train_on_photographs)
    yield Step("learns", (15, 15), training.learn)
    for precision, name in benchmarks.PRECISIONS.items():
        if precision != "exact":
            yield Step(f"curve in {name}", (12, 12), training.compare_rounded(precision))
    for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
        yield Step(f"compute-sanitizer {tool}", (20, 20), tools.sanitizer(tool))
    yield Step("PyTorch has compiled", (60, 15), pytorch.end_compiling)
    for precision, name in benchmarks.PRECISIONS.items():
        yield Step(f"bench step {name}", (45, 20), benchmarks.bench_step(precision))
    for precision, name in benchmarks.PRECISIONS.items():
        yield Step(f"bench kernels {name}", (25, 12), benchmarks.bench_kernels(precision))
    yield Step("PyTorch", (260, 35), pytorch.measure)
    yield Step("ncu", (60, 25), tools.profile)
    for count in (1, 8, 16):
        yield Step(f"{count} CPU" + ("s" if count > 1 else ""), (60, 20), benchmarks.cpu_columns(count))
    yield Step("CPU ranks", (25, 15), benchmarks.cpu_ranks)
    for count in (16, 8, 1):  # the longest last: three steps of one CPU take 50 s
        yield Step(f"{count} CPU" + ("s" if count > 1 else "") + ", a large batch", (90, 45),
                   benchmarks.cpu_columns(count, large=True))

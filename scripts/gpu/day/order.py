"""The steps of a day in their order, what is worth most first, and the seconds that each should take."""
import benchmark_steps as benchmarks
import kernel_steps as kernels
import machine_steps as machine
import profile_steps as profiles
import pytorch_steps as pytorch
import sanitizer_steps as sanitizers
import training_steps as training

MEASURED, ESTIMATED = "measured", "estimated"  # on days with an H100 and an H200, or from steps like it
UNPACKING = 3  # seconds


class Step:
    """`expected`: seconds on a GPU, in a whole day and in a rehearsal. `most`: after these it is ended."""

    def __init__(self, name, run, expected, most, known):
        self.name, self.run, self.expected, self.seconds, self.known = name, run, expected, most, known


def measured(name, run, expected, most):
    return Step(name, run, expected, most, MEASURED)


def estimated(name, run, expected, most):
    return Step(name, run, expected, most, ESTIMATED)


def steps():
    yield from steps_of_the_machine()
    yield from steps_of_results()
    yield from steps_of_speed()
    yield from steps_of_cpus()


def steps_of_the_machine():
    yield measured("machine", machine.look_at_machine, (1, 1), (15, 15))
    yield measured("libraries", machine.find_libraries, (1, 1), (10, 10))
    yield measured("info", machine.describe_device, (1, 1), (20, 20))
    yield estimated("probes", machine.ask_probes, (9, 9), (40, 40))
    yield measured("PyTorch begins to compile", pytorch.begin_compiling, (2, 2), (10, 10))


def steps_of_results():
    yield estimated("device tests", kernels.run_device_tests, (15, 15), (60, 40))
    yield estimated("selftest", kernels.run_selftest, (5, 5), (30, 30))
    yield estimated("selftest again", kernels.repeat_selftest, (5, 5), (30, 30))
    yield measured("selftest beside emulated", kernels.compare_with_emulated, (1, 1), (5, 5))
    yield measured("curve beside the CPU's", training.compare_curve, (1, 1), (20, 20))
    yield measured("same hash again", training.repeat_curve, (1, 1), (20, 20))
    yield measured("2 ranks on one device", training.share_device, (2, 2), (20, 20))
    yield estimated("2 ranks with and without graphs", training.compare_graphs, (3, 3), (25, 25))
    yield estimated("NCCL of one rank", training.sum_alone, (2, 2), (15, 15))
    yield estimated("NCCL of 2 ranks on one device", training.sum_on_one_device, (2, 2), (20, 20))
    yield measured("a rank is killed", training.kill_rank, (3, 3), (35, 35))
    yield measured("photographs", training.train_on_photographs, (1, 1), (15, 15))
    yield measured("learns", training.learn, (1, 1), (15, 15))
    for precision, name in benchmarks.PRECISIONS.items():
        if precision != "exact":
            yield estimated(f"curve in {name}", training.compare_rounded(precision), (2, 2), (12, 12))
    for tool, seconds, most in (("memcheck", 6, 40), ("racecheck", 15, 60), ("initcheck", 3, 15), ("synccheck", 3, 15)):
        yield estimated(f"compute-sanitizer {tool}", sanitizers.sanitizer(tool), (seconds, seconds), (most, 30))


def steps_of_speed():
    yield estimated("PyTorch has compiled", pytorch.end_compiling, (60, 15), (70, 20))
    for precision, name in benchmarks.PRECISIONS.items():
        yield estimated(f"bench step {name}", benchmarks.bench_step(precision), (13, 3), (45, 20))
    for precision in ("bf16", "float"):
        yield estimated(f"bench step resnet50v2 {benchmarks.PRECISIONS[precision]}", benchmarks.bench_resnet(precision),
                        (6, 2), (30, 20))
    for precision, name in benchmarks.PRECISIONS.items():
        yield measured(f"bench kernels {name}", benchmarks.bench_kernels(precision), (2, 2), (20, 10))
    yield estimated("bench kernels resnet50v2 bf16", benchmarks.bench_kernels("bf16", (benchmarks.RESNET, 224)), (4, 4),
                    (20, 10))
    for name in ("dogcat bf16", "dogcat tf32", "resnet50v2 bf16"):
        seconds = (24, 9) if name.startswith("resnet") else (14, 8)
        yield estimated(f"ncu {name}", profiles.profile(name), seconds, (60, 20))
    for twin, expected, most in zip(pytorch.TWINS, ((45, 12), (30, 0), (25, 15)), (70, 45, 45)):
        yield estimated(f"PyTorch {twin.network[0]} {twin.network[1]}", pytorch.measure(twin), expected, (most, 20))
    yield estimated("CIFAR-10", training.learn_cifar, (12, 0), (60, 5))


def steps_of_cpus():
    for count in (1, 8, 16):
        yield estimated(f"{count} CPU" + ("s" if count > 1 else ""), benchmarks.cpu_columns(count),
                        {1: (30, 6), 8: (7, 3), 16: (5, 2)}[count], (60, 20))
    yield estimated("CPU ranks", benchmarks.cpu_ranks, (6, 3), (25, 15))
    for count in (16, 8, 1):  # the longest last: three steps of one CPU take 50 s
        yield estimated(f"{count} CPU" + ("s" if count > 1 else "") + ", a large batch",
                        benchmarks.cpu_columns(count, large=True), {1: (54, 0), 8: (13, 0), 16: (13, 0)}[count], (90, 5))


def expected_seconds(quick):
    return UNPACKING + sum(step.expected[quick] for step in steps())


def table():
    """Steps with the seconds that they should take, and the sum so far, as lines."""
    widest = max(len(step.name) for step in steps())
    yield f"{'step':<{widest}}  expected   so far  at most  in a rehearsal"
    total = UNPACKING
    for step in steps():
        total += step.expected[False]
        yield (f"{step.name:<{widest}}  {step.expected[False]:>6} s  {total:>5} s  {step.seconds[False]:>5} s  "
               f"{step.expected[True]:>5} s  {step.known}")

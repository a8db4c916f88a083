"""Does the product train there? dogcat's curve beside the CPU's, the same bits again, ranks that share a GPU or die."""
import json
import math
import os
import signal
import sys
import time

from context import expect
from results import Cut, Failed, Skipped

# How far a loss may be from the CPU's. What rounded numbers move grows from step to step, so fewer of those are
# compared. On the emulated device they were off by 9e-6 and 6e-5.
TOLERANCES = {"exact": 1e-4, "float": 1e-4, "bf16": 1e-3}
ROUNDED_STEPS = 8
LEARNED = 0.1     # the loss that the last step of `learns` is below: the CPU's is below 0.001
PHOTOGRAPHS = "photographs.ctpack"
STEPS_TO_BE_KILLED_IN = 5_000  # more than it makes until then, and not endless
SECONDS_TO_END = 20  # the others of a rank that was killed


def lines_of(folder):
    try:
        with open(os.path.join(folder, "metrics.jsonl")) as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1]]
    except FileNotFoundError:
        return []


def command(expected, folder, steps=None, precision="exact"):
    return ["train", *expected["words"], "--steps", str(steps or expected["steps"]), "--backend", "cuda", "--precision",
            precision, "--log-every", "1", "--limit-val", "0", "--verbose", "0", "--out", folder]


def train(day, name, expected, ranks=0, **options):
    """(losses of the steps, hash of the weights)"""
    folder = day.file(name)
    expect(day.cputrain(*command(expected, folder, **options), ranks=ranks), "the training")
    lines = lines_of(folder)
    return [line["loss"] for line in lines if line["type"] == "step"], lines[-1]["weights_hash"]


def distance(losses, others):
    """The largest difference of a step's loss, as a part of it, and the step."""
    if len(losses) != len(others):
        raise Failed(f"{len(losses)} steps, and {len(others)} were to be")
    strange = [step + 1 for step, loss in enumerate(losses) if not math.isfinite(loss)]
    if strange:
        raise Failed(f"the loss of step {strange[0]} is {losses[strange[0] - 1]}")
    return max((abs(a - b) / abs(b), step + 1) for step, (a, b) in enumerate(zip(losses, others)))


def near(losses, others, whose, precision="exact"):
    largest, step = distance(losses, others)
    if not largest <= TOLERANCES[precision]:
        raise Failed(f"the loss of step {step} is {largest:.1e} from {whose}, and may be {TOLERANCES[precision]:.0e}")
    return f"{len(losses)} losses within {largest:.1e} of {whose}"


def curve(day, name=None):
    curves = day.bundle.read_json("expected", "curves.json")
    if not curves:
        raise Skipped("the pack has no curves of the CPU")
    found = curves[name or ("emulated" if day.emulated else "gpu")]
    return {**found, "words": [day.bundle.path(word) if word == PHOTOGRAPHS else word for word in found["words"]]}


def facts(day):
    return day.results.facts.setdefault("training", {})


def compare_curve(day):
    expected = curve(day)
    losses, weights = train(day, "curve", expected)
    facts(day).update({"losses": losses, "weights_hash": weights, "cpu": expected["losses"]})
    return near(losses, expected["losses"], "the CPU's")


def repeat_curve(day):
    before = facts(day).get("weights_hash")
    if not before:
        raise Skipped("there is no curve to compare with")
    _, weights = train(day, "again", curve(day))
    if weights != before:
        raise Failed(f"the weights' hash is {weights}, and was {before}")
    return f"the weights have the hash {weights} again"


def compare_rounded(precision):
    """The first steps of the curve in another precision, twice."""
    def run(day):
        expected = curve(day)
        steps = min(expected["steps"], ROUNDED_STEPS)
        (losses, weights), (_, again) = (train(day, f"{precision}-{turn}", expected, steps=steps, precision=precision)
                                         for turn in ("first", "second"))
        facts(day)[precision] = {"losses": losses, "weights_hash": weights}
        if again != weights:
            raise Failed(f"the weights' hash is {again}, and was {weights}")
        text = near(losses, expected["losses"][:steps], "the CPU's", precision)
        return f"{text}; the weights have the hash {weights} again"
    return run


def share_device(day):
    expected = curve(day)
    losses, _ = train(day, "ranks", expected, ranks=2)
    of_one_rank = facts(day).get("losses")
    return near(losses, of_one_rank or expected["losses"], "one rank's" if of_one_rank else "the CPU's")


def compare_graphs(day):
    """Two ranks that sum by way of the host: an event in a graph tells them when gradients are final. One that came too
    early would change bits, and might change losses by less than they may differ."""
    hashes = {}
    for name, words in (("with graphs", []), ("without", ["--no-graph"])):
        folder = day.file("graphs-" + name.replace(" ", "-"))
        words = [*command(curve(day), folder, precision="bf16"), "--allreduce", "staged", *words]
        expect(day.cputrain(*words, ranks=2), f"the training {name}")
        hashes[name] = lines_of(folder)[-1]["weights_hash"]
    facts(day)["graphs"] = hashes
    if len(set(hashes.values())) > 1:
        raise Failed("two ranks have other weights " + ", ".join(f"{name} ({text})" for name, text in hashes.items()))
    return f"two ranks have weights of the hash {hashes['without']} with graphs and without"


def train_with_nccl(day, folder, ranks=0):
    """Done of the curve's training. Python's packages for GPUs bring a library where the system has none."""
    names = [os.path.join(path, "nvidia", "nccl", "lib") for path in sys.path]
    folders = [name for name in names if os.path.exists(os.path.join(name, "libnccl.so.2"))]
    variables = {"NCCL_MULTI_RANK_GPU_ENABLE": "1",
                 "LD_LIBRARY_PATH": os.pathsep.join([day.environment["LD_LIBRARY_PATH"], *folders])}
    done = day.cputrain(*command(curve(day), folder), "--allreduce", "nccl", ranks=ranks, variables=variables)
    if done.code == 2 and "NCCL is not there" in done.text:
        raise Skipped("this machine has no libnccl.so.2")
    if done.code == 2 and day.emulated and "emulated devices have no NCCL" in done.text:
        raise Skipped("emulated devices have no NCCL")
    return done


def sum_alone(day):
    """A communicator of one rank, whose sums are in the graph of each step: nothing changes."""
    folder = day.file("nccl")
    expect(train_with_nccl(day, folder), "the training")
    weights, before = lines_of(folder)[-1]["weights_hash"], facts(day).get("weights_hash")
    if before and weights != before:
        raise Failed(f"the weights' hash is {weights}, and was {before} without NCCL")
    return f"the weights have the hash {weights}" + (" again" if before else "")


def sum_on_one_device(day):
    """Versions before 2.30 refuse it, which is to be said before the training begins; others sum."""
    folder = day.file("nccl-ranks")
    done = train_with_nccl(day, folder, ranks=2)
    if done.code == 2 and "share a GPU" in done.text:
        return "refused before the training, with the remedy"
    expect(done, "the training")
    losses = [line["loss"] for line in lines_of(folder) if line["type"] == "step"]
    return near(losses, facts(day).get("losses") or curve(day)["losses"], "one rank's")


def learn(day):
    """With the recipe's own rule. Small differences grow in it, so only the outcome is compared."""
    if day.emulated:
        raise Skipped("the emulated device takes minutes for it")
    expected = curve(day, "recipe")
    losses, _ = train(day, "learns", expected)
    facts(day)["recipe"] = losses
    if not losses[-1] < LEARNED:
        raise Failed(f"the loss is {losses[-1]:.3g} after {len(losses)} steps; the CPU's {expected['losses'][-1]:.3g}")
    return f"the loss fell from {losses[0]:.3f} to {losses[-1]:.2g} in {len(losses)} steps"


def train_on_photographs(day):
    """Packed images, so that what reads files is there, too."""
    if day.emulated:
        raise Skipped("the emulated device takes minutes for it")
    expected = curve(day, "photographs")
    losses, _ = train(day, "photographs", expected)
    return near(losses, expected["losses"], "the CPU's")


def learn_cifar(day):
    """A ResNet as users train it, on as many images of CIFAR-10 as the pack has room for."""
    if day.emulated:
        raise Skipped("the emulated device takes hours for it")
    about = day.bundle.read_json("expected", "cifar10.json")
    if not about:
        raise Skipped("the pack has no images of CIFAR-10")
    folder = day.file("cifar")
    expect(day.cputrain("train", "--data", "cifar10:" + day.bundle.path("cifar10"), *about["words"], "--backend",
                        "cuda", "--precision", "bf16", "--verbose", "0", "--out", folder), "the training")
    epochs = [line for line in lines_of(folder) if line["type"] == "epoch"]
    facts(day)["cifar10"] = {**about, "epochs": epochs}
    first, last = epochs[0]["loss"], epochs[-1]["loss"]
    if not last < min(first, math.log(about["classes"])):
        raise Failed(f"the mean loss of epoch {len(epochs)} is {last:.3f}; it was {first:.3f}, and guessing has "
                     f"{math.log(about['classes']):.3f}")
    rate, size = epochs[-1]["images_per_second"], about["image_size"]
    day.results.figure(f"{about['model']} {size}x{size} bf16, CIFAR-10, epoch {len(epochs)}", "images/s", rate)
    at_first, at_last = about["cpu"]
    return (f"the mean loss fell from {first:.3f} to {last:.3f} in {len(epochs)} epochs of {about['train']:,} images, "
            f"a CPU's from {at_first:.3f} to {at_last:.3f}; {100 * epochs[-1]['val_accuracy']:.1f} % of {about['val']:,} "
            f"others are right; {rate:,.0f} images/s")


def kill_rank(day):
    folder = day.file("killed")
    running = day.start([*day.launcher(2), day.program(), *command(curve(day), folder, steps=STEPS_TO_BE_KILLED_IN)])
    try:
        wait_for_steps(day, running, folder)
        rank = rank_of(running, 1)
        os.kill(rank, signal.SIGKILL)
        began = time.monotonic()
        ended = running.wait(min(SECONDS_TO_END, day.left_of_step()))
        seconds = time.monotonic() - began
        left = len(running.members())
    finally:
        done = running.end()
    if not ended:
        kind = Failed if seconds >= SECONDS_TO_END else Cut
        raise kind(f"the launcher still ran {seconds:.0f} s after a rank was killed")
    if left:
        raise Failed(f"{left} processes were left when the launcher had ended")
    if done.code == 0:
        raise Failed("the launcher ended with 0 though a rank was killed")
    return f"all ended {seconds:.1f} s after one of 2 ranks was killed, with {done.code}"


def wait_for_steps(day, running, folder):
    while sum(line["type"] == "step" for line in lines_of(folder)) < 2:
        if running.wait(0.2):
            raise Failed("the training ended before a rank was killed")
        if day.left_of_step() < 1:
            raise Cut("the training made no 2 steps in time")


def rank_of(running, rank):
    wanted = f"OMPI_COMM_WORLD_RANK={rank}".encode()
    found = [process for process, environment in running.members().items() if wanted in environment.split(b"\0")]
    if not found:
        raise Failed(f"no process of rank {rank} was found")
    return min(found)

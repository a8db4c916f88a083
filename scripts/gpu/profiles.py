"""Which launches of a step ncu looks at: the last ones of backward and the first ones of the next forward pass."""
import re
from dataclasses import dataclass

import kernel_waits
import plan
import predictions
import speed
import step

PRODUCTS_AND_POOLS = "gemm|pool|first_block"
ALL_FAMILIES = "gemm|pool|normalize|measure|sum_slopes|finish|add_slices"


@dataclass(frozen=True)
class Profile:
    """`before`, `after`: launches of backward and of forward, among those whose kernels the expression finds."""
    model: str
    size: int
    batch: int
    precision: str  # as tables call it
    kernels: str
    before: int
    after: int

    def words(self):
        word = {"tf32": "float"}.get(self.precision, self.precision)
        return [*predictions.words_of((self.model, self.size)), "--data", f"synthetic:{2 * self.batch}", "--batch",
                str(self.batch), "--precision", word]

    def count(self):
        return self.before + self.after


PROFILES = {
    "dogcat bf16": Profile("dogcat", 256, 128, "bf16", PRODUCTS_AND_POOLS, 9, 5),
    "dogcat tf32": Profile("dogcat", 256, 128, "tf32", PRODUCTS_AND_POOLS, 9, 5),
    "resnet50v2 bf16": Profile("resnet50v2", 224, 128, "bf16", ALL_FAMILIES, 14, 10)}


def in_order(network):
    """All launches of a pass, but for the update."""
    yield from (launch for operation in network.operations for launch in operation.forward)
    for operation in reversed(network.operations):
        yield from operation.weights
        yield from operation.data


def family_of(launch):
    """As day/kernel_waits.py calls what ncu saw."""
    if launch.plan is None:
        return kernel_waits.family_of(launch.kernel)
    return f"gemm {launch.kernel} {launch.plan.tile}"


def seen(profile, network):
    """(launches to skip, families of those that are looked at)"""
    kernels = [family_of(launch) for launch in in_order(network) if re.search(profile.kernels, name_of(launch))]
    return len(kernels) - profile.before, [*kernels[-profile.before:], *kernels[:profile.after]]


def name_of(launch):
    """The function, without what its template is given."""
    return "gemm" if launch.plan else launch.kernel.partition("<")[0]


def foreseen(profile, model):
    """What a day needs to know. `model`: that of `cputrain info --json -`."""
    figures = speed.read_hardware()
    skip, families = {}, {}
    for name in figures["gpus"]:
        gpu = speed.Gpu(name, figures, speed.INSTRUCTIONS)
        network = step.networks_of(gpu, model, profile.precision, profile.batch)[0]
        skip[name], kernels = seen(profile, network)
        families[name] = sorted(set(kernels))
    return {"words": profile.words(), "kernels": profile.kernels, "count": profile.count(),
            "skip": skip, "families": families}

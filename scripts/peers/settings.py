"""Settings that the frameworks' documents advise for training on CPUs, as axes of which each has some choices.

README.md says which page advises what. The first choice of every axis is what a framework does as it is installed.
"""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Choice:
    name: str
    environment: dict = field(default_factory=dict)  # {cpus} stands for the numbers of the CPUs: 0 1
    options: dict = field(default_factory=dict)  # of the job (job.py)
    preload: str = ""  # one of environments.LIBRARIES


@dataclass(frozen=True)
class Axis:
    name: str
    choices: tuple


# Large arrays of malloc are given back to the system at every free, and fetched page by page again.
KEEPS_MEMORY = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000"
JEMALLOC = ("oversize_threshold:1,background_thread:true,metadata_thp:auto,"
            "dirty_decay_ms:9000000000,muzzy_decay_ms:9000000000")
GLIBC = Choice("malloc")
GLIBC_KEEPS = Choice("malloc that keeps memory", {"GLIBC_TUNABLES": KEEPS_MEMORY})
TCMALLOC = Choice("tcmalloc", preload="tcmalloc")
JEMALLOC_KEEPS = Choice("jemalloc", {"MALLOC_CONF": JEMALLOC}, preload="jemalloc")

TENSORFLOW = (
    Axis("kernels", (Choice("oneDNN as installed"),
                     Choice("oneDNN", {"TF_ENABLE_ONEDNN_OPTS": "1"}),
                     Choice("no oneDNN", {"TF_ENABLE_ONEDNN_OPTS": "0"}))),
    Axis("compiler", (Choice("tf.function"),
                      Choice("jit_compile", options={"jit_compile": True}),
                      Choice("XLA's clusters", {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"}))),
    Axis("memory", (GLIBC, GLIBC_KEEPS,
                    Choice("malloc that keeps huge pages",
                           {"GLIBC_TUNABLES": KEEPS_MEMORY + ":glibc.malloc.hugetlb=1"}),
                    TCMALLOC, JEMALLOC_KEEPS)),
    Axis("threads", (Choice("inter-op of all CPUs"), Choice("inter-op of one", options={"inter_op": 1}))))

BOUND_GNU = {"OMP_PROC_BIND": "CLOSE", "OMP_SCHEDULE": "STATIC", "GOMP_CPU_AFFINITY": "{cpus}"}
BOUND_INTEL = {"KMP_AFFINITY": "granularity=fine,compact,1,0", "KMP_BLOCKTIME": "1"}
PYTORCH = (
    Axis("layout", (Choice("channels-first"), Choice("channels-last", options={"channels_last": True}),
                    Choice("compiled channels-first", options={"compile": True}),
                    Choice("compiled channels-last", options={"channels_last": True, "compile": True}))),
    Axis("memory", (GLIBC, GLIBC_KEEPS,
                    Choice("malloc that keeps huge pages",
                           {"GLIBC_TUNABLES": KEEPS_MEMORY, "THP_MEM_ALLOC_ENABLE": "1"}),
                    TCMALLOC, JEMALLOC_KEEPS)),
    Axis("threads", (Choice("libgomp"), Choice("bound libgomp", BOUND_GNU),
                     Choice("bound libiomp5", BOUND_INTEL, preload="libiomp5"))),
    Axis("kernels", (Choice("oneDNN"), Choice("no oneDNN", options={"mkldnn": False}))))

AXES = {"tensorflow": TENSORFLOW, "pytorch": PYTORCH}


def as_installed(axes):
    return {axis.name: axis.choices[0].name for axis in axes}


def choices_of(axes, setting):
    return [next(c for c in axis.choices if c.name == setting[axis.name]) for axis in axes]


def options_of(axes, setting):
    """What the job says of them."""
    return {key: value for choice in choices_of(axes, setting) for key, value in choice.options.items()}


def environment_of(axes, setting, cpus, library):
    """Variables of this setting; `library` finds a library that is loaded first, or raises."""
    numbers = " ".join(map(str, cpus))
    variables, preloaded = {}, []
    for choice in choices_of(axes, setting):
        variables.update({k: v.format(cpus=numbers) for k, v in choice.environment.items()})
        if choice.preload:
            preloaded.append(library(choice.preload))
    if preloaded:
        variables["LD_PRELOAD"] = ":".join(preloaded)
    return variables


def trials_of(axes, attempt):
    """All trials. `attempt` takes a setting and returns a trial, in which `failed` has the reason or
    `images_per_second` the steps. Axis by axis every choice is tried with the best of the axes before: so each is
    tried once, where all combinations would be hundreds."""
    best = dict(attempt(as_installed(axes)), axis="as installed")
    trials = [best]
    for axis in axes:
        tried = [dict(attempt({**best["setting"], axis.name: choice.name}), axis=axis.name)
                 for choice in axis.choices[1:]]
        trials += tried
        best = max([best, *tried], key=speed)
    return trials


def best_of(trials):
    """The setting of the quickest trial, or None where all failed."""
    best = max(trials, key=speed)
    return None if "failed" in best else best["setting"]


def speed(trial):
    """That of its quickest step: what disturbs the machine can only take time."""
    return 0 if "failed" in trial else max(trial["images_per_second"])

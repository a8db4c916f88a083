"""All tables of the machine at hand, one after the other: first a plan with hours, then the parts that are not there yet.

scripts/tables all OUT --data DIR [--plan] [--only PART,...] [--whole-epochs] [--cifar DIR] [--about TEXT] runs it.
OUT/all.json says what is finished. The same command goes on there, as long as ./cputrain is of the same commit. A part that fails is told
at the end, and the others are made.
"""
import argparse
import contextlib
import dataclasses
import glob
import json
import os
import shlex
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import machine as machine_page
import origin
import runs

IMAGES = 22500  # of an epoch of dogcat
BATCHES = [128, 256, 512, 1024]
SETTLED = 4  # steps before those that a cell times
STARTS = 15  # seconds of a training that are no steps
NETWORKS = [  # (network, its image size, flags of its epoch, batch), as their sources have them
    ("nature7", 299, ["--classes", "10", "--data", "synthetic:5556"], 64),
    ("chips", 500, ["--classes", "2", "--data", "synthetic:1112"], 64),
    ("vgg16", 128, ["--image-size", "128", "--classes", "10", "--data", "synthetic:5556"], 32),
    ("resnet50v2", 128, ["--image-size", "128", "--classes", "10", "--data", "synthetic:55556"], 256),
    ("resnet101v2", 128, ["--image-size", "128", "--classes", "10", "--data", "synthetic:55556"], 256),
    ("resnet152v2", 128, ["--image-size", "128", "--classes", "10", "--data", "synthetic:55556"], 256)]
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
LONG = 1.0  # hours from which on whole epochs are measured on request alone


def cpus_of(cores):
    """1, 2, 4, ... and all."""
    return sorted({2**i for i in range(cores.bit_length()) if 2**i <= cores} | {cores})


@dataclasses.dataclass
class Machine:
    cores: int
    rate: float  # images/s of dogcat on one core
    images: int  # to train on in DIR
    precisions: list
    work: dict  # of NETWORKS: what an image costs, by one of dogcat

    def hours(self, images_by_cpus, trainings):
        """Of steps with so many images on so many CPUs each, and of starting so many trainings."""
        return (sum(n / self.rate / cpus for cpus, n in images_by_cpus) + STARTS * trainings) / 3600

    def grid(self, images, repeats=1, precisions=1):
        """A sweep with so many images in a cell, whatever its CPUs."""
        cpus = cpus_of(self.cores)
        times = repeats * precisions
        return self.hours([(n, images * times) for n in cpus], len(cpus) * times)


def small(m, images):
    """Images at 64x64 pixels cost a fifteenth of those at 256x256."""
    return images / 15


def parts(m, a):
    """(name, what it makes, commands, hours, why it is left out; empty: it is not)"""
    tables = ["scripts/tables", *(["--unclean"] if a.unclean else [])]
    data = ["--data", a.data, *(["--about", a.about] if a.about else [])]
    precisions = ["--precision", ",".join(m.precisions)]
    all_cpus = ",".join(map(str, cpus_of(m.cores)))

    def of_data(part, *more):
        return [[*tables, part, a.out, *data, *more]]

    whole_hours = m.grid(IMAGES, 1, len(m.precisions))
    yield ("benchmarks", "sums, input, steps of trained and untrained weights", of_data("benchmarks"),
           7 * 150 / 3600 + m.hours([(1, 7 * 2 * 2 * len(m.precisions) * 600), (m.cores, 2 * m.images)], 1), "")
    yield ("seconds", "seconds by CPUs and batch, three repeats",
           [[*tables, "measured", a.out, "--repeat", "3", "--steps", "4", *precisions]],
           sum(m.grid((4 + SETTLED) * batch, 3, len(m.precisions)) for batch in BATCHES), "")
    yield ("whole-epochs", "whole epochs with start-up and evaluation, batch 1024",
           [[*tables, "whole-epochs", a.out, *precisions]], whole_hours,
           f"it is long: --whole-epochs adds it ({whole_hours:.1f} h)" if whole_hours > LONG and not a.whole_epochs else "")
    yield ("weak", "weak scaling: 32 images for each CPU", [[*tables, "weak", a.out]],
           3 * m.hours([(1, (4 + SETTLED) * 32)] * len(cpus_of(m.cores)), len(cpus_of(m.cores))), "")
    yield ("networks", "seconds by CPUs of " + ", ".join(network for network, *_ in NETWORKS), [[*tables, "networks", a.out]],
           sum(m.grid((2 + SETTLED) * batch * m.work.get(network, 1)) for network, _, _, batch in NETWORKS), "")
    yield ("precisions", "float beside bf16: curves, steps", of_data("precisions"),
           m.hours([(m.cores, 10 * 20 * small(m, m.images)), (1, 7 * 2 * 3 * 400)], 40),
           "" if "bf16" in m.precisions else "this processor has no instructions for bf16")
    yield ("same-hash", "weights and losses by ranks", of_data("same-hash"), m.hours([(1, 7 * 6 * 128 / 7)], 7), "")
    yield ("accuracy", "accuracy by batch and CPUs, five seeds", of_data("accuracy"),
           m.hours([(1, 4 * 5 * 20 * small(m, m.images)), (2, 4 * 5 * 20 * small(m, m.images))], 40), "")
    yield ("recipes", "accuracy of batch 1024 at equal steps, scaled rates, warm-up", of_data("recipes"),
           m.hours([(m.cores, 5 * 20 * (5 + 2 * 6) * small(m, m.images))], 35), "")
    yield ("curve", "an epoch of ResNet50V2 on CIFAR-10 beside the curve in print", [[*tables, "curve", a.out, "--data", a.cifar]],
           m.hours([(m.cores, 60000 * m.work.get("resnet50v2", 1))], 1),
           "" if a.cifar else "no --cifar DIR: CIFAR-10's official binary files")
    installed = glob.glob(os.path.join(a.peers, "*", "bin", "python*"))
    yield ("peers", "TensorFlow and PyTorch by CPUs at batch 128, trained and untrained",
           [["scripts/compare_peers", "--data", a.data, "--batch", "128", "--threads", all_cpus, *precisions,
             "--epochs", "2,0", "--out", a.out], [*tables, "seconds-table", a.out]],
           m.hours([(n, 4 * 2 * len(m.precisions) * (22 * 3 + 7 * 10) * 128) for n in cpus_of(m.cores)], 400),
           "" if installed or a.only and "peers" in a.only else
           "neither is installed: scripts/compare_peers does that (8 GB), or --only peers")


def measured_machine(a):
    """The speed of this machine, from a step of half a minute."""
    print("scripts/tables: a short step says how long all of it takes ...", file=sys.stderr, flush=True)
    step = json.loads(runs.run(["./cputrain", "bench", "step", "--threads", "1", "--batch", "32", "--repeat", "3",
                                "--json", "-"]))
    data = json.loads(runs.run(["./cputrain", "train", "--dry-run", "--data", os.path.join(a.data, "train"), "--image-size",
                                "64", "--batch", "8", "--json", "-"]))
    flops = {network: json.loads(runs.run(["./cputrain", "info", "--model", network, "--image-size", str(size), "--json",
                                           "-"]))["model"]["training_flops_per_image"]
             for network, size in [("dogcat", 256)] + [(network, size) for network, size, *_ in NETWORKS]}
    return {"images_per_second": step["images_per_second"]["median"], "images": data["steps_per_epoch"] * 8,
            "work": {network: value / flops["dogcat"] for network, value in flops.items()}}


def read_state(a):
    """What OUT/all.json has, or a new one. Ends with 2 where it is of another commit."""
    path, commit = os.path.join(a.out, "all.json"), origin.program_commit()
    if os.path.exists(path):
        with open(path) as f:
            state = json.load(f)
        if state["parts"] and state["commit"] == commit:
            return path, state
        if state["parts"]:
            print(f"scripts/tables: {path} was begun by commit {state['commit']}, ./cputrain is of {commit} (one page would "
                  "have figures of two programs); name another OUT, or build that commit", file=sys.stderr)
            sys.exit(2)
    return path, {"generated_by": "scripts/tables all", "commit": commit, "kernels": origin.kernels_of(commit),
                  "machine": measured_machine(a), "parts": {}}


def write_state(path, state):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w") as f:
        json.dump(state, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)


def length(hours):
    return f"{60 * hours:.0f} min" if hours < 1 else f"{hours:.1f} h"


def say_plan(todo, done, left_out):
    total = sum(hours for _, _, _, hours, _ in todo)
    lines = [f"All of it takes about {length(total)} more, while nothing else may run:"]
    lines += [f"  {name:13} {'done' if name in done else length(hours):>8}  {what}"
              for name, what, _, hours, _ in sorted(todo + done_rows(done), key=lambda row: row[0] not in done)]
    lines += [f"  {name:13} {'-':>8}  {what}; left out: {why}" for name, what, _, _, why in left_out]
    print("\n".join(lines), file=sys.stderr, flush=True)
    return total


def done_rows(done):
    return [(name, row["what"], [], 0, "") for name, row in done.items()]


def run_to_its_end(command):
    """Its exit code. A signal that ends this process ends all that the command has started, too."""
    child = subprocess.Popen(command, cwd=runs.ROOT, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        return child.wait()
    except BaseException:
        for number in (*SIGNALS, signal.SIGINT):  # a second one shall not leave it alone
            signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        child.wait()
        raise


def make(part, number, of, left):
    """Seconds that it took; None where it failed."""
    name, _, commands, hours, _ = part
    print(f"== {number} of {of}: {name}, about {length(hours)}; then about {length(left)} are left", file=sys.stderr,
          flush=True)
    start = time.monotonic()
    for command in commands:
        code = run_to_its_end(command)
        if code in (-2, 130):
            raise KeyboardInterrupt
        if code:
            print(f"== {name}: {shlex.join(command)} ended with {code}; the others go on", file=sys.stderr, flush=True)
            return None
    return time.monotonic() - start


def main():
    if sys.argv[1:] == ["--networks"]:  # for scripts/tables
        print("\n".join(shlex.join([network, *flags, "--batch", str(batch)]) for network, _, flags, batch in NETWORKS))
        return
    p = runs.arguments(__doc__.splitlines()[0])
    p.set_defaults(about="")
    p.add_argument("--plan", action="store_true", help="say what would be made, and how long it takes")
    p.add_argument("--only", type=lambda text: text.split(","), help="of these parts alone")
    p.add_argument("--whole-epochs", action="store_true", help="however long they take")
    p.add_argument("--cifar", default="", help="folder of CIFAR-10's official binary files, for the part `curve`")
    p.add_argument("--unclean", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--peers", default=os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                                                   "cputrain", "peers"), help=argparse.SUPPRESS)
    a = p.parse_args()
    path, state = read_state(a)
    found = state["machine"]
    machine = Machine(len(os.sched_getaffinity(0)), found["images_per_second"], found["images"], runs.precisions(),
                      found["work"])
    rows = list(parts(machine, a))
    names = [row[0] for row in rows]
    unknown = [name for name in a.only or [] if name not in names]
    if unknown:
        p.error(f"--only {unknown[0]}: the parts are {', '.join(names)}")
    wanted = [row for row in rows if not a.only or row[0] in a.only]
    todo = [row for row in wanted if not row[4] and row[0] not in state["parts"]]
    left = say_plan(todo, state["parts"], [row for row in wanted if row[4]])
    if a.plan:
        return
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    machine_page.make_page(a.out)
    failed = []
    for number, row in enumerate(todo, 1):
        left -= row[3]
        seconds = make(row, number, len(todo), left)
        if seconds is None:
            failed.append(row[0])
            continue
        state["parts"][row[0]] = {"what": row[1], "seconds": round(seconds)}
        write_state(path, state)
    if failed:
        sys.exit(f"scripts/tables: not made: {', '.join(failed)}; the same command tries them again")


if __name__ == "__main__":
    main()

"""One network with one batch of photographs in cputrain and in other frameworks: trials of settings, then rounds."""
import hashlib
import json
import os
import shutil
import statistics
import struct
import sys
import tempfile

import environments
import settings
from running import Failed, cpus_for, run

PEERS = os.path.dirname(os.path.abspath(__file__))
BATCHES = {"dogcat": 128, "nature7": 64, "chips": 32, "resnet50v2": 64, "vgg16": 32}
SIZES = {"resnet50v2": 128, "vgg16": 128}  # the others: the model's own
TOLERANCE = {"float": 1e-3, "bf16": 0.1}  # of a loss, as a part of it
OF_A_CHANGE = 0.1  # the same of what a step changes in it
RATE_OF_TRIALS = 0.1  # of the recipe's: a loss after one step then says what its gradients were


def say(text):
    print(text, file=sys.stderr, flush=True)


def trained_weights(a, model, size, epochs):
    """Weights after so many epochs on the data (0: after one step), kept for the next comparison."""
    if a.weights:
        return a.weights
    what = [model, size, os.path.abspath(a.data), epochs, a.train_images]
    key = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]
    path = os.path.join(a.cache, "weights", f"{model}-{size}-{key}.safetensors")
    if os.path.exists(path):
        return path
    say(f"Training {model} for {text_of_epochs(epochs)} ...")
    with tempfile.TemporaryDirectory() as folder:
        run([a.program, "train", "--model", model, "--image-size", str(size), "--data", a.data, "--batch", "32",
             *(["--epochs", str(epochs)] if epochs else ["--steps", "1"]), "--limit-val", "0", "--out", folder + "/run",
             *(["--limit-train", str(a.train_images)] if a.train_images else [])])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.move(folder + "/run/weights.safetensors", path + ".new")
        os.replace(path + ".new", path)
    return path


def text_of_epochs(epochs):
    return f"{epochs} epoch{'' if epochs == 1 else 's'}" if epochs else "1 step"


def flags_of_images(weights):
    """What `data pack` needs, so that images have the form that the weights were trained on: `eval` refuses others.
    Weights of earlier versions name no fit, or nothing; their bilinear was the plain one."""
    with open(weights, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        said = json.loads(f.read(size)).get("__metadata__", {})
    if "fit" not in said and said.get("resize", "bilinear") == "bilinear":
        said["resize"] = "bilinear-plain"
    return [word for name in ("resize", "fit", "exif") if name in said for word in (f"--{name}", said[name])]


def digest_of(paths):
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as f:
            digest.update(f.read())
    return digest.hexdigest()


class Comparison:
    def __init__(self, a, model, epochs, pythons, versions, folder):
        self.a, self.model, self.epochs, self.pythons, self.versions = a, model, epochs, pythons, versions
        self.folder = folder
        self.batch = a.batch or BATCHES[model]
        self.size = a.image_size or SIZES.get(model) or self.info()["layers"][0]["output"][0]
        self.weights = trained_weights(a, model, self.size, epochs)
        self.trial_batch = min(a.trial_batch or self.batch, self.batch)
        packed = [self.pack(batch) for batch in sorted({self.trial_batch, self.batch}, reverse=True)][0]
        self.inputs = digest_of([self.weights, self.images(self.batch), self.images(self.trial_batch)])
        self.parameters = self.info("--image-size", str(self.size), "--classes",
                                    str(len(packed["classes"])))["parameters"]
        self.without_dropout = os.path.join(folder, f"{model}.json")
        run([a.program, "export", "--model", model, "--model-file", self.without_dropout])
        with open(self.without_dropout) as f:
            network = json.load(f)
        self.recipe = network["recipe"]
        self.normalizes = any(layer["type"] == "batch_norm" for layer in network["layers"])
        for layer in network["layers"]:
            if layer["type"] == "dropout":
                layer["rate"] = 0.0
        with open(self.without_dropout, "w") as f:
            json.dump(network, f)

    def pack(self, batch):
        """Packs photographs of a batch, and returns what cputrain finds there."""
        path = self.images(batch)
        run([self.a.program, "data", "pack", self.a.data, path, "--image-size", str(self.size), "--limit-train",
             str(batch), "--limit-val", "0", "--balanced", *flags_of_images(self.weights)])
        found = json.loads(run([self.a.program, "eval", "--weights", self.weights, "--data", path,
                                "--validation-split", "0", "--json", "-"])[0])
        if found["images"] != batch:
            raise Failed(f"--data {self.a.data}: {found['images']} photographs for a batch of {batch}; take "
                         f"--batch {found['images']} or more photographs")
        return found

    def images(self, batch):
        return os.path.join(self.folder, f"{self.model}-{self.epochs}-{batch}.ctpack")

    def info(self, *words):
        return json.loads(run([self.a.program, "info", "--model", self.model, *words, "--json", "-"])[0])["model"]

    def recipe_of(self, trial):
        rate = self.recipe["learning_rate"] * (RATE_OF_TRIALS if trial else 1)
        return {**self.recipe, "learning_rate": rate}

    def two_steps(self, cpus, precision, batch):
        """(losses before two steps like those of a trial, peak memory) of cputrain."""
        out = os.path.join(self.folder, "run")
        peak = run([self.a.program, "train", "--model", self.without_dropout, "--image-size", str(self.size),
                    "--data", self.images(batch), "--validation-split", "0", "--weights", self.weights,
                    "--batch", str(batch), "--augment", "none",
                    "--lr", repr(self.recipe_of(trial=True)["learning_rate"]), "--threads", str(len(cpus)),
                    "--precision", precision, "--steps", "2", "--limit-val", "0",
                    "--out", out, "--overwrite"], cpus)[1]
        with open(os.path.join(out, "metrics.jsonl")) as f:  # an epoch is one step
            lines = [json.loads(line) for line in f]
        return [line["loss"] for line in lines if line["type"] == "epoch"], peak

    def ours(self, cpus, precision):
        bench = json.loads(run([self.a.program, "bench", "step", "--model", self.model, "--image-size",
                                str(self.size), "--data", self.images(self.batch), "--validation-split", "0",
                                "--weights", self.weights, "--batch", str(self.batch), "--augment", "none",
                                "--threads", str(len(cpus)), "--precision", precision,
                                "--repeat", str(self.a.steps), "--json", "-"], cpus)[0])
        each = ("min", "median", "max")
        told = ("name", "algorithm", "density", "gradient_density")
        return {"images_per_second": [bench["every_step"][k] for k in each],  # disturbed ones included, as of others
                "cpu_seconds_per_image": [bench["cpu_seconds_per_image"][k] for k in each],
                **{k: bench[k] for k in ("gflops", "limit", "fraction_of_peak", "density", "threads")},
                "layers": [{k: layer.get(k) for k in told} for layer in bench["layers"]]}

    def peer(self, framework, setting, cpus, precision, trial):
        axes, python = settings.AXES[framework], self.pythons[framework]

        def library(name):
            path = environments.library(name, python, self.a.cache)
            if not path:
                file, packages = environments.LIBRARIES[name]
                raise Failed(f"there is no {file} ({' or '.join(packages) or 'intel-openmp of PyPI'})")
            return path

        batch = self.trial_batch if trial else self.batch
        job = {"weights": self.weights, "images": self.images(batch), "batch": batch,
               "optimizer": self.recipe_of(trial), "precision": precision, "threads": len(cpus), "trial": trial,
               "warm_up": 1 if trial else self.a.warm_up, "steps": self.a.trial_steps if trial else self.a.steps,
               "options": settings.options_of(axes, setting)}
        path = os.path.join(self.folder, "job.json")
        with open(path, "w") as f:
            json.dump(job, f)
        variables = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(self.folder, "inductor"),
                     **settings.environment_of(axes, setting, cpus, library)}
        out, peak = run([python, "-B", os.path.join(PEERS, framework + "_steps.py"), path], cpus, variables,
                        self.a.trial_seconds if trial else None)
        result = json.loads(out.strip().splitlines()[-1])
        version = result.pop("version")
        if self.versions.setdefault(framework, version) != version:  # one table is of one version
            sys.exit(f"scripts/compare_peers: {self.a.out}/peers.json has {framework} {self.versions[framework]}, and "
                     f"{version} is installed; name another --out")
        return {**result, "peak_bytes": peak}

    def trial(self, framework, setting, cpus, precision, losses):
        """What a setting came to, or why it failed."""
        try:
            result = self.peer(framework, setting, cpus, precision, trial=True)
            wrong = other_network(result, self.parameters, losses, TOLERANCE[precision])
            result = {**result, "failed": wrong} if wrong else result
        except Failed as reason:
            result = {"failed": str(reason)}
        told = f"failed: {result['failed']}" if "failed" in result else (
            f"{max(result['images_per_second']):.1f} images/s, "
            f"{1e3 * min(result['cpu_seconds_per_image']):.1f} ms of CPU per image")
        say(f"{self.model}, {precision}, {framework}, {', '.join(setting.values())}: {told}")
        return {"setting": setting, **result}

    def names(self, threads, precision):
        """What tells a cell from others, inputs included."""
        return {"model": self.model, "epochs": self.epochs, "precision": precision, "image_size": self.size,
                "batch": self.batch, "trial_batch": self.trial_batch, "threads": threads, "cpus": cpus_for(threads),
                "inputs": self.inputs}

    def cell(self, threads, precision):
        """Trials of every framework's settings, and rounds of the quickest of each by turns with cputrain."""
        cpus = cpus_for(threads)
        losses = self.two_steps(cpus, "float", self.trial_batch)[0]
        if self.normalizes:  # of a few images: gradients are so steep that rounding decides what a step changes
            losses = losses[:1]
        own_losses = self.two_steps(cpus, precision, self.trial_batch)[0]
        wrong = other_network({"parameters": self.parameters, "losses": own_losses}, self.parameters, losses,
                              TOLERANCE[precision])
        if wrong:
            raise Failed(f"cputrain --precision {precision}: {wrong}")
        trials = {framework: settings.trials_of(
            settings.AXES[framework], lambda s, f=framework: self.trial(f, s, cpus, precision, losses))
            for framework in self.pythons}
        chosen, rounds = self.best_rounds(trials, cpus, precision)
        return {**self.names(threads, precision), "losses": losses, "losses_in_precision": own_losses,
                "settings": chosen, "trials": trials, "rounds": rounds}

    def best_rounds(self, trials, cpus, precision):
        """(settings, rounds); a setting that fails with the whole batch gives way to the next."""
        while True:
            best = {framework: settings.best_of(tried) for framework, tried in trials.items()}
            chosen = {framework: setting for framework, setting in best.items() if setting}
            for framework in best.keys() - chosen.keys():
                say(f"{self.model}, {precision}: no setting of {framework} works, so it is left out")
            try:
                return chosen, self.rounds(chosen, cpus, precision)
            except FailedInRounds as failed:
                say(f"{self.model}, {precision}, {failed.framework}: {failed}")
                for trial in trials[failed.framework]:
                    if trial["setting"] == chosen[failed.framework]:
                        trial["failed"] = f"with batch {self.batch}: {failed}"

    def rounds(self, chosen, cpus, precision):
        programs = [f for f in self.a.frameworks if f == "ours" or f in chosen]
        peak = self.two_steps(cpus, precision, self.batch)[1]  # a benchmark has arrays that measure the machine, too
        done = []
        for number in range(self.a.rounds):
            results = {}
            for f in programs if number % 2 == 0 else programs[::-1]:
                results[f] = ({**self.ours(cpus, precision), "peak_bytes": peak} if f == "ours" else
                              self.peer_in_a_round(f, chosen[f], cpus, precision))
            done.append({f: results[f] for f in programs})
            say(f"{self.model}, {precision}, {len(cpus)} threads, round {number + 1}: " + ", ".join(
                f"{f} {statistics.median(r['images_per_second']):.1f} images/s" for f, r in done[-1].items()))
        return done

    def peer_in_a_round(self, framework, setting, cpus, precision):
        try:
            return self.peer(framework, setting, cpus, precision, trial=False)
        except Failed as reason:
            raise FailedInRounds(framework, reason) from reason


class FailedInRounds(Exception):
    def __init__(self, framework, reason):
        super().__init__(str(reason))
        self.framework = framework


def other_network(result, parameters, losses, tolerance):
    """How a result is not that of the same network, weights, images and step; None where it is."""
    if result["parameters"] != parameters:
        return f"{result['parameters']:,} parameters where cputrain has {parameters:,}"
    expected, found = losses[:2], result["losses"][:2]
    scale = max(1, abs(expected[0]))
    if not abs(found[0] - expected[0]) <= tolerance * scale:  # NaN fails, too
        return f"a loss of {found[0]:.6f} before the first step where cputrain has {expected[0]:.6f}"
    if len(expected) < 2:
        return None
    change, found_change = expected[1] - expected[0], found[1] - found[0]
    if not abs(found_change - change) <= OF_A_CHANGE * abs(change) + tolerance * scale:
        return f"the first step changes the loss by {found_change:+.6f} where that of cputrain does by {change:+.6f}"
    return None

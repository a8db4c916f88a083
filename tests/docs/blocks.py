"""Runs a document's commands, in order, in a folder that looks like the project's root. Trainings are shortened."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from documents import Finding, files

BLOCK_SECONDS = 240
SHOWN_LINES = 60  # of the output of a block that failed
PHOTOS = 80
PRETRAINED = "efficientnet-lite0"  # the network of documents that begin with weights of ImageNet

# What a reader's commands leave open. Flags on the command line go before these.
SHORT = {
    "CPUTRAIN_STEPS": "2",
    "CPUTRAIN_IMAGE_SIZE": "48",
    "CPUTRAIN_LIMIT_TRAIN": "256",
    "CPUTRAIN_LIMIT_VAL": "64",
    "CPUTRAIN_THREADS": "1",
    "CPUTRAIN_REPEAT": "1",
    "CPUTRAIN_LR_STEPS": "20",
    "CPUTRAIN_BYTES": "1048576",
}
LAUNCHER = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # Open MPI 5
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
}
# The program as documents call it. What shortens one command is refused by another: a sweep evaluates whole epochs
# alone, which have no number of steps. A simulation takes published costs, which are those of whole images, in the
# place of measuring for minutes. Networks are described and exported as they are.
WRAPPER = """#!/bin/bash
case "${{1-}}" in
  simulate)
    unset CPUTRAIN_IMAGE_SIZE CPUTRAIN_LIMIT_TRAIN
    export CPUTRAIN_COSTS={root}/results/simulated/published/costs.json ;;
  sweep) [[ $* == *--full-epochs* ]] && unset CPUTRAIN_STEPS || unset CPUTRAIN_LIMIT_VAL ;;
  tune) [[ $* == *--find\ rate* || $* == *--most-batch* ]] || set -- "$@" --most-batch 32 ;;
  info | export) unset CPUTRAIN_IMAGE_SIZE ;;
esac
exec {program} "$@"
"""


def write_program(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


class Workplace:
    """A temporary folder with a copy of the project's files (commands may write beside them), `./cputrain`, `photos/`
    and `new.jpg`; goes with close()."""

    def __init__(self, root, program, mpirun=()):
        self.root, self.program = root, os.path.abspath(program)
        self.holder = tempfile.TemporaryDirectory(prefix="cputrain-docs-")
        self.folder = os.path.join(self.holder.name, "cputrain")
        self.tools = os.path.join(self.holder.name, "bin")
        os.makedirs(self.tools)
        os.makedirs(os.path.join(self.folder, "runs"))
        self.environment = self.make_environment(mpirun)
        try:
            self.fill(mpirun)
        except BaseException:
            self.close()
            raise

    def make_environment(self, mpirun):
        kept = {k: v for k, v in os.environ.items() if not k.upper().startswith("CPUTRAIN")}
        path = [self.tools, *([os.path.dirname(mpirun[0])] if mpirun else []), kept.get("PATH", "/usr/bin:/bin")]
        return {**kept, **LAUNCHER, **SHORT, "PATH": ":".join(filter(None, path)), "PYTHONDONTWRITEBYTECODE": "1",
                "XDG_CACHE_HOME": os.path.join(self.holder.name, "cache")}

    def fill(self, mpirun):
        for path in files(self.root):
            target = os.path.join(self.folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(os.path.join(self.root, path), target, follow_symlinks=False)
        wrapper = WRAPPER.format(root=self.folder, program=self.program)
        for path in (os.path.join(self.folder, "cputrain"), os.path.join(self.tools, "cputrain")):
            write_program(path, wrapper)
        if mpirun:
            write_program(os.path.join(self.tools, "mpirun"), f'#!/bin/bash\nexec {mpirun[0]} "$@"\n')
        self.make_photos()

    def make_photos(self):
        made = os.path.join(self.holder.name, "made")
        subprocess.run([self.program, "data", "synth", made, "--images", str(PHOTOS), "--image-size", "64"], check=True,
                       timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=self.environment)
        classes = sorted(d for d in os.listdir(made) if os.path.isdir(os.path.join(made, d)))
        photos = os.path.join(self.folder, "photos")
        os.mkdir(photos)
        for old, new in zip(classes, ("cat", "dog")):
            os.rename(os.path.join(made, old), os.path.join(photos, new))
        first = sorted(os.listdir(os.path.join(photos, "cat")))[0]
        shutil.copy(os.path.join(photos, "cat", first), os.path.join(self.folder, "new.jpg"))

    def make_weights(self):
        """In the place of those of ImageNet, where `weights fetch` would keep them: it finds them and uses no network."""
        made = os.path.join(self.holder.name, "made-weights")
        kept = os.path.join(self.environment["XDG_CACHE_HOME"], "cputrain", "weights")
        os.makedirs(kept)
        for words in (["--model", PRETRAINED, "--data", os.path.join(self.folder, "photos"), "--epochs", "1", "--out", made],
                      ["export", "--weights", made, "--export-layout", "torch", "--safetensors",
                       os.path.join(kept, PRETRAINED + ".safetensors")]):
            subprocess.run([self.program, *words], check=True, timeout=BLOCK_SECONDS, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)

    def close(self):
        self.holder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, name, line, commands, seconds=BLOCK_SECONDS):
        """Runs lines of a document, the first of which is number `line`, by `bash -e`. (exit code, output); the output
        ends with the line at which bash gave up."""
        trap = f"trap 'printf \"%s:%s: ended with %s\\n\" {name} $LINENO $?' ERR"
        # The trap stands on the line above, so that bash counts as the document does.
        script = "\n" * max(0, line - 2) + trap + "\n" + "\n".join(commands) + "\n"
        path = os.path.join(self.holder.name, "block.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        child = subprocess.Popen(["bash", "-eE", path], cwd=self.folder, env=self.environment, start_new_session=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, errors="replace")
        try:
            output, _ = child.communicate(timeout=seconds)
            return child.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output, _ = child.communicate()
            return 124, f"{output}\n{name}:{line}: took more than {seconds} s"
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)  # what the block left behind
            except ProcessLookupError:
                pass


def run(document, workplace, tell=lambda text: None):
    """Runs all blocks and preparations; a finding for the first that fails, since later ones need it."""
    if any(f"weights fetch {PRETRAINED}" in line for step in document.steps for line in getattr(step, "lines", [])):
        workplace.make_weights()
    for step in document.steps:
        is_block = hasattr(step, "lines")
        if is_block and step.reason:
            tell(f"{document.path}:{step.line}: not run: {step.reason}")
            continue
        commands = step.lines if is_block else [step.command]
        started = time.monotonic()
        code, output = workplace.run(document.path, step.line, commands)
        seconds = time.monotonic() - started
        if code:
            shown = output.rstrip().splitlines()[-SHOWN_LINES:]
            return [Finding(document.path, step.line, "\n".join(
                [f"a block fails with {code} after {seconds:.1f} s:", *("    " + c for c in commands),
                 "which says:", *("    " + s for s in shown)]))]
        tell(f"{document.path}:{step.line}: {seconds:.1f} s: {commands[0] if commands else ''}")
        sys.stdout.flush()
    return []

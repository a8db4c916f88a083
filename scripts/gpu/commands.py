"""What commands about GPUs share: their words, what cputrain says of a model, and where their answers go."""
import argparse
import json
import os
import subprocess
import sys

USAGE, NOT_WRITTEN = 2, 74
MOST_IMAGES = 65536  # of a step: each of its micro-batches is looked at by itself


def fail(text, code=USAGE):
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(code)


def whole(text):
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be a whole number from 1")
    return int(text)


def images(text):
    if whole(text) > MOST_IMAGES:
        raise argparse.ArgumentTypeError(f"{text} must be at most {MOST_IMAGES}")
    return int(text)


def add_network(parser):
    """Flags that name a network and the images of its step."""
    parser.add_argument("--model", default="dogcat", help="as of cputrain")
    parser.add_argument("--image-size", type=whole, help="[the model's]")
    parser.add_argument("--classes", type=whole, help="[the model's]")
    parser.add_argument("--batch", type=images, default=256, help="images of a step on one GPU [256]")
    parser.add_argument("--micro-batch", type=whole, help="images at once [alike, at most 256; all with batch norms]")


def answer_of(command, build, **environment):
    """`build`: what builds the program."""
    try:
        done = subprocess.run(command, text=True, capture_output=True, env={**os.environ, **environment})
    except OSError as error:
        fail(f"{command[0]} cannot be started ({error.strerror}); build it with {build}, or name it by --program")
    if done.returncode:
        fail(f"{' '.join(command)} says:\n{done.stderr.strip()}")
    return done.stdout


def model_of(a, build):
    command = [a.program, "info", "--model", a.model, "--json", "-"]
    for flag, value in (("--image-size", a.image_size), ("--classes", a.classes)):
        command += [flag, str(value)] if value is not None else []
    try:
        model = json.loads(answer_of(command, build))["model"]
        return {key: model[key] for key in ("name", "layers", "recipe")}
    except (ValueError, KeyError, TypeError):
        fail(f"{a.program} does not list layers as `cputrain info --json -` does; name another by --program")


def write(name, text, what):
    """To the file of --json, or to standard output."""
    to_output = name in (None, "-")
    try:
        with open(1 if to_output else name, "w", closefd=not to_output) as file:
            file.write(text)
    except OSError as error:
        where = "standard output" if to_output else f"--json {name}"
        fail(f"{where} cannot be written ({error.strerror}), so the {what} are lost; name a file in a folder that is "
             "there and has room", NOT_WRITTEN)

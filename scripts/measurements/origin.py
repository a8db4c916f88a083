"""What a table is made by: the commit and whether it is the checkout's.

scripts/tables asks it before anything is measured: origin.py [--unclean]. It ends with 2 where ./cputrain was built
from changed files, or from files other than those here (results/ does not count), since its figures could not be made
again. With --unclean it goes on, and tables say so.
"""
import datetime
import os
import re
import subprocess
import sys

# Where the version of each backend's own kernels stands.
KERNELS = {"cpu": "backends/cpu/convolution/convolution_choice.h", "cuda": "backends/cuda/backend.cpp"}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def output(*command):
    return subprocess.run(command, cwd=ROOT, text=True, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout.strip()


def commit_in(text):
    """"abc1234" or "abc1234-dirty", as the program writes it; "unknown" where it was not built from a checkout."""
    found = re.search(r"commit ([^,)\s]+)", text)
    return found.group(1) if found else "unknown"


def program_commit(program="./cputrain"):
    return commit_in(output(program, "--version"))


def obstacle(commit):
    """Why figures of a program of this commit are not those of the files here; empty where they are."""
    if commit.endswith("-dirty"):
        return f"./cputrain, of commit {commit}, was built from changed files"
    if not re.fullmatch("[0-9a-f]+", commit):
        return "./cputrain does not know its commit"
    try:
        changed = output("git", "diff", "--name-only", commit, "--", ".", ":(exclude)results")
    except subprocess.CalledProcessError as error:
        return f"./cputrain is of commit {commit}, which is not here: {error.output.strip()}"
    if not changed:
        return ""
    return f"./cputrain is of commit {commit}, from which {changed.splitlines()[0]} differs here"


def kernels_of(commit=None, backend="cpu"):
    """The version of a backend's own kernels at a commit, or of the files here; None where it is not to be had."""
    try:
        if commit is None:
            with open(os.path.join(ROOT, KERNELS[backend])) as f:
                text = f.read()
        else:
            text = output("git", "show", f"{commit.removesuffix('-dirty')}:{KERNELS[backend]}")
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"kKernelsVersion = (\d+)", text)
    return int(found.group(1)) if found else None


def versions_of(commit=None):
    """The same of all backends, {backend: version}; without those that are not to be had."""
    versions = {backend: kernels_of(commit, backend) for backend in KERNELS}
    return {backend: version for backend, version in versions.items() if version is not None}


def facts(date, commit, clean, backend="cpu"):
    """For a table's raw data. Kernels are those of the backend that figures are of."""
    return {"date": date, "commit": commit, "clean": clean, "kernels": kernels_of(commit, backend),
            **({"backend": backend} if backend != "cpu" else {})}


def of_today(program):
    commit = program_commit(program)
    return facts(datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), commit, not obstacle(commit))


def of_run(environment):
    """The same of a finished training, from its environment.json: of a program of another day, perhaps."""
    return of_earlier(environment["started"][:10], commit_in(environment.get("build", "")))


def of_cells(table, backend="cpu"):
    """The same of a cells.json."""
    return of_earlier(table.get("date") or "an unknown day", commit_in(table.get("commit", "")), backend)


def of_earlier(date, commit, backend="cpu"):
    """The checkout may have gone on since then: a commit without changes stays one that figures can be made again by."""
    return facts(date, commit, re.fullmatch("[0-9a-f]+", commit) is not None, backend)


def sentence(of):
    """What a table says of facts."""
    text, backend = f"Made on {of['date']} by commit {of['commit']}", of.get("backend", "cpu")
    if of.get("kernels"):
        text += f", {'' if backend == 'cpu' else backend.upper() + ' '}kernels {of['kernels']}"
    if of.get("kernels") and of["kernels"] != kernels_of(backend=backend):
        text += f" (today {kernels_of(backend=backend)})"
    return text + ("." if of["clean"] else ", with other files than those of a commit that is here.")


def main():
    if not os.path.exists(os.path.join(ROOT, "cputrain")):
        sys.exit("scripts/tables: there is no ./cputrain; run scripts/build")
    why = obstacle(program_commit())
    if why and "--unclean" not in sys.argv[1:]:
        print(f"scripts/tables: {why} (so the figures could not be made again); commit, run scripts/build and try "
              "again, or add --unclean, which the tables then say", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()

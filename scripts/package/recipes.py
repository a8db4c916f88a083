"""Runs the steps of a Dockerfile or of an Apptainer definition in bare roots, by chroot: no container engine.

It knows what this project's two files use, and refuses the rest. scripts/check_package calls it as root, in a mount
namespace of its own; tests/package checks how files are read.
"""
import json
import os
import re
import shlex
import subprocess
import sys

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def read_dockerfile(text):
    """[{"base": "debian:12-slim", "name": "build", "steps": [("RUN", "..."), ...]}, ...]"""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    stages = []
    for line in filter(str.strip, joined.splitlines()):
        word, _, value = line.strip().partition(" ")
        word, value = word.upper(), value.strip()
        if word == "FROM":
            base, *name = re.split(r"\s+AS\s+", value, flags=re.I)
            stages.append({"base": base, "name": name[0] if name else "", "steps": []})
        elif word in ("COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD") and stages:
            stages[-1]["steps"].append((word, value))
        else:
            raise ValueError(f"a step that is not known here: {line}")
    return stages


def read_definition(text):
    """[{"header": {"Bootstrap": "docker", ...}, "sections": [("files", "from build", "text"), ...]}, ...]"""
    stages, body = [], None
    for line in text.splitlines():
        head = re.match(r"(Bootstrap|From|Stage): *(\S+)$", line)
        section = re.match(r"%(\w+) *(.*)$", line)
        if head:
            if head[1] == "Bootstrap":
                stages.append({"header": {}, "sections": []})
            stages[-1]["header"][head[1]] = head[2]
            body = None
        elif section:
            if section[1] not in ("files", "post", "environment", "runscript", "test", "labels", "help"):
                raise ValueError(f"a section that is not known here: {line}")
            body = []
            stages[-1]["sections"].append((section[1], section[2].strip(), body))
        elif body is not None:
            body.append(line)
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"a line that is not known here: {line}")
    for stage in stages:
        stage["sections"] = [(name, words, "\n".join(lines) + "\n") for name, words, lines in stage["sections"]]
    return stages


def copy(source, target):
    """As `cp -rL`; into a folder that is there, if the name ends with a slash."""
    if target.endswith("/"):
        target = os.path.join(target, os.path.basename(source))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    subprocess.run(["cp", "-rT", "--preserve=mode,timestamps", source, target], check=True)


class Root:
    """A copy of the bare root, in which commands run by chroot."""

    def __init__(self, base, path):
        subprocess.run(["cp", "-a", "--reflink=auto", base, path], check=True)
        self.path, self.environment, self.user, self.folder = path, {}, "root", "/"
        self.entrypoint, self.command = [], []
        for kind, name in (("proc", "proc"), ("rbind", "sys"), ("rbind", "dev")):
            self.mount(kind, "proc" if kind == "proc" else "/" + name, name)

    def mount(self, kind, source, name):
        target = os.path.join(self.path, name)
        os.makedirs(target, exist_ok=True)
        words = ["-t", "proc", "proc"] if kind == "proc" else ["--rbind", source]
        subprocess.run(["mount", *words, target], check=True)

    def use_compiler_cache(self, cache):
        """So that what was compiled before, here or in another root, costs little. No recipe knows of it."""
        os.makedirs(cache, exist_ok=True)
        self.mount("rbind", cache, "var/cache/ccache")
        self.environment |= {"CCACHE_DIR": "/var/cache/ccache", "CCACHE_BASEDIR": "/src", "CCACHE_NOHASHDIR": "1",
                             "CCACHE_COMPILERCHECK": "content"}
        # The compiler's messages are in the cache, too, so a language belongs to what is looked up.
        self.environment |= {name: os.environ[name] for name in ("LANG", "LC_ALL", "LC_CTYPE") if name in os.environ}
        self.run(["/bin/sh", "-c", "apt-get -qq update && apt-get -qqy install --no-install-recommends ccache "
                                   ">/dev/null 2>&1 && rm -rf /var/lib/apt/lists/*"])

    def inside(self, path):
        return os.path.join(self.path, os.path.join(self.folder, path).lstrip("/"))

    def run(self, words, **environment):
        """Ends the program where the command fails."""
        proxies = {name: os.environ[name] for name in ("http_proxy", "https_proxy") if name in os.environ}
        home = "/root" if self.user == "root" else f"/home/{self.user}"
        variables = {"PATH": PATH, "HOME": home, **proxies, **self.environment, **environment}
        options = [] if self.user == "root" else [f"--userspec={self.user}:{self.user}"]
        inner = ["/bin/sh", "-c", f'cd {shlex.quote(self.folder)} && exec "$@"', "sh", *words]
        print("+", " ".join(map(shlex.quote, words)), flush=True)
        done = subprocess.run(["chroot", *options, self.path, *inner], env=variables, stdin=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"recipes: ended with {done.returncode}: {' '.join(words)}")


def stage_root(base, path, name):
    root = Root(base, path)
    if name == "build" and "BUILD_CACHE" in os.environ:
        root.use_compiler_cache(os.environ["BUILD_CACHE"])
    return root


def run_dockerfile(path, context, base, work, commands):
    """Every stage in a copy of `base`; then the commands, through ENTRYPOINT, in the last."""
    roots = {}
    for number, stage in enumerate(read_dockerfile(open(path).read())):
        print(f"recipes: FROM {stage['base']}: a bare root of debootstrap in its place", flush=True)
        root = stage_root(base, os.path.join(work, f"docker-{number}"), stage["name"])
        roots[stage["name"] or str(number)] = root
        for word, value in stage["steps"]:
            docker_step(root, roots, context, word, value)
    for words in [root.command, *commands]:
        root.run([*root.entrypoint, *words])


def docker_step(root, roots, context, word, value):
    if word == "COPY":
        words = shlex.split(value)
        origin = roots[words.pop(0).partition("=")[2]].path if words[0].startswith("--from=") else context
        copy(os.path.join(origin, words[0].lstrip("/")), root.inside(words[1]))
    elif word == "RUN":
        root.run(["/bin/sh", "-c", value])
    elif word == "ENV":
        name, _, text = value.partition("=")
        root.environment[name] = text
    elif word == "USER":
        root.user = value
    elif word == "WORKDIR":
        root.folder = value
        os.makedirs(root.inside("."), exist_ok=True)
    elif word == "ENTRYPOINT":
        root.entrypoint = json.loads(value)
    else:
        root.command = json.loads(value)


def run_definition(path, context, base, work, commands):
    """Every stage in a copy of `base`; then %test, %runscript with --version, and the commands, as `exec` does."""
    roots = {}
    for number, stage in enumerate(read_definition(open(path).read())):
        print(f"recipes: From: {stage['header']['From']}: a bare root of debootstrap in its place", flush=True)
        name = stage["header"].get("Stage", str(number))
        root = roots[name] = stage_root(base, os.path.join(work, f"apptainer-{number}"), name)
        for name, words, text in stage["sections"]:
            if name == "files":
                origin = roots[words.split()[1]].path if words else context
                for line in filter(str.strip, text.splitlines()):
                    source, target = line.split()
                    copy(os.path.join(origin, source.lstrip("/")), root.inside(target))
            elif name == "post":
                root.run(["/bin/sh", "-ec", text])
    sections = {name: text for name, _, text in stage["sections"]}
    begin = sections.get("environment", "")
    root.run(["/bin/sh", "-ec", begin + sections["test"]])
    root.run(["/bin/sh", "-ec", begin + sections["runscript"], "runscript", "--version"])
    for words in commands:
        root.run(["/bin/sh", "-ec", begin + 'exec "$@"', "exec", *words], OMPI_ALLOW_RUN_AS_ROOT="1",
                 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


if __name__ == "__main__":
    kind, recipe, tree, bare, folder, *rest = sys.argv[1:]
    run = {"dockerfile": run_dockerfile, "definition": run_definition}[kind]
    run(recipe, tree, bare, folder, [shlex.split(line) for line in rest])

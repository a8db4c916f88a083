"""Licences of the libraries that a wheel brings: what their Debian packages say."""
import os
import re
import shutil
import subprocess

import libraries

COMMON = "/usr/share/common-licenses"


def origins(files):
    """{name: path} of all libraries that the files need here, by the names of their files."""
    paths = {os.path.realpath(path) for file in files for path in libraries.needed(file).values()}
    return {os.path.basename(path): path for path in paths}


def package_of(path):
    for name in (path, path.replace("/usr/lib/", "/lib/", 1)):
        done = subprocess.run(["dpkg-query", "-S", name], text=True, capture_output=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise libraries.Missing(f"{path} belongs to no Debian package, so its licence is not known")


def own_name(grafted):
    """libfoo-0123abcd.so.1.2, as auditwheel names it, is libfoo.so.1.2."""
    return re.sub(r"-[0-9a-f]{8}(?=\.)", "", os.path.basename(grafted))


def add(folder, grafted, known):
    """A file for each package, and texts that these files refer to."""
    common = set()
    for package in sorted({package_of(known[own_name(path)]) for path in grafted}):
        source = f"/usr/share/doc/{package}/copyright"
        with open(source, errors="replace") as file:
            common |= set(re.findall(rf"{COMMON}/([\w.-]*\w)", file.read()))
        shutil.copyfile(source, os.path.join(folder, f"{package}.copyright"))
    for name in sorted(common):
        if os.path.exists(os.path.join(COMMON, name)):
            shutil.copyfile(os.path.join(COMMON, name), os.path.join(folder, name))

"""Shared libraries that programs need elsewhere, and Open MPI as a whole."""
import os
import re
import shutil
import subprocess

# A process has one C library, the system's: it belongs to the loader, and is as new there.
OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|anl|mvec))\.so.*")
# The compiler's: a system's own are taken where it has them, since newer ones serve older programs and not the reverse.
SPARE = re.compile(r"lib(stdc\+\+|gcc_s|gomp|atomic)\.so.*")
# Plugins of Open MPI for networks, clusters and OpenSHMEM, which bring megabytes of libraries along.
NOT_PACKED = re.compile(r"mca_(\w+_)?(ofi|ucx|psm|psm2|openib|flux|slurm|gridengine|simulator|monitoring|netlink)\.so|"
                        r"mca_(memheap|spml|sshmem|scoll|atomic)_\w+\.so")


class Missing(Exception):
    """Something that the pack cannot be without."""


def needed(file):
    """{name: path} of the libraries that the loader finds for a file."""
    done = subprocess.run(["ldd", file], text=True, capture_output=True)
    if "not found" in done.stdout:
        raise Missing(f"{file} lacks libraries here:\n{done.stdout}")
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", done.stdout, re.M))


def gather(files):
    """({name: path}, {name: path}) of what the files need: libraries of the pack, and spare ones."""
    own, spare = {}, {}
    for file in files:
        for name, path in needed(file).items():
            if SPARE.fullmatch(name):
                spare[name] = path
            elif not OF_THE_SYSTEM.fullmatch(name):
                own[name] = path
    return own, spare


def said_by_open_mpi(folder):
    """What ompi_info says of its folders: {"prefix": "/usr", "pkglibdir": ...}."""
    program = os.path.join(folder, "ompi_info")
    done = subprocess.run([program, "--parsable", "--path", "all"], text=True, capture_output=True)
    return dict(re.findall(r"^path:(\w+):(.*)$", done.stdout, re.M))


def open_mpi():
    """{place in the pack: file here} of Open MPI 4; empty where mpirun is another's, as of Open MPI 5, or none."""
    launcher, daemon = shutil.which("mpirun"), shutil.which("orted")
    if not launcher or not daemon or not shutil.which("ompi_info"):
        return {}
    folder = os.path.dirname(launcher)
    where = said_by_open_mpi(folder)
    files = {"bin/mpirun": os.path.realpath(launcher), "bin/orted": os.path.realpath(daemon)}
    plugins = where["pkglibdir"]
    for name in sorted(os.listdir(plugins)):
        if name.endswith(".so") and not NOT_PACKED.fullmatch(name):
            files[os.path.join(relative(plugins, where), name)] = os.path.join(plugins, name)
    files.update(tree(where["pkgdatadir"], relative(where["pkgdatadir"], where)))
    for name in sorted(os.listdir(where["sysconfdir"])) if os.path.isdir(where["sysconfdir"]) else []:
        files[f"etc/{name}"] = os.path.join(where["sysconfdir"], name)
    files.update(pmix(files))
    return files


def relative(folder, where):
    """Open MPI finds its files below OPAL_PREFIX as they lie below its own prefix."""
    return os.path.relpath(folder, where["prefix"])


def tree(folder, place):
    return {os.path.join(place, os.path.relpath(os.path.join(at, name), folder)): os.path.join(at, name)
            for at, _, names in os.walk(folder) for name in names}


def pmix(files):
    """Plugins and texts of PMIx, where Open MPI takes it from the system."""
    for path in files.values():
        library = needed(path).get("libpmix.so.2") if "mca_pmix_" in path else None
        home = library and os.path.dirname(os.path.dirname(os.path.realpath(library)))
        if home and os.path.isdir(os.path.join(home, "lib", "pmix")):
            return {**tree(os.path.join(home, "lib", "pmix"), "pmix/lib/pmix"),
                    **tree(os.path.join(home, "share"), "pmix/share")}
    return {}

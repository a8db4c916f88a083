"""What the pack holds, unpacked: programs, libraries, expected results."""
import hashlib
import json
import os
import re
import subprocess
import tarfile

from results import Refused

NAME = "bundle.tar.xz"
PLUGIN, EMULATED_DEVICE = "the plugin for GPUs", "the emulated device"  # as scripts/gpu/pack.py says what is missing
NOT_TESTS = ("probes", "sanitizer_control")  # among the programs for a GPU


class Damaged(Refused):
    def __init__(self, pack, why):
        super().__init__(65, f"the pack {pack} is damaged: {why} (its results would mean nothing); copy it here again")


def describe(pack):
    """What pack.json says, after the bundle was found to be as it says."""
    try:
        with open(os.path.join(pack, "pack.json")) as file:
            about = json.load(file)
        lacks = {"commit", "program", "missing", "bundle"} - set(about)
        if lacks:
            raise Damaged(pack, f"pack.json lacks {', '.join(sorted(lacks))}")
        if not isinstance(about["missing"], list):
            raise Damaged(pack, "pack.json has no list of what is missing")
        size, sha256 = about["bundle"]["bytes"], about["bundle"]["sha256"]
        found = os.path.getsize(os.path.join(pack, NAME))
        if found != size:
            raise Damaged(pack, f"{NAME} has {found} bytes of {size}")
        if sha256_of(os.path.join(pack, NAME)) != sha256:
            raise Damaged(pack, f"{NAME} has another SHA-256 than when it was packed")
    except OSError as error:
        raise Damaged(pack, f"{os.path.basename(error.filename or NAME)}: {error.strerror}")
    except (ValueError, TypeError, KeyError) as error:
        raise Damaged(pack, f"pack.json cannot be read ({type(error).__name__}: {error})")
    return about


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def unpack(pack, folder):
    archive = os.path.join(pack, NAME)
    try:
        with tarfile.open(archive, "r:xz") as tar:
            if hasattr(tarfile, "tar_filter"):
                tar.extraction_filter = tarfile.tar_filter
            tar.extractall(folder)
    except tarfile.CompressionError:  # a Python without lzma
        if subprocess.run(["tar", "-xJf", archive, "-C", folder]).returncode:
            raise OSError(None, "tar could not unpack the pack, as it says above", folder)
    except OSError:  # nothing can be written
        raise
    except Exception as error:
        raise Damaged(pack, f"{NAME} cannot be unpacked ({type(error).__name__}: {error})")
    return Bundle(folder)


class Bundle:
    def __init__(self, folder):
        self.folder = folder

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def has(self, *parts):
        return os.path.exists(self.path(*parts))

    def read_json(self, *parts):
        """None where the pack does not have it."""
        if not self.has(*parts):
            return None
        with open(self.path(*parts)) as file:
            return json.load(file)

    def programs(self, folder):
        """Paths of the programs in a folder, sorted."""
        names = sorted(os.listdir(self.path(folder))) if self.has(folder) else []
        return [self.path(folder, name) for name in names]

    def environment(self, emulated):
        """For the pack's own programs. Flags that the caller's environment has for cputrain do not count."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("CPUTRAIN_", "OMPI_"))}
        libraries = [self.path("lib"), environment.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))
        environment["PATH"] = self.path("bin") + ":" + environment.get("PATH", os.defpath)
        environment.update({
            "OPAL_PREFIX": self.folder, "OPAL_SYSCONFDIR": self.path("etc"),
            "PMIX_INSTALL_PREFIX": self.path("pmix"),
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl": "self,vader,tcp",
            "OMPI_MCA_plm": "isolated",  # the usual one ends where there is no ssh
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",  # containers forbid the others
            "OMPI_MCA_btl_base_warn_component_unused": "0",
            "XDG_CACHE_HOME": self.path("cache"),
        })
        # The emulated device is a plugin under the name of the real one, so the program is the same.
        environment["CPUTRAIN_PLUGINS"] = self.path("emulated" if emulated else "bin")
        return environment

    def take_missing_libraries(self, environment):
        """Libraries of which a system's own is better (newer), linked where it has none. Returns their names."""
        taken = set()
        for program in [self.path("bin", "cputrain"), self.path("bin", "mpirun"), *self.programs("device")]:
            for name in missing_libraries(program, environment):
                if self.has("spare", name) and name not in taken:
                    os.symlink(self.path("spare", name), self.path("lib", name))
                    taken.add(name)
        return sorted(taken)


def missing_libraries(program, environment):
    done = subprocess.run(["ldd", program], text=True, capture_output=True, env=environment, timeout=60)
    return re.findall(r"(\S+) => not found", done.stdout)

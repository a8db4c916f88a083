"""What the pack holds, unpacked: programs, libraries, expected results."""
import json
import os
import re
import subprocess
import tarfile

NAME = "bundle.tar.xz"
NOT_TESTS = ("probes", "sanitizer_control")  # among the programs for a GPU


def unpack(pack, folder):
    archive = os.path.join(pack, NAME)
    try:
        with tarfile.open(archive, "r:xz") as tar:
            if hasattr(tarfile, "tar_filter"):
                tar.extraction_filter = tarfile.tar_filter
            tar.extractall(folder)
    except tarfile.CompressionError:  # a Python without lzma
        subprocess.run(["tar", "-xJf", archive, "-C", folder], check=True)
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

# Copyright the cputrain developers
#
# SPDX-License-Identifier: Apache-2.0

from spack.package import *

try:  # where Spack 1.0 and later have it
    from spack_repo.builtin.build_systems.generic import Package
except ImportError:
    pass


class Stb(Package):
    """Libraries of one header each, below include/stb."""

    homepage = "https://github.com/nothings/stb"
    git = "https://github.com/nothings/stb.git"

    license("MIT OR Unlicense")

    version("2026-04-15", commit="31c1ad37456438565541f4919958214b6e762fb4")

    def install(self, spec, prefix):
        mkdirp(prefix.include.stb)
        for header in find(".", "*.h", recursive=False):
            install(header, prefix.include.stb)

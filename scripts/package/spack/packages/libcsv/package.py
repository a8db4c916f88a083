# Copyright the cputrain developers
#
# SPDX-License-Identifier: Apache-2.0

from spack.package import *

try:  # where Spack 1.0 and later have it
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
except ImportError:
    pass


class Libcsv(AutotoolsPackage):
    """Reads and writes CSV."""

    homepage = "https://github.com/rgamble/libcsv"
    git = "https://github.com/rgamble/libcsv.git"

    license("LGPL-2.1-or-later")

    version("3.0.3", commit="b1d5212831842ee5869d99bc208a21837e4037d5")

    depends_on("c", type="build")

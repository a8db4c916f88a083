# Copyright the cputrain developers
#
# SPDX-License-Identifier: Apache-2.0

import pathlib

from spack.package import *

try:  # where Spack 1.0 and later have it
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass


class Cputrain(CMakePackage):
    """Trains image classifiers on CPUs, by synchronous SGD over MPI: on one core, a machine or a cluster."""

    # No release is published: the sources are those of the clone that this recipe lies in, as committed.
    homepage = pathlib.Path(__file__).resolve().parents[5].as_uri()
    git = homepage

    license("Apache-2.0")

    version("main", branch="main")

    variant("mpi", default=True, description="Ranks as MPI processes")
    variant("onednn", default=True, description="Kernels of oneDNN; without it plain loops alone")
    variant("onnx", default=True, description="Export to ONNX")
    variant("hdf5", default=True, description="Reads weights of Keras")
    variant("webp", default=True, description="Reads WebP images")
    variant("tiff", default=True, description="Reads TIFF images")
    variant("heif", default=True, description="Reads HEIC and AVIF images")
    variant("archive", default=True, description="Reads tar archives")
    variant("simulator", default=True, description="The command simulate, by SimGrid's SMPI")
    variant("cuda", default=False, description="The plugin of --backend cuda")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("git", type="build")
    depends_on("pkgconfig", type="build")
    generator("ninja")

    depends_on("fmt@9:10 +shared")  # which the program and its plugin share
    depends_on("nlohmann-json@3.11:")
    depends_on("utf8proc")
    depends_on("hwloc@2:")
    depends_on("tbb")
    depends_on("libjpeg-turbo")
    depends_on("libpng")
    depends_on("zlib-api")
    depends_on("libmd")
    depends_on("libcsv")
    depends_on("stb", type="build")
    depends_on("boost@1.74:", type="build")  # headers of Boost.Math
    depends_on("protobuf@3.12:")
    depends_on("onednn@2.6: cpu_runtime=omp", when="+onednn")
    depends_on("openmpi@4.1:", when="+mpi")
    depends_on("hdf5@1.10: ~mpi", when="+hdf5")  # loaded with its first use
    depends_on("libwebp", when="+webp")
    depends_on("libtiff@4.5:", when="+tiff")
    depends_on("libheif@1.15:", when="+heif")  # loaded with its first use, as are the next three
    depends_on("libde265", when="+heif")
    depends_on("dav1d", when="+heif")
    depends_on("libarchive@3.6:", when="+archive")
    depends_on("onnx@1.12:", when="+onnx")
    depends_on("protobuf@3.21", when="+onnx")
    depends_on("simgrid@3.32: +smpi", when="+simulator")
    depends_on("cuda@12:", when="+cuda")

    conflicts("%gcc@:11", msg="C++20 is needed as GCC 12 has it")
    conflicts("platform=darwin", msg="the program is written for Linux")

    def cmake_args(self):
        options = ["mpi", "onednn", "onnx", "hdf5", "webp", "tiff", "heif", "archive"]
        return [
            *(self.define_from_variant(f"CPUTRAIN_{name.upper()}", name) for name in options),
            self.define_from_variant("CPUTRAIN_SMPI", "simulator"),
            self.define_from_variant("CPUTRAIN_CUDA", "cuda"),
            # Spack has no package of Chart.js: reports have tables without plots.
            self.define("CPUTRAIN_CHARTS", False),
            self.define("CPUTRAIN_TESTS", False),
            self.define("CPUTRAIN_ROOT_LINK", False),
        ]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def train(self):
        cputrain = Executable(self.prefix.bin.cputrain)
        with working_dir(self.build_directory):
            cputrain(
                *"--data synthetic:40 --image-size 64 --epochs 1 --overwrite --out run".split()
            )

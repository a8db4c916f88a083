# shellcheck shell=bash
# Sourced by the scripts that make packages, in the project's root: `build_package [OPTION...]` builds all of what is
# installed, in build-package with these options of CMake, and sets SOURCE_DATE_EPOCH.

build_package() {
  local launcher
  # Times in the packages are those of the commit, or of the packaging files where there is none.
  if [[ -z ${SOURCE_DATE_EPOCH-} ]]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)
  fi
  export SOURCE_DATE_EPOCH
  launcher=$(command -v ccache || true)
  cmake -S . -B build-package -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DCPUTRAIN_TESTS=OFF \
    -DCPUTRAIN_ROOT_LINK=OFF -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" "$@"
  cmake --build build-package -j "$(nproc)"
}

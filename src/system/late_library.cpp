#include "system/late_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

#include "core/text.h"

namespace cputrain::system {

LateLibrary::LateLibrary(const char* name, const char* file, const char* package)
    : name_(name), package_(package), library_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  if (library_) return;
  const char* const error = ::dlerror();
  const std::string why = error ? error : "the loader says no reason";
  library_ = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library_) refuse(why);
}

void* LateLibrary::address_of(const char* name) const {
  void* const address = ::dlsym(library_, name);
  if (!address) refuse(fmt::format("it has no {}", name));
  return address;
}

void LateLibrary::refuse(const std::string& why) const {
  throw std::runtime_error(
      fmt::format("{}, which cannot be loaded ({}); install it (Debian's {} brings it), name its "
                  "folder in LD_LIBRARY_PATH",
                  name_, printable(why), package_));
}

}  // namespace cputrain::system

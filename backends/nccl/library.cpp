#include "backends/nccl/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <climits>
#include <cstdlib>

#include "core/text.h"

namespace cputrain::nccl {
namespace {

constexpr int kOldest = 21000, kPast = 30000;  ///< 2.10.0 and 3.0.0

constexpr const char* kRemedy =
    "install libnccl2 of 2.10 or newer, or name its folder in LD_LIBRARY_PATH";

template <class Function>
bool find(void* library, const char* name, Function& function) {
  void* const found = ::dlsym(library, name);
  function = reinterpret_cast<Function>(found);
  return found != nullptr;
}

/// "" or the first function that is missing.
std::string find_all(void* library, Calls& calls) {
  const auto missing = [&](const char* name, auto& function) {
    return !find(library, name, function);
  };
  if (missing("ncclGetVersion", calls.get_version)) return "ncclGetVersion";
  if (missing("ncclGetErrorString", calls.get_error_string)) return "ncclGetErrorString";
  if (missing("ncclGetUniqueId", calls.get_unique_id)) return "ncclGetUniqueId";
  if (missing("ncclCommInitRank", calls.comm_init_rank)) return "ncclCommInitRank";
  if (missing("ncclCommGetAsyncError", calls.comm_get_async_error)) return "ncclCommGetAsyncError";
  if (missing("ncclCommDestroy", calls.comm_destroy)) return "ncclCommDestroy";
  if (missing("ncclCommAbort", calls.comm_abort)) return "ncclCommAbort";
  if (missing("ncclAllReduce", calls.all_reduce)) return "ncclAllReduce";
  find(library, "ncclGetLastError", calls.get_last_error);
  find(library, "ncclCommInitRankConfig", calls.comm_init_rank_config);
  find(library, "ncclCommFinalize", calls.comm_finalize);
  return "";
}

Library none(const std::string& file, const std::string& why) {
  return {.file = file, .why_none = why, .remedy = kRemedy};
}

/// The file that a function came from.
std::string file_of(const Calls& calls, const std::string& asked) {
  Dl_info info{};
  const bool known = ::dladdr(reinterpret_cast<const void*>(calls.get_version), &info) != 0;
  return known && info.dli_fname ? info.dli_fname : asked;
}

}  // namespace

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Library checked(const Calls& calls, std::string file) {
  int version = 0;
  if (calls.get_version(&version) != Result::success) {
    return none(file, "NCCL does not say its version");
  }
  if (version < kOldest) return none(file, "NCCL is older than 2.10");
  if (version >= kPast) {
    return none(file, fmt::format("NCCL {} is not known to this program, which knows 2.10 and "
                                  "newer of 2",
                                  version_text(version)));
  }
  return {.calls = &calls, .version = version, .file = std::move(file)};
}

/// Stays loaded: it has threads.
Library load(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const error = ::dlerror();
    return none(file, fmt::format("NCCL is not there ({})", printable(error ? error : file)));
  }
  auto* const calls = new Calls;  // as long as the library
  const std::string missing = find_all(library, *calls);
  if (!missing.empty()) {
    return none(file, fmt::format("{} has no function {}", printable(file), missing));
  }
  return checked(*calls, printable(file_of(*calls, file)));
}

/// Registered arrays can change which algorithm a captured sum takes. The first pass of a kind is
/// not captured, and after a checkpoint there is a first one again: bits must not depend on that.
const Library& library() {
  static const Library loaded = [] {
    ::setenv("NCCL_GRAPH_REGISTER", "0", 0);
    return load("libnccl.so.2");
  }();
  return loaded;
}

}  // namespace cputrain::nccl

#include "backends/nccl/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include "core/casts.h"
#include "core/text.h"

namespace cputrain::nccl {
namespace {

/// 2.19.0 and 3.0.0. Calls that return at once came with 2.14. Up to 2.18 their thread belongs to
/// the thread that called: NCCL does not find it when another one gives the communicator up, and
/// frees what it works on.
constexpr int kOldest = 21900, kPast = 30000;

constexpr const char* kRemedy =
    "install libnccl2 of 2.19 or newer, or name its folder in LD_LIBRARY_PATH";

constexpr const char* kSumsInSwitches = "NCCL_NVLS_ENABLE";

/// What changes bits, and NCCL does by itself. Registered arrays can change which algorithm a
/// captured sum takes, and which passes are captured depends on checkpoints. NVLink SHARP adds in
/// the switch, in another order from call to call (github.com/NVIDIA/nccl/issues/1497).
constexpr std::array kTurnedOff{"NCCL_GRAPH_REGISTER", kSumsInSwitches};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  void* const found = ::dlsym(library, name);
  function = reinterpret_cast<Function>(found);
  return found != nullptr;
}

/// "" or the first function that is missing beside the version.
std::string find_all(void* library, Calls& calls) {
  const auto missing = [&](const char* name, auto& function) {
    return !find(library, name, function);
  };
  if (missing("ncclGetErrorString", calls.get_error_string)) return "ncclGetErrorString";
  if (missing("ncclGetUniqueId", calls.get_unique_id)) return "ncclGetUniqueId";
  if (missing("ncclGetLastError", calls.get_last_error)) return "ncclGetLastError";
  if (missing("ncclCommInitRankConfig", calls.comm_init_rank_config)) {
    return "ncclCommInitRankConfig";
  }
  if (missing("ncclCommGetAsyncError", calls.comm_get_async_error)) return "ncclCommGetAsyncError";
  if (missing("ncclCommFinalize", calls.comm_finalize)) return "ncclCommFinalize";
  if (missing("ncclCommDestroy", calls.comm_destroy)) return "ncclCommDestroy";
  if (missing("ncclCommAbort", calls.comm_abort)) return "ncclCommAbort";
  if (missing("ncclAllReduce", calls.all_reduce)) return "ncclAllReduce";
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
  const int major = version < 10000 ? 1000 : 10000;  // until 2.8, and since
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

Library checked(const Calls& calls, std::string file) {
  int version = 0;
  if (calls.get_version(&version) != Result::success) {
    return none(file, "NCCL does not say its version");
  }
  if (version < kOldest) {
    return none(file, fmt::format("NCCL {} is older than 2.19", version_text(version)));
  }
  if (version >= kPast) {
    return none(file, fmt::format("NCCL {} is not known to this program, which knows 2.19 and "
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
  auto calls = std::make_unique<Calls>();
  const auto lacks = [&](const std::string& function) {
    return none(file, fmt::format("{} has no function {}", printable(file), function));
  };
  if (!find(library, "ncclGetVersion", calls->get_version)) return lacks("ncclGetVersion");
  const Library found = checked(*calls, printable(file_of(*calls, file)));
  if (!found.calls) return found;
  const std::string missing = find_all(library, *calls);
  if (!missing.empty()) return lacks(missing);
  static_cast<void>(calls.release());  // as long as the library
  return found;
}

/// NCCL reads variables when the first communicator is made, and those of its configuration files
/// only where the environment has none.
const Library& library() {
  static const Library loaded = [] {
    for (const char* name : kTurnedOff) ::setenv(name, "0", 0);
    return load("libnccl.so.2");
  }();
  return loaded;
}

/// As NCCL reads it: what is no number counts as 0, and an empty value as if there were none.
std::string varying_bits() {
  const char* const value = std::getenv(kSumsInSwitches);
  if (!value || (*value && std::strtoll(value, nullptr, 0) == 0)) return "";
  return fmt::format("{}={}", kSumsInSwitches, printable(value));
}

/// By the sources of 2.28 (transport/p2p.cc, graph/connect.cc, init.cc): a ring or a tree of a node
/// has two neighbours on each channel. From each a rank receives through 4 MiB, 4.7 MiB and
/// 0.5 MiB, one for each protocol, and a page sends to it, both in whole units of 2 MiB. An
/// H100 gets 24 channels and a B200 32 by the search for rings; since 2.25 there may be 64. Buffers
/// of networks are as large, on fewer channels. What code and graphs take is a guess.
std::size_t estimated_memory(int ranks) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  constexpr std::size_t kChannels = 32, kNeighbour = (10 + 2) * kMiB, kCodeAndGraphs = 192 * kMiB;
  if (ranks < 2) return 0;  // its sums start no kernel
  const auto neighbours = to_size(std::min(ranks - 1, 2));
  return kChannels * neighbours * kNeighbour + kCodeAndGraphs;
}

}  // namespace cputrain::nccl

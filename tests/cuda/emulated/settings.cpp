#include "emulated/settings.h"

#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "emulated/memory.h"
#include "emulated/run_state.h"
#include "emulated/shadow.h"
#include "emulated/streams.h"

namespace cputrain::emulated {
namespace {

constexpr GpuLimits kA100{"A100", 8, 0, 108, std::size_t{163} << 10, std::size_t{80} << 30};
constexpr GpuLimits kH100{"H100", 9, 0, 132, std::size_t{227} << 10, std::size_t{80} << 30};
constexpr GpuLimits kB200{"B200", 10, 0, 148, std::size_t{227} << 10, std::size_t{180} << 30};

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

[[noreturn]] void refuse(const std::string& name, std::string_view value, const char* known) {
  fail(ExitCode::usage, name + "=" + std::string(value) + " is not known; give " + known);
}

std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

void choose_gpu(Settings& s) {
  const std::string_view value = variable("CPUTRAIN_EMULATED_GPU");
  if (value.empty() || value == "h100") return;
  if (value != "a100" && value != "b200") {
    refuse("CPUTRAIN_EMULATED_GPU", value, "a100, h100 or b200");
  }
  s.gpu = value == "a100" ? Gpu::a100 : Gpu::b200;
}

void choose_order(Settings& s) {
  constexpr std::string_view kRandom = "random:";
  const std::string_view value = variable("CPUTRAIN_EMULATED_ORDER");
  if (value.empty() || value == "forward") return;
  if (value == "reverse") {
    s.order = Order::reverse;
    return;
  }
  const auto seed =
      value.starts_with(kRandom) ? number(value.substr(kRandom.size())) : std::nullopt;
  if (!seed) refuse("CPUTRAIN_EMULATED_ORDER", value, "forward, reverse or random:SEED");
  s.order = Order::random;
  s.seed = *seed;
}

void choose_devices(Settings& s) {
  constexpr unsigned kMost = 64;
  const std::string_view value = variable("CPUTRAIN_EMULATED_DEVICES");
  if (value.empty()) return;
  const auto count = number(value);
  if (!count || *count == 0 || *count > kMost) {
    refuse("CPUTRAIN_EMULATED_DEVICES", value, "a number from 1 to 64");
  }
  s.devices = static_cast<int>(*count);
}

void choose_kernels(Settings& s) {
  const std::string_view value = variable("CPUTRAIN_EMULATED_KERNELS");
  if (value.empty() || value == "run") return;
  s.runs_kernels = value != "skip";
  if (!s.runs_kernels) return;
  if (value != "count") refuse("CPUTRAIN_EMULATED_KERNELS", value, "run, count or skip");
  if (!kernels_are_checked()) {
    fail(ExitCode::usage,
         "CPUTRAIN_EMULATED_KERNELS=count: plain kernels do not report what they read and write; "
         "set CPUTRAIN_EMULATED=checked");
  }
  s.counts_bytes = true;
}

Settings& chosen() {
  static Settings s = settings_of_environment();
  return s;
}

}  // namespace

Settings settings_of_environment() {
  Settings s;
  choose_gpu(s);
  choose_order(s);
  choose_devices(s);
  choose_kernels(s);
  return s;
}

const Settings& settings() { return chosen(); }

void restart(const Settings& s) {
  Devices& d = devices();
  const std::lock_guard lock(d.mutex);
  chosen() = s;
  d.queue.drop_all();
  d.queue.seed(s.seed);
  seed_threads(s.seed);
  d.failed.clear();
  count_waits_anew();
}

const GpuLimits& limits() {
  switch (settings().gpu) {
    case Gpu::a100:
      return kA100;
    case Gpu::b200:
      return kB200;
    case Gpu::h100:
      break;
  }
  return kH100;
}

}  // namespace cputrain::emulated

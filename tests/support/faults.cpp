// The program of tests whose training breaks at a place that the environment names.
#include "composition/program.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/text.h"
#include "system/clock.h"

namespace cputrain::loop {
namespace {

enum class Kind { kill, hang, nan, bitflip, slow, busy };
constexpr std::array<std::string_view, 6> kKinds{"kill", "hang", "nan", "bitflip", "slow", "busy"};
using comm::Phase;

struct Fault {
  Kind kind;
  int rank;
  std::uint64_t step;
  Phase phase;
  std::atomic<bool> done = false;  ///< each comes once
};

[[noreturn]] void wrong(const std::string& part) {
  const std::vector<std::string> names(comm::kPhaseNames.begin(), comm::kPhaseNames.end());
  fail(ExitCode::usage,
       fmt::format("CPUTRAIN_FAULT: '{}' is no fault; write kill|hang|nan|bitflip|slow|busy:RANK:"
                   "STEP:PHASE, several with commas between them, steps from 1, with a PHASE of {} "
                   "(nan: input to backward; bitflip: input to update)",
                   part, join(names, ", ")));
}

template <class T>
std::optional<T> number_of(const std::string& word) {
  T value{};
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  return error == std::errc() && stop == end && value >= 0 ? std::optional(value) : std::nullopt;
}

template <std::size_t n>
std::optional<std::size_t> place_in(const std::array<std::string_view, n>& names,
                                    const std::string& word) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == word) return i;
  }
  return std::nullopt;
}

std::deque<Fault> faults_of(const char* text) {
  std::deque<Fault> faults;
  if (!text) return faults;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> words = split(part, ':');
    if (words.size() != 4) wrong(part);
    const auto kind = place_in(kKinds, words[0]);
    const auto phase = place_in(comm::kPhaseNames, words[3]);
    const auto rank = number_of<int>(words[1]);
    const auto step = number_of<std::uint64_t>(words[2]);
    if (!kind || !phase || !rank || !step) wrong(part);
    Fault& fault =
        faults.emplace_back(static_cast<Kind>(*kind), *rank, *step, static_cast<Phase>(*phase));
    const auto is_in = [&](Phase last) {
      return fault.phase >= Phase::input && fault.phase <= last;
    };
    if (fault.kind == Kind::nan && !is_in(Phase::backward)) wrong(part);
    if (fault.kind == Kind::bitflip && !is_in(Phase::update)) wrong(part);
  }
  return faults;
}

/// The upper bit of the fraction of the arena's first weight, which is one of the last layer's.
void flip_a_bit(const FaultPlace& place) {
  std::byte* const byte =
      place.weights.bytes().data() + size_of(place.weights.dtype) - 2;  // little-endian
  std::byte value{};
  place.memory->read(byte, {&value, 1});
  value ^= std::byte{0x08};
  place.memory->write({&value, 1}, byte);
}

void let_happen(Kind kind, const FaultPlace& place) {
  switch (kind) {
    case Kind::kill:
      ::kill(::getpid(), SIGKILL);
      [[fallthrough]];  // it comes at any moment
    case Kind::hang:
      for (;;) ::pause();
    case Kind::nan:
      *place.loss_scale = std::numeric_limits<double>::quiet_NaN();
      return;
    case Kind::bitflip:
      return flip_a_bit(place);
    case Kind::slow:
      return std::this_thread::sleep_for(std::chrono::seconds(1));
    case Kind::busy: {
      const system::Stopwatch watch;
      while (watch.seconds() < 3.5) continue;
    }
  }
}

void break_at(const FaultPlace& place) {
  static std::deque<Fault> faults = faults_of(std::getenv("CPUTRAIN_FAULT"));
  for (Fault& fault : faults) {
    const bool here =
        fault.rank == place.rank && fault.step == place.step && fault.phase == place.phase;
    if (here && !fault.done.exchange(true)) let_happen(fault.kind, place);
  }
}

}  // namespace
}  // namespace cputrain::loop

int main(int argc, char** argv) {
  return cputrain::composition::run_program(argc, argv, cputrain::loop::break_at);
}

#include "comm/watch/beat.h"

#include <cmath>
#include <cstring>

namespace cputrain::watch {
namespace {

struct Wire {
  std::uint64_t token, calls, step;
  std::uint32_t kind, way;
  std::int32_t rank;
  std::uint8_t phase, waits, lacks, unused;
  double grace, still, idle, fair, deaf;
  std::uint64_t check;  ///< a word that begins alike and ends otherwise is none
};
static_assert(sizeof(Wire) == kBeatBytes);

constexpr std::uint64_t kCheck = 0x6265'6174'2032'0a00;  // "beat 2"

bool is_duration(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

bool is_lack(std::uint8_t cause) {
  const auto lack = static_cast<Cause>(cause);
  return lack == Cause::none || (lack >= Cause::cpu && lack <= Cause::launcher);
}

}  // namespace

std::array<std::byte, kBeatBytes> to_bytes(const Beat& beat, std::uint64_t token) {
  const Report& report = beat.report;
  const Wire wire{.token = token,
                  .calls = report.place.calls,
                  .step = report.place.step,
                  .kind = static_cast<std::uint32_t>(beat.kind),
                  .way = beat.way,
                  .rank = beat.rank,
                  .phase = static_cast<std::uint8_t>(report.place.phase),
                  .waits = report.waits,
                  .lacks = static_cast<std::uint8_t>(report.lacks),
                  .unused = 0,
                  .grace = beat.grace,
                  .still = report.still,
                  .idle = report.idle,
                  .fair = report.fair,
                  .deaf = report.deaf,
                  .check = kCheck ^ token};
  std::array<std::byte, kBeatBytes> bytes;
  std::memcpy(bytes.data(), &wire, sizeof wire);
  return bytes;
}

std::optional<Beat> beat_of(std::span<const std::byte> bytes, std::uint64_t token, int ranks) {
  Wire wire;
  if (bytes.size() != sizeof wire) return std::nullopt;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  const bool is_ours = wire.token == token && wire.check == (kCheck ^ token);
  if (!is_ours || wire.rank < 0 || wire.rank >= ranks) return std::nullopt;
  if (wire.kind > static_cast<std::uint32_t>(Beat::Kind::verdict)) return std::nullopt;
  if (wire.phase >= comm::kPhaseNames.size()) return std::nullopt;
  if (!is_lack(wire.lacks)) return std::nullopt;
  for (const double seconds : {wire.grace, wire.still, wire.idle, wire.fair, wire.deaf}) {
    if (!is_duration(seconds)) return std::nullopt;
  }
  return Beat{.kind = static_cast<Beat::Kind>(wire.kind),
              .rank = wire.rank,
              .way = wire.way,
              .grace = wire.grace,
              .report = {.place = {wire.calls, wire.step, static_cast<comm::Phase>(wire.phase)},
                         .waits = wire.waits != 0,
                         .lacks = static_cast<Cause>(wire.lacks),
                         .still = wire.still,
                         .idle = wire.idle,
                         .fair = wire.fair,
                         .deaf = wire.deaf}};
}

}  // namespace cputrain::watch

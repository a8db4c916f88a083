#include "comm/watch/beat.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

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

sockaddr_in socket_address(const Address& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = address.host;
  to.sin_port = address.port;
  return to;
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

std::uint32_t this_machine() { return htonl(INADDR_LOOPBACK); }

std::vector<std::uint32_t> network_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<std::uint32_t> found;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    const bool is_up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0;
    if (!is_up || !entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET) continue;
    found.push_back(reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr);
  }
  return found;
}

Datagrams::Datagrams(bool from_everywhere)
    : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  sockaddr_in own = socket_address({from_everywhere ? htonl(INADDR_ANY) : this_machine(), 0});
  socklen_t length = sizeof own;
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  if (socket_ < 0 || ::bind(socket_, address, length) != 0) return;
  if (::getsockname(socket_, address, &length) == 0) port_ = own.sin_port;
}

Datagrams::~Datagrams() { close(); }

void Datagrams::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  port_ = 0;
}

void Datagrams::send(const Address& address, std::span<const std::byte> bytes) {
  const sockaddr_in to = socket_address(address);
  static_cast<void>(::sendto(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

std::optional<Datagrams::Received> Datagrams::receive(std::span<std::byte> buffer) {
  sockaddr_in from{};
  socklen_t length = sizeof from;
  const ssize_t size = ::recvfrom(socket_, buffer.data(), buffer.size(), MSG_TRUNC,
                                  reinterpret_cast<sockaddr*>(&from), &length);
  if (size < 0) return std::nullopt;
  return Received{{from.sin_addr.s_addr, from.sin_port}, static_cast<std::size_t>(size)};
}

void Datagrams::wait(double seconds) {
  const double ms = std::clamp(1e3 * seconds, 1.0, 60e3);
  if (!is_open()) {
    return std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(ms)));
  }
  pollfd one{socket_, POLLIN, 0};
  ::poll(&one, 1, static_cast<int>(ms));
}

}  // namespace cputrain::watch

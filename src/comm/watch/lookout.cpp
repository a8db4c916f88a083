#include "comm/watch/lookout.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "system/usage/work_meter.h"

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

std::string own_host() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0;
  return known && name[0] != '\0' ? name.data() : "unknown";
}

std::uint64_t random_token() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// The processes that see each other's numbers have one; 0 where it is not known.
std::uint64_t process_space() {
  struct stat found {};
  return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

/// "TOKEN SPACE PROCESS PORT NUMBER ADDRESS... HOST": the name of a host may have blanks.
std::string own_text(const Datagrams& socket) {
  std::ostringstream text;
  const auto addresses = network_addresses();
  text << random_token() << ' ' << process_space() << ' ' << ::getpid() << ' ' << socket.port()
       << ' ' << addresses.size();
  for (const std::uint32_t address : addresses) text << ' ' << address;
  text << ' ' << own_host();
  return text.str();
}

/// Whether a rank of this machine is silent for want of a CPU, as the kernel says of its thread
/// that speaks. One that is stopped, dead or at sleep is silent by itself.
bool wants_to_speak(int process) {
  return std::ranges::any_of(system::thread_states(std::to_string(process)), [](const auto& state) {
    return state.name == kThreadName && state.state == 'R';
  });
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

sockaddr_in address_of(std::uint32_t host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = host;
  address.sin_port = port;
  return address;
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
  sockaddr_in own = address_of(from_everywhere ? htonl(INADDR_ANY) : this_machine(), 0);
  socklen_t length = sizeof own;
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  if (!socket_.is_open() || ::bind(socket_.number(), address, length) != 0) return;
  if (::getsockname(socket_.number(), address, &length) == 0) port_ = own.sin_port;
}

void Datagrams::close() {
  socket_ = system::Descriptor();
  port_ = 0;
}

void Datagrams::send(const sockaddr_in& to, std::span<const std::byte> bytes) {
  static_cast<void>(::sendto(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

std::optional<std::size_t> Datagrams::receive(std::span<std::byte> buffer, sockaddr_in& from) {
  socklen_t length = sizeof from;
  const ssize_t size = ::recvfrom(socket_.number(), buffer.data(), buffer.size(), MSG_TRUNC,
                                  reinterpret_cast<sockaddr*>(&from), &length);
  return size < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(size));
}

void Datagrams::wait(double seconds) {
  const double ms = std::clamp(1e3 * seconds, 1.0, 60e3);
  if (!is_open()) {
    return std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(ms)));
  }
  pollfd one{socket_.number(), POLLIN, 0};
  ::poll(&one, 1, static_cast<int>(ms));
}

int Team::deputy() const {
  const auto other = std::ranges::find_if(nodes, [&](int node) { return node != nodes.front(); });
  return other == nodes.end() ? 1 : static_cast<int>(other - nodes.begin());
}

bool Team::is_first_of_node() const {
  for (int other = 1; other < rank; ++other) {
    if (other != deputy() && is_on_own_node(other)) return false;
  }
  return !observes();
}

Team gather_team(comm::Communicator& communicator, const comm::NodeMap& map,
                 const Datagrams& socket) {
  Team team{.rank = communicator.rank(), .nodes = map.by_rank()};
  const std::vector<std::string> texts = communicator.gather(own_text(socket));
  for (int rank = 0; rank < communicator.size(); ++rank) {
    std::istringstream words(texts[static_cast<std::size_t>(rank)]);
    std::uint64_t token = 0;
    sockaddr_in address = address_of(0, 0);
    std::uint64_t space = 0;
    int process = 0;
    std::size_t addresses = 0;
    words >> token >> space >> process >> address.sin_port >> addresses;
    if (rank == 0) team.token = token;
    const bool is_seen = space != 0 && space == process_space() && team.is_on_own_node(rank);
    team.processes.push_back(is_seen ? process : 0);
    std::vector<sockaddr_in>& all = team.addresses.emplace_back();
    const bool listens = address.sin_port != 0;
    if (listens && team.is_on_own_node(rank)) {
      all.push_back(address_of(this_machine(), address.sin_port));
    }
    for (std::size_t i = 0; i < addresses && words >> address.sin_addr.s_addr; ++i) {
      // A single machine listens to no other.
      if (listens && map.nodes() > 1) all.push_back(address);
    }
    words.ignore(1);
    std::getline(words, team.hosts.emplace_back(), '\0');
  }
  return team;
}

Lookout::Lookout(const Team& team, Datagrams& socket, const Limits& limits)
    : team_(team),
      socket_(socket),
      silent_after_(limits.silent_after()),
      ranks_(static_cast<std::size_t>(team.size())) {}

std::vector<int> Lookout::observers() const {
  std::vector<int> others;
  for (const int observer : {0, team_.deputy()}) {
    if (observer != team_.rank && observer < team_.size()) others.push_back(observer);
  }
  return others;
}

void Lookout::report(Report own, double now) {
  const auto answers = static_cast<std::size_t>(team_.rank == 0 ? team_.deputy() : 0);
  if (team_.size() > 1) own.deaf = now - ranks_[answers].heard.value_or(0);
  own_ = own;
  ranks_[static_cast<std::size_t>(team_.rank)].last = own;
  for (const int observer : observers()) send_report(observer, now, Beat::Kind::report);
}

/// To each of an observer's addresses until it has answered by one of them, and again when it does
/// so no more.
void Lookout::send_report(int observer, double now, Beat::Kind kind) {
  Known& known = ranks_[static_cast<std::size_t>(observer)];
  if (!hears(observer, now)) known.way.reset();
  const std::vector<sockaddr_in>& addresses = team_.addresses[static_cast<std::size_t>(observer)];
  for (std::size_t way = 0; way < addresses.size(); ++way) {
    if (known.way && *known.way != way) continue;
    const Beat beat{
        .kind = kind, .rank = team_.rank, .way = static_cast<std::uint32_t>(way), .report = own_};
    socket_.send(addresses[way], to_bytes(beat, team_.token));
  }
}

void Lookout::listen(double now) {
  const int most = 4 * team_.size() + 64;  // a sender without end keeps this rank from nothing
  std::array<std::byte, kBeatBytes> buffer;
  for (int i = 0; i < most; ++i) {
    sockaddr_in from{};
    const auto bytes = socket_.receive(buffer, from);
    if (!bytes) return;
    if (*bytes != buffer.size()) continue;
    const auto beat = beat_of(buffer, team_.token, team_.size());
    if (beat && beat->rank != team_.rank) take(*beat, from, now);
  }
}

void Lookout::take(const Beat& beat, const sockaddr_in& from, double now) {
  Known& sender = ranks_[static_cast<std::size_t>(beat.rank)];
  sender.heard = now;
  switch (beat.kind) {
    case Beat::Kind::report:
    case Beat::Kind::farewell:
      sender.last = beat.report;
      sender.from = from;
      sender.finished = sender.finished || beat.kind == Beat::Kind::farewell;
      if (team_.observes()) {
        const Beat answer{.kind = Beat::Kind::answer, .rank = team_.rank, .way = beat.way};
        socket_.send(from, to_bytes(answer, team_.token));
      }
      return;
    case Beat::Kind::answer:
      if (beat.way < team_.addresses[static_cast<std::size_t>(beat.rank)].size()) {
        sender.way = beat.way;
      }
      return;
    case Beat::Kind::verdict:
      verdict_ = beat.grace;
  }
}

void Lookout::to_all(const Beat& beat) {
  for (const Known& known : ranks_) {
    if (known.from) socket_.send(*known.from, to_bytes(beat, team_.token));
  }
}

void Lookout::farewell() {
  constexpr int kTimes = 2;  // one may be lost
  for (int i = 0; i < kTimes; ++i) {
    for (const int observer : observers()) send_report(observer, 0, Beat::Kind::farewell);
    to_all({.kind = Beat::Kind::farewell, .rank = team_.rank, .report = own_});
  }
}

void Lookout::pass_verdict(double grace) {
  constexpr int kTimes = 3;
  for (int i = 0; i < kTimes; ++i) {
    to_all({.kind = Beat::Kind::verdict, .rank = team_.rank, .grace = grace});
  }
}

bool Lookout::hears(int rank, double now) const {
  const auto& heard = ranks_[static_cast<std::size_t>(rank)].heard;
  return heard && now - *heard < silent_after_;
}

bool Lookout::node_was_heard(int rank) const {
  if (team_.is_on_own_node(rank)) return true;
  for (int other = 0; other < team_.size(); ++other) {
    const auto index = static_cast<std::size_t>(other);
    if (team_.nodes[index] == team_.nodes[static_cast<std::size_t>(rank)] && ranks_[index].heard) {
      return true;
    }
  }
  return false;
}

RankView Lookout::view(int rank, double now) const {
  const auto index = static_cast<std::size_t>(rank);
  const Known& known = ranks_[index];
  if (rank == team_.rank) return {.rank = rank, .last = own_, .heard = true};
  RankView view{.rank = rank,
                .last = known.last,
                .silence = now - known.heard.value_or(0),
                .heard = known.heard.has_value(),
                .hidden = !known.heard && (team_.addresses[index].empty() || !node_was_heard(rank)),
                .finished = known.finished};
  const int process = team_.processes.empty() ? 0 : team_.processes[index];
  if (view.silence >= silent_after_ && process != 0 && wants_to_speak(process)) {
    view.last.lacks = Cause::cpu;
    view.last.waits = false;
    view.last.still += std::exchange(view.silence, 0);
    view.last.idle = 0;
    view.heard = true;
  }
  return view;
}

std::vector<RankView> Lookout::views(double now) const {
  std::vector<RankView> views;
  for (int rank = 0; rank < team_.size(); ++rank) {
    const bool known =
        team_.observes() || rank == team_.rank || rank == 0 || rank == team_.deputy();
    if (!known) continue;
    // Observers send others no more than that they are there.
    if (!team_.observes() && rank != team_.rank && hears(rank, now)) continue;
    views.push_back(view(rank, now));
  }
  return views;
}

bool Lookout::speaks(double now) const {
  if (team_.rank == 0) return true;
  // Where rank 0 gets no reports from this side, it cannot print them.
  if (team_.observes()) return !hears(0, now) || ranks_.front().last.deaf >= silent_after_;
  return judges(now) && team_.is_first_of_node();
}

bool Lookout::judges(double now) const {
  if (team_.observes()) return speaks(now);
  return !hears(0, now) && !hears(team_.deputy(), now);
}

}  // namespace cputrain::watch

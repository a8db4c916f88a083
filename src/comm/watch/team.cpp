#include "comm/watch/team.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <sstream>

namespace cputrain::watch {
namespace {

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

}  // namespace

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
    Address address;
    std::uint64_t space = 0;
    int process = 0;
    std::size_t addresses = 0;
    words >> token >> space >> process >> address.port >> addresses;
    if (rank == 0) team.token = token;
    const bool is_seen = space != 0 && space == process_space() && team.is_on_own_node(rank);
    team.processes.push_back(is_seen ? process : 0);
    std::vector<Address>& all = team.addresses.emplace_back();
    const bool listens = address.port != 0;
    if (listens && team.is_on_own_node(rank)) all.push_back({this_machine(), address.port});
    for (std::size_t i = 0; i < addresses && words >> address.host; ++i) {
      // A single machine listens to no other.
      if (listens && map.nodes() > 1) all.push_back(address);
    }
    words.ignore(1);
    std::getline(words, team.hosts.emplace_back(), '\0');
  }
  return team;
}

}  // namespace cputrain::watch

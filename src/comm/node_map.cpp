#include "comm/node_map.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace cputrain::comm {

int NodeMap::lanes() const {
  std::size_t least = own().size();
  for (const auto& members : ranks) least = std::min(least, members.size());
  return static_cast<int>(least);
}

bool NodeMap::even() const {
  return std::ranges::all_of(ranks,
                             [&](const auto& members) { return members.size() == own().size(); });
}

std::vector<int> NodeMap::lane(int lane) const {
  std::vector<int> members;
  for (const auto& node_ranks : ranks)
    members.push_back(node_ranks[static_cast<std::size_t>(lane)]);
  return members;
}

std::vector<int> NodeMap::by_rank() const {
  std::vector<int> node_of;
  for (int one = 0; one < nodes(); ++one) {
    for (const int rank : ranks[static_cast<std::size_t>(one)]) {
      const auto place = static_cast<std::size_t>(rank);
      node_of.resize(std::max(node_of.size(), place + 1));
      node_of[place] = one;
    }
  }
  return node_of;
}

NodeMap read_node_map(Communicator& communicator) {
  const NodeMemory& memory = communicator.node_memory();
  std::ostringstream own;
  own << memory.first_rank() << ' ' << memory.local_rank();
  const std::vector<std::string> all = communicator.gather(own.str());
  std::map<int, std::map<int, int>> ranks_of;  // by first rank, by local rank
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::istringstream text(all[rank]);
    int first = 0, local = 0;
    text >> first >> local;
    ranks_of[first][local] = static_cast<int>(rank);
  }
  NodeMap map;
  map.local = memory.local_rank();
  for (const auto& [first, by_local] : ranks_of) {
    if (first == memory.first_rank()) map.node = map.nodes();
    map.ranks.emplace_back();
    for (const auto& [local, rank] : by_local) map.ranks.back().push_back(rank);
  }
  return map;
}

}  // namespace cputrain::comm

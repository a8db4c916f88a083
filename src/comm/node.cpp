#include "comm/node.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <sstream>

#include "comm/communicator.h"

namespace cputrain::comm {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t n, std::size_t step) { return (n + step - 1) / step * step; }

}  // namespace

std::unique_ptr<system::SharedBlock> NodeMemory::allocate(std::size_t bytes) {
  const std::size_t pages = (bytes + kPage - 1) / kPage;
  const auto position = [&](int rank) {
    return std::min(bytes, pages * static_cast<std::size_t>(rank) /
                               static_cast<std::size_t>(local_size()) * kPage);
  };
  const Range mine{position(local_rank()), position(local_rank() + 1)};
  return allocate_touched(bytes, {&mine, 1});
}

std::unique_ptr<system::SharedBlock> NodeMemory::allocate_in(const std::string&, std::size_t) {
  assert(false && "folder_for() has named no folder");
  return nullptr;
}

Range slice_of(Range whole, int lane, int lanes) {
  const auto position = [&](int k) {
    if (k == lanes) return whole.end;
    const std::size_t even =
        whole.begin + whole.size() * static_cast<std::size_t>(k) / static_cast<std::size_t>(lanes);
    return std::max(whole.begin, even / kSliceGrid * kSliceGrid);
  };
  return {position(lane), position(lane + 1)};
}

NodeArrays::NodeArrays(NodeMemory& memory, std::size_t elements, DType dtype, int each)
    : NodeArrays(memory, elements, dtype, each, std::vector{Range{0, elements}}) {}

NodeArrays::NodeArrays(NodeMemory& memory, std::size_t elements, DType dtype, int each,
                       std::span<const Range> used)
    : elements_(elements),
      dtype_(dtype),
      stride_(round_up(elements * size_of(dtype), kPage)),
      local_rank_(memory.local_rank()),
      local_size_(memory.local_size()),
      each_(each) {
  std::vector<Range> mine;
  for (int i = 0; i < each; ++i) {
    const std::size_t start = stride_ * static_cast<std::size_t>(local_rank_ * each + i);
    for (const Range& range : used) {
      mine.push_back({start + range.begin * size_of(dtype), start + range.end * size_of(dtype)});
      own_bytes_ += mine.back().size();
    }
  }
  block_ = memory.allocate_touched(stride_ * static_cast<std::size_t>(local_size_ * each), mine);
}

Array NodeArrays::of(int local_rank, int which) const {
  const auto place = static_cast<std::size_t>(local_rank * each_ + which);
  return {block_->bytes().data() + place * stride_, elements_, dtype_};
}

std::vector<Array> NodeArrays::slices(Range range) const {
  std::vector<Array> arrays;
  for (int rank = 0; rank < local_size_; ++rank) {
    for (int i = 0; i < each_; ++i) arrays.push_back(of(rank, i).slice(range.begin, range.end));
  }
  return arrays;
}

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

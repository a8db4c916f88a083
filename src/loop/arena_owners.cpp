#include "loop/arena_owners.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <set>
#include <string>

#include "core/hash.h"

namespace cputrain::loop {
namespace {

/// Where a range of a rank begins or ends.
struct Bound {
  std::size_t position;
  int rank;
  bool begins;
};

/// All ranks', in the order of the arena. Collective.
std::vector<Bound> gather_bounds(comm::Communicator& communicator, std::span<const Range> owned) {
  const auto bytes = std::as_bytes(owned);
  const std::vector<std::string> all =
      communicator.gather({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::vector<Bound> bounds;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t at = 0; at + sizeof(Range) <= all[rank].size(); at += sizeof(Range)) {
      Range range;
      std::memcpy(&range, all[rank].data() + at, sizeof range);
      if (range.size() == 0) continue;
      bounds.push_back({range.begin, static_cast<int>(rank), true});
      bounds.push_back({range.end, static_cast<int>(rank), false});
    }
  }
  // A rank's range may begin where another one of it ends.
  std::ranges::sort(bounds, {}, [](const Bound& b) { return std::pair(b.position, b.begins); });
  return bounds;
}

}  // namespace

ArenaOwners::ArenaOwners(comm::Communicator& communicator, std::span<const Range> owned)
    : communicator_(communicator), peers_(communicator.make_point_to_point()) {
  std::set<int> owners;
  std::size_t position = 0;
  for (const Bound& bound : gather_bounds(communicator, owned)) {
    if (bound.position > position && !owners.empty()) {
      pieces_.push_back({{position, bound.position}, {owners.begin(), owners.end()}});
      most_ = std::max(most_, static_cast<int>(owners.size()));
    }
    position = bound.position;
    bound.begins ? (void)owners.insert(bound.rank) : (void)owners.erase(bound.rank);
  }
}

int ArenaOwners::first_owner(std::size_t element) const {
  const auto after = std::ranges::upper_bound(pieces_, element, {},
                                              [](const Piece& piece) { return piece.range.begin; });
  if (after == pieces_.begin()) return -1;
  const Piece& piece = *(after - 1);
  return element < piece.range.end ? piece.owners.front() : -1;
}

std::uint64_t ArenaOwners::hash() const {
  Fnv1a hash;
  for (const Piece& piece : pieces_) {
    hash.add(std::as_bytes(std::span(&piece.range, 1)));
    hash.add(std::as_bytes(std::span(piece.owners)));
  }
  return hash.value();
}

/// Calls f(range) for parts of a piece that go in one message.
template <class F>
void ArenaOwners::for_parts(const Piece& piece, DType dtype, const F& f) {
  const std::size_t most = compute::piece_elements(dtype);
  for (std::size_t begin = piece.range.begin; begin < piece.range.end; begin += most) {
    f(Range{begin, std::min(begin + most, piece.range.end)});
  }
}

/// Where this rank has a range that it owns.
Array ArenaOwners::own_part(std::span<const compute::ArenaPart> mine, Range range) {
  for (const compute::ArenaPart& part : mine) {
    if (range.begin < part.range.begin || range.end > part.range.end) continue;
    return part.values.slice(range.begin - part.range.begin, range.end - part.range.begin);
  }
  assert(false && "other ranges than were named");
  return {};
}

std::span<std::byte> ArenaOwners::staged(std::size_t bytes) {
  staged_.resize(std::max(staged_.size(), bytes));
  return std::span(staged_).first(bytes);
}

void ArenaOwners::send(int to, compute::Memory& memory, const Array& array) {
  if (memory.is_host()) return peers_->send(to, array.bytes());
  const std::span<std::byte> bytes = staged(array.bytes().size());
  memory.read(array.data, bytes);
  peers_->send(to, bytes);
}

void ArenaOwners::receive(int from, compute::Memory& memory, const Array& array) {
  if (memory.is_host()) return peers_->receive(from, array.bytes());
  const std::span<std::byte> bytes = staged(array.bytes().size());
  peers_->receive(from, bytes);
  memory.write(bytes, array.data);
}

void ArenaOwners::gather(int k, std::span<const compute::ArenaPart> mine, compute::Memory& memory,
                         const Array& whole) {
  const int rank = communicator_.rank();
  for (const Piece& piece : pieces_) {
    if (static_cast<std::size_t>(k) >= piece.owners.size()) continue;
    const int from = piece.owners[static_cast<std::size_t>(k)];
    if (rank != 0 && rank != from) continue;
    for_parts(piece, leads() ? whole.dtype : mine.front().values.dtype, [&](Range range) {
      if (rank != 0) return send(0, memory, own_part(mine, range));
      const Array there = whole.slice(range.begin, range.end);
      if (from != 0) return receive(from, memory, there);
      memory.copy(own_part(mine, range).data, there.data, there.bytes().size());
    });
  }
}

void ArenaOwners::deal_part(int owner, std::span<const compute::ArenaPart> mine,
                            compute::Memory& memory, const Array& whole, Range range) {
  const int rank = communicator_.rank();
  if (rank == owner && owner != 0) {
    return receive(0, memory, own_part(mine, range));
  }
  if (rank != 0) return;
  const Array from = whole.slice(range.begin, range.end);
  if (owner != 0) return send(owner, memory, from);
  memory.copy(from.data, own_part(mine, range).data, from.bytes().size());
}

void ArenaOwners::deal(int k, std::span<const compute::ArenaPart> mine, compute::Memory& memory,
                       const Array& whole) {
  for (const Piece& piece : pieces_) {
    if (static_cast<std::size_t>(k) >= piece.owners.size()) continue;
    const int owner = piece.owners[static_cast<std::size_t>(k)];
    if (!leads() && communicator_.rank() != owner) continue;
    for_parts(piece, leads() ? whole.dtype : mine.front().values.dtype,
              [&](Range range) { deal_part(owner, mine, memory, whole, range); });
  }
}

/// To all ranks at once.
void ArenaOwners::broadcast_part(std::span<const compute::ArenaPart> mine, compute::Memory& memory,
                                 const Array& whole, Range range) {
  const Array own = own_part(mine, range);
  const std::span<std::byte> bytes = staged(own.bytes().size());
  if (leads()) {
    const Array from = whole.slice(range.begin, range.end);
    memory.read(from.data, bytes);
  }
  communicator_.broadcast(bytes, 0);
  memory.write(bytes, own.data);
}

void ArenaOwners::deal_to_all(std::span<const compute::ArenaPart> mine, compute::Memory& memory,
                              const Array& whole) {
  const auto ranks = static_cast<std::size_t>(communicator_.size());
  for (const Piece& piece : pieces_) {
    const bool own = std::ranges::count(piece.owners, communicator_.rank()) > 0;
    if (!leads() && !own) continue;
    for_parts(piece, leads() ? whole.dtype : mine.front().values.dtype, [&](Range range) {
      if (piece.owners.size() == ranks && ranks > 1)
        return broadcast_part(mine, memory, whole, range);
      for (const int owner : piece.owners) deal_part(owner, mine, memory, whole, range);
    });
  }
}

}  // namespace cputrain::loop

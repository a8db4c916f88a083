#include "compute/executor/memory_plan.h"

#include <algorithm>
#include <cassert>

namespace cputrain::compute {

MemoryPlan::Block MemoryPlan::add(std::size_t bytes) {
  entries_.push_back({.bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment,
                      .merged_into = entries_.size()});
  return Block{entries_.size() - 1};
}

std::size_t MemoryPlan::root(Block block) const {
  auto index = static_cast<std::size_t>(block);
  while (entries_[index].merged_into != index) index = entries_[index].merged_into;
  return index;
}

void MemoryPlan::merge(Block a, Block b) {
  const std::size_t kept = root(a), gone = root(b);
  if (kept == gone) return;
  const Entry other = entries_[gone];
  entries_[gone].merged_into = kept;
  entries_[kept].bytes = std::max(entries_[kept].bytes, other.bytes);
  if (other.until < other.from) return;  // never used
  use(a, other.from);
  use(a, other.until);
}

void MemoryPlan::use(Block block, int time) {
  Entry& entry = entries_[root(block)];
  const bool unused = entry.until < entry.from;
  entry.from = unused ? time : std::min(entry.from, time);
  entry.until = unused ? time : std::max(entry.until, time);
}

std::size_t MemoryPlan::lowest_offset(const Entry& entry,
                                      const std::vector<const Entry*>& placed) const {
  std::size_t offset = 0;
  for (const Entry* other : placed) {  // sorted by offset
    if (other->until < entry.from || entry.until < other->from) continue;
    if (other->offset >= offset + entry.bytes) break;
    offset = std::max(offset, other->offset + other->bytes);
  }
  return offset;
}

void MemoryPlan::place() {
  std::vector<Entry*> order;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.merged_into != i) continue;
    if (entry.bytes > 0 && entry.from <= entry.until) order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry* a, const Entry* b) { return a->bytes > b->bytes; });
  std::vector<const Entry*> placed;
  for (Entry* entry : order) {
    entry->offset = lowest_offset(*entry, placed);
    peak_ = std::max(peak_, entry->offset + entry->bytes);
    const auto behind =
        std::upper_bound(placed.begin(), placed.end(), entry,
                         [](const Entry* a, const Entry* b) { return a->offset < b->offset; });
    placed.insert(behind, entry);
  }
}

std::size_t MemoryPlan::offset(Block block) const {
  const Entry& entry = entries_[root(block)];
  assert(entry.bytes == 0 || entry.from <= entry.until);
  return entry.offset;
}

}  // namespace cputrain::compute

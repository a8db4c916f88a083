#include "backends/cpu/memory_plan.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace cputrain {

MemoryPlan::Block MemoryPlan::add(std::size_t bytes) {
  entries_.push_back({.bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment});
  return Block{entries_.size() - 1};
}

void MemoryPlan::use(Block block, int time) {
  Entry& entry = entries_[static_cast<std::size_t>(block)];
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
  for (Entry& entry : entries_) {
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
  const Entry& entry = entries_[static_cast<std::size_t>(block)];
  assert(entry.bytes == 0 || entry.from <= entry.until);
  return entry.offset;
}

std::size_t MemoryPlan::sum() const {
  return std::accumulate(entries_.begin(), entries_.end(), std::size_t{0},
                         [](std::size_t total, const Entry& e) { return total + e.bytes; });
}

}  // namespace cputrain

#include "emulated/traffic.h"

#include <sys/mman.h>

#include <utility>
#include <vector>

#include "core/error.h"
#include "emulated/memory.h"

namespace cputrain::emulated {
namespace {

/// A bit for each sector of the devices' memory, in address space of which only what is touched
/// takes memory.
class Sectors {
 public:
  /// Returns how many of them were not there.
  std::uint64_t add(std::size_t first, std::size_t last) {
    if (!words_) make();
    std::uint64_t added = 0;
    for (std::size_t sector = first; sector <= last; ++sector) {
      std::uint64_t& word = words_[sector / kBits];
      const std::uint64_t bit = std::uint64_t{1} << sector % kBits;
      if (word & bit) continue;
      if (word == 0) used_.push_back(sector / kBits);
      word |= bit;
      ++added;
    }
    return added;
  }
  void clear() {
    for (const std::size_t word : used_) words_[word] = 0;
    used_.clear();
  }

 private:
  static constexpr std::size_t kBits = 64;

  void make() {
    constexpr std::size_t kBytes = kMemoryRange / Traffic::kSectorBytes / 8;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (p == MAP_FAILED) {
      fail(ExitCode::internal, "no address space to count bytes of kernels; see ulimit -v");
    }
    words_ = static_cast<std::uint64_t*>(p);
  }

  std::uint64_t* words_ = nullptr;
  std::vector<std::size_t> used_;  ///< words that are not zero
};

/// What is read, or what is written.
struct Counter {
  Traffic::Way counted;
  Sectors sectors;

  void add(std::size_t offset, std::size_t bytes) {
    counted.bytes += bytes;
    counted.sectors +=
        sectors.add(offset / Traffic::kSectorBytes, (offset + bytes - 1) / Traffic::kSectorBytes);
  }
  Traffic::Way end() {
    sectors.clear();
    return std::exchange(counted, {});
  }
};

Counter read_, written_;
bool counts_ = false;

}  // namespace

void begin_traffic(bool counts) {
  end_traffic();  // of a kernel that failed
  counts_ = counts;
}

Traffic end_traffic() { return {read_.end(), written_.end()}; }

void count_read(std::size_t offset, std::size_t bytes) {
  if (counts_) read_.add(offset, bytes);
}
void count_write(std::size_t offset, std::size_t bytes) {
  if (counts_) written_.add(offset, bytes);
}

}  // namespace cputrain::emulated

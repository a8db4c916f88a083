// comm/pages.h: large areas, which hold gradients, weights and the like, are one small area of real
// memory that repeats. SMPI knows such areas and sends them without copying a byte; what is read
// from them is garbage. Small areas, which hold counters, are real.
#include "comm/pages.h"

#include <smpi/smpi.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace cputrain {
namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::size_t kAlignment = 4096;

}  // namespace

Pages::Pages(std::size_t bytes, Touched) {
  if (bytes == 0) return;
  void* start = nullptr;
  if (bytes >= kLarge) {
    start = SMPI_SHARED_MALLOC(bytes);
  } else {
    const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    start = std::aligned_alloc(kAlignment, whole);
    if (!start) throw std::bad_alloc();
    std::memset(start, 0, whole);
  }
  bytes_ = {static_cast<std::byte*>(start), bytes};
}

Pages::~Pages() {
  if (bytes_.size() >= kLarge) {
    SMPI_SHARED_FREE(bytes_.data());
  } else {
    std::free(bytes_.data());
  }
}

}  // namespace cputrain

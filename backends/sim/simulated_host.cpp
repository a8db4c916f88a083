#include "backends/sim/simulated_host.h"

#include <smpi/smpi.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <simgrid/s4u/Engine.hpp>

namespace cputrain::sim {
namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::size_t kAlignment = 4096;

/// The area of all ranks, which are contexts of one thread. One that has become too small stays for
/// ranks that hold it. An area of its own for each would count as resident memory once more, though
/// SMPI maps them to the same pages.
std::byte* garbage_of(std::size_t bytes) {
  static std::byte* start = nullptr;
  static std::size_t size = 0;
  if (bytes > size) {
    start = static_cast<std::byte*>(SMPI_SHARED_MALLOC(bytes));
    if (!start) throw std::bad_alloc();
    size = bytes;
  }
  return start;
}

std::byte* zeros_of(std::size_t bytes) {
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* const start = std::aligned_alloc(kAlignment, whole);
  if (!start) throw std::bad_alloc();
  std::memset(start, 0, whole);
  return static_cast<std::byte*>(start);
}

std::span<std::byte> map_area(std::size_t bytes, bool) {
  return {bytes >= kLarge ? garbage_of(bytes) : zeros_of(bytes), bytes};
}

void unmap_area(std::span<std::byte> area) {
  if (area.size() < kLarge) std::free(area.data());
}

}  // namespace

system::HostCalls simulated_host() {
  return {simgrid::s4u::Engine::get_clock, map_area, unmap_area};
}

}  // namespace cputrain::sim

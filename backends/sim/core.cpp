#include "backends/sim/core.h"

#include <smpi/smpi.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numbers>
#include <simgrid/s4u.hpp>
#include <vector>

#include "core/casts.h"
#include "core/random/random.h"

namespace cputrain::sim {
namespace {

simgrid::s4u::CommPtr start_moving(double bytes) {
  simgrid::s4u::Host* const host = simgrid::s4u::this_actor::get_host();
  return simgrid::s4u::Comm::sendto_async(host, host, static_cast<std::uint64_t>(bytes));
}

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

void move_memory(double bytes) {
  if (bytes >= 1) start_moving(bytes)->wait();
}

/// A factor around 1. Disturbances delay more often than they hasten: its logarithm is normal.
double SimulatedCore::draw() {
  if (noise_ == 0) return 1;
  constexpr double kMost = 2.5;  // as many standard deviations
  const auto words =
      RandomStream(seed_, Purpose::noise, static_cast<std::uint32_t>(rank_)).at(draws_++);
  const double u = 1 - to_double(unit_float(words[0]));
  const double angle = 2 * std::numbers::pi * to_double(unit_float(words[1]));
  const double normal = std::sqrt(-2 * std::log(u)) * std::cos(angle);
  return std::exp(noise_ * std::clamp(normal, -kMost, kMost));
}

void SimulatedCore::work(double seconds, double bytes) const {
  std::vector<simgrid::s4u::CommPtr> moving;
  const double each = bytes / threads_;
  for (int i = 0; i < threads_ && each >= 1; ++i) moving.push_back(start_moving(each));
  simgrid::s4u::this_actor::sleep_for(seconds);
  for (const simgrid::s4u::CommPtr& bytes_of_one : moving) bytes_of_one->wait();
}

void SimulatedCore::work_on_micro_batch(double seconds, double bytes) {
  const double computes = seconds * disturbance_;
  const double start = simgrid::s4u::Engine::get_clock();
  work(computes, bytes);
  memory_stall_ += std::max(0.0, simgrid::s4u::Engine::get_clock() - start - computes);
}

}  // namespace cputrain::sim

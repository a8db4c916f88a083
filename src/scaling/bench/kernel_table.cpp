#include "scaling/bench/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "system/print.h"

namespace cputrain::bench {
namespace {

constexpr const char* kHalf = "{:>11}{:>9}{:>8}{:>8}{:>7}{:>7}  {:<38}";

template <class... Cells>
std::string half(const Cells&... cells) {
  return fmt::format(fmt::runtime(kHalf), cells...);
}

std::string fraction_text(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.2f}", *fraction) : "";
}

std::string half_of(const LayerFigures& layer, const DirectionFigures& d) {
  return half(fmt::format("{:.1f}", 1e6 * d.seconds.median),
              d.gflops ? fmt::format("{:.0f}", d.gflops->median) : "", fraction_text(d.of_peak),
              fraction_text(d.of_bandwidth), compute::density_text(layer.density),
              compute::density_text(layer.gradient_density), d.algorithm);
}

/// The same layer and direction without zeros; empty where it is not there, as ReLU is not.
std::string half_beside(const KernelFigures& other, const LayerFigures& layer,
                        const DirectionFigures& direction) {
  const auto found = std::ranges::find(other.layers, layer.name, &LayerFigures::name);
  if (found == other.layers.end()) return "";
  const auto same = std::ranges::find(found->directions, direction.way, &DirectionFigures::way);
  return same == found->directions.end() ? "" : half_of(*found, *same);
}

}  // namespace

void print_kernels(const KernelPair& pair) {
  const std::string titles =
      half("us/image", "GFLOP/s", "of peak", "of mem.", "map", "grad.", "algorithm");
  system::print("\nmicro-batch {:<21} the given weights{:>74}no zeros\n{:<24} {:<9}{} {}\n",
                pair.given.micro_batch, "", "layer", "", titles, titles);
  for (const LayerFigures& layer : pair.given.layers) {
    for (const DirectionFigures& direction : layer.directions) {
      system::print("{:<24} {:<9}{} {}\n", layer.name, direction.way->title,
                    half_of(layer, direction), half_beside(pair.no_zeros, layer, direction));
    }
  }
}

void print_kernel_sums(const std::vector<KernelPair>& pairs) {
  system::print("\nall layers   {:^52}  {:^52}\n{:<13}", "the given weights", "no zeros",
                "micro-batch");
  for (int i = 0; i < 2; ++i)
    system::print("{:>12}{:>22}{:>9}{:>9}  ", "ms/image", "", "GFLOP/s", "of peak");
  system::print("\n");
  for (const KernelPair& pair : pairs) {
    system::print("{:<13}", pair.given.micro_batch);
    for (const KernelFigures* f : {&pair.given, &pair.no_zeros}) {
      system::print("{:>12.2f}{:>22}{:>9.0f}{:>9.2f}  ", 1e3 * f->seconds.median,
                    fmt::format("({:.2f} to {:.2f})", 1e3 * f->seconds.min, 1e3 * f->seconds.max),
                    f->gflops.median, f->of_peak);
    }
    system::print("\n");
  }
}

}  // namespace cputrain::bench

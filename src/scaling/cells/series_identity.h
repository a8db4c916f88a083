#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <vector>

#include "scaling/cells/cells.h"

namespace cputrain::cells {

/// Everything that makes times incomparable: figures of two of these are never mixed. Simulating
/// a machine and measuring on it are two.
struct SeriesIdentity {
  std::string backend, machine;
  std::string device{};  ///< for a backend of devices; empty where not known
  bool simulated = false;
  std::string model;
  int image_size = 0;
  std::size_t images = 0;  ///< an epoch
  std::string data, build;
  FlagTexts options;  ///< table's and cell's; usual values of listed flags are left out

  auto operator<=>(const SeriesIdentity&) const = default;
};

SeriesIdentity identity_of(const CellTable&, const Cell&);

/// Whether nothing but values of listed flags (axes.h) tells the two series apart.
bool differ_in_axes_alone(SeriesIdentity, SeriesIdentity);

/// "cpu", and what tells it from others: "cpu, AMD EPYC, 2 cores, --precision bf16", "cuda tf32,
/// NVIDIA H200".
std::string name_of(const SeriesIdentity&, const std::vector<SeriesIdentity>& all);

/// The options of a series that not all have alike, but for unnamed defaults: "--allreduce ring,
/// --lr 0.1"; empty where there are none.
std::string options_apart(const SeriesIdentity&, const std::vector<SeriesIdentity>& all);

/// What the numbers of builds in these names mean.
std::vector<std::string> identity_remarks(const std::vector<SeriesIdentity>& all);

/// "--precision bf16"; "--reproducible" of a switch.
std::string option_text(const std::string& name, const std::string& value);

}  // namespace cputrain::cells

#pragma once

#include <compare>
#include <cstddef>

#include "scaling/cells/cells.h"

/// The axes of a table: what makes one of its cells, or one series, another than the next. Code
/// that names, compares or matches cells does it by these.
namespace cputrain::cells {

/// A flag of `train` that a sweep takes several values of, beside its CPUs, threads, batches and
/// backends. A value is a text in one spelling.
struct ListedFlag {
  std::string_view name;
  /// The value that holds without the flag; a list may name it like any other.
  std::string_view usual;
};

/// What the model or the backend says, in a list of a flag that has no word for it.
inline constexpr std::string_view kOwnDefault = "default";

inline constexpr std::array<ListedFlag, 5> kListedFlags{{{"precision", kOwnDefault},
                                                         {"allreduce", "auto"},
                                                         {"compress", "none"},
                                                         {"lr", kOwnDefault},
                                                         {"prefetch", "1"}}};

/// Nullptr for other flags.
const ListedFlag* listed_flag(std::string_view name);

/// The cell's value, else what holds for all cells of its table, else the usual one.
std::string value_of(const ListedFlag&, const CellTable&, const Cell&);

/// Flags by name without those that hold anyway, so that two ways to say the same are one.
FlagTexts without_usual(FlagTexts);

/// What tells a cell from all others of its table: two cells with the same are the same one.
using Place = std::vector<std::string>;
Place place_of(const Cell&);

/// The listed flags of which the cells have several values.
std::vector<ListedFlag> varied_flags(const CellTable&);

/// The cell's values of these flags: "--allreduce ring --lr 0.1"; empty without flags.
std::string axes_text(const std::vector<ListedFlag>&, const CellTable&, const Cell&);

/// A machine for readers: "rack 3, AMD EPYC (family 25, model 17), 2 cores", "skylake-96", or
/// "unknown machine".
std::string machine_text(const CellMachine&, const placement::CpuId&);

/// Everything that makes times incomparable: figures of two of these are never mixed. Simulating
/// a machine and measuring on it are two.
struct SeriesIdentity {
  std::string backend, machine;
  /// Those that measured. Where they are not recorded, those of two folders may be two.
  std::string processor{}, kernels{};
  std::string device{};  ///< for a backend of devices; empty where not known
  bool simulated = false;
  std::string model;
  int image_size = 0;
  std::size_t images = 0;  ///< an epoch
  std::string data, build;
  FlagTexts options;  ///< table's and cell's; usual values of listed flags are left out

  auto operator<=>(const SeriesIdentity&) const = default;
};

/// `folder`: of the table.
SeriesIdentity identity_of(const CellTable&, const Cell&, const std::string& folder = "");

/// Whether nothing but values of listed flags (axes.h) tells the two series apart.
bool differ_in_axes_alone(SeriesIdentity, SeriesIdentity);

/// "cpu", and what tells it from others: "cpu, AMD EPYC, 2 cores, --precision bf16", "cuda tf32,
/// NVIDIA H200".
std::string name_of(const SeriesIdentity&, const std::vector<SeriesIdentity>& all);

/// The options of a series that not all have alike, but for unnamed defaults: "--allreduce ring,
/// --lr 0.1"; empty where there are none.
std::string options_apart(const SeriesIdentity&, const std::vector<SeriesIdentity>& all);

/// What the numbers of processors and builds in these names mean.
std::vector<std::string> identity_remarks(const std::vector<SeriesIdentity>& all);

/// "--precision bf16"; "--reproducible" of a switch.
std::string option_text(const std::string& name, const std::string& value);

}  // namespace cputrain::cells

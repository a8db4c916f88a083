#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/budget.h"
#include "core/statistics/statistics.h"
#include "system/placement/machine.h"

/// The table "seconds per epoch by CPU count and batch size" as data: what `sweep` measures,
/// `simulate` forecasts and `report` draws. On disk it is cells.json, strict JSON with these names
/// as keys and null for what is not known.
namespace cputrain::cells {

/// Where the seconds of a cell come from: whole epochs; some steps times the steps of an epoch; a
/// simulation that computes with measured costs; one that computes with predicted ones, of which
/// nothing was measured; nowhere ("n/a", with a reason). The better founded come first.
enum class CellStatus { measured, scaled, simulated, predicted, absent };
inline constexpr std::array<std::pair<CellStatus, std::string_view>, 5> kStatusWords{
    {{CellStatus::measured, "measured"},
     {CellStatus::scaled, "scaled"},
     {CellStatus::simulated, "simulated"},
     {CellStatus::predicted, "predicted"},
     {CellStatus::absent, "n/a"}}};
std::string status_name(CellStatus);
/// Simulated or predicted: no run of this program was timed.
bool is_forecast(CellStatus);

/// Flags by name without dashes, and their texts ("true" of a switch).
using FlagTexts = std::map<std::string, std::string>;

/// `what`: compute, memory bandwidth, communication, input, imbalance; empty where nothing is said.
struct CellLimits {
  std::string what{}, why{};
};

/// What measured a cell, or may measure it. What is not recorded is empty, and never guessed.
struct CellOrigin {
  placement::CpuId cpu_id{};             ///< of the machine, that of GPUs, too
  std::optional<int> kernels_version{};  ///< compute::BackendFacts
  std::string commit{};                  ///< the program's: "commit abc1234, Release"

  /// Each of both that they have alike, as one name would be wrong for some.
  CellOrigin common(const CellOrigin& other) const;
  bool operator==(const CellOrigin&) const = default;
};

struct Cell {
  int cpus = 1;                         ///< ranks times threads; of devices, ranks
  std::size_t batch = 1;                ///< global
  std::optional<int> batch_per_rank{};  ///< weak scaling: the batch grows with the ranks
  std::string backend = "cpu";
  int ranks = 1, threads = 1;
  int gpus = 0;          ///< devices that its ranks compute on; 0 of a backend of CPUs
  std::string device{};  ///< their name: "NVIDIA H100 80GB HBM3"; empty where not known
  CellOrigin origin{};
  /// Its values of the listed flags that its sweep was given (axes.h), the usual ones, too.
  FlagTexts axes{};

  CellStatus status = CellStatus::absent;
  std::string reason{};                       ///< why it is "n/a", in words
  std::optional<double> seconds_per_epoch{};  ///< median of the repeats; nothing for "n/a"
  /// Over the repeats; of `bench step`, which is one, over the steps that it timed one by one.
  std::optional<Interval> spread{};
  std::vector<double> repeats{};  ///< seconds per epoch of each
  std::int64_t steps = 0;         ///< measured in each repeat; 0 where not known
  std::optional<double> images_per_second{};

  CellLimits limits{};
  std::optional<Budget> budget{};  ///< seconds per epoch, adding up to seconds_per_epoch
  std::optional<double> gflops{};  ///< per second, counting direct convolution
  /// What these CPUs can do, measured beside it; of GPUs, by mma.sync in the numbers of the cell.
  std::optional<double> fma_gflops{};
  std::optional<double> triad_gbs{};  ///< their memory bandwidth, measured beside it
  /// Part, 0 to 1, of the numbers that products read and are not 0, which kernels do not skip: of
  /// weights that learnt it is less. As counted in the last passes.
  std::optional<double> density{};
  /// Part, 0 to 1, of a rank's CPU time that the host of a virtual machine took for others: the
  /// repeats' median.
  std::optional<double> stolen{};
  /// Part, 0 to 1, of the time for which a rank's threads wanted a CPU that they waited for one
  /// (system/lost_time.h): median of the repeats.
  std::optional<double> cpu_wait{};

  /// The most memory that a repeat's rank, node and rank's device held: see loop/records.h.
  std::optional<double> peak_rank_bytes{}, peak_node_bytes{}, peak_device_bytes{};

  bool includes_warm_up = false;  ///< steps in which convolutions tried algorithms count

  std::optional<double> final_loss{}, final_accuracy{}, val_accuracy{};
  std::optional<int> reached_target{};  ///< repeats that did; nothing where none was asked for
  /// Median of the repeats, of which those that did not reach it take longer than any that did:
  /// known where more than half reached it.
  std::optional<double> seconds_to_target{};
  std::string command{};            ///< its last repeat's
  std::vector<std::string> runs{};  ///< run folders, relative to that of the table

  /// A batch, or all images of the epoch where those are fewer.
  double images_a_step() const {
    const auto all = static_cast<double>(batch);
    if (!images_per_second || !seconds_per_epoch) return all;
    return std::min(all, *images_per_second * *seconds_per_epoch);
  }
};

/// Numbers are 0 and texts empty where not known.
struct CellMachine {
  std::string name{};  ///< that people gave it
  std::string cpu{};
  placement::CpuId cpu_id{};
  std::string host{}, os{}, mpi{}, build{};
  std::string platform{};  ///< a simulation's: "skylake-96"
  int cores = 0, hardware_threads = 0;
  /// For a simulated machine that grows with the cell: n CPUs are n hardware threads, so many a
  /// core.
  int cpus_per_core = 0;
  double memory_bytes = 0;
};

struct CellTable {
  std::string model{};
  int image_size = 0;
  std::size_t images_per_epoch = 0;
  std::size_t validation_images = 0;  ///< that val_accuracy is of; 0 for none, or not known
  double parameters = 0, macs_per_image = 0;
  /// Numbers of an image that layers with weights read: what is kept for backward. The image
  /// itself is left out.
  double maps_per_image = 0;
  std::string data{};
  std::uint64_t seed = 0;
  CellMachine machine{};
  /// Flags that hold for all cells: those handed on to every training, the launcher where one was
  /// named, and of a simulation what overrides its platform. Tables with other options are of other
  /// experiments.
  FlagTexts options{};
  std::string command{};
  std::string date{};     ///< that it was written on, "2026-11-25" in UTC
  std::string commit{};   ///< the program's: "commit abc1234, Release"
  std::string costs{};    ///< a simulation's: on what, when and by what they were measured
  std::string weights{};  ///< those that steps were timed with, where it is known: "untrained"
  std::vector<Cell> cells{};
};

inline constexpr const char* kCellsName = "cells.json";
/// What a table may have at most.
inline constexpr std::size_t kMostBatch = 1 << 24, kMostCells = 100'000;

/// What Error(data) of a table ends with.
inline constexpr std::string_view kTableRemedy =
    "(the table cannot be read); name the folder that holds one, or run the sweep or the "
    "simulation again, which writes it anew";

/// Bounds for figures of a cell, times in seconds: readers of tables refuse others, so writers
/// leave them out.
inline constexpr double kLeastCellSeconds = 1e-9, kMostCellSeconds = 1e12, kMostCellRate = 1e15,
                        kMostCellLoss = 1e15, kMostCellBytes = 1e18;

/// The most of what repeats say, as of limits: what a disturbance took away in one was there in
/// another.
inline double largest(std::vector<double> values) { return std::ranges::max(values); }

/// A figure of a cell by its key, its bounds, and how its repeats say it together.
struct CellFigure {
  const char* name;
  std::optional<double> Cell::*member;
  double least, most;
  double (*combined)(std::vector<double>) = median;
};
inline constexpr CellFigure kCellFigures[] = {
    {"gflops", &Cell::gflops, 0, kMostCellRate},
    {"fma_gflops", &Cell::fma_gflops, 0, kMostCellRate, largest},
    {"triad_gbs", &Cell::triad_gbs, 0, kMostCellRate, largest},
    {"density", &Cell::density, 0, 1},
    {kStolen, &Cell::stolen, 0, 1},
    {kCpuWait, &Cell::cpu_wait, 0, 1},
    {"peak_rank_bytes", &Cell::peak_rank_bytes, 0, kMostCellBytes, largest},
    {"peak_node_bytes", &Cell::peak_node_bytes, 0, kMostCellBytes, largest},
    {"peak_device_bytes", &Cell::peak_device_bytes, 0, kMostCellBytes, largest},
    {"final_loss", &Cell::final_loss, -kMostCellLoss, kMostCellLoss},
    {"final_accuracy", &Cell::final_accuracy, 0, 1},
    {"val_accuracy", &Cell::val_accuracy, 0, 1}};

/// Cores that so many CPUs are, where one has so many hardware threads that count as CPUs.
constexpr int cores_of(int cpus, int cpus_per_core) {
  return (cpus + cpus_per_core - 1) / cpus_per_core;
}

/// What an hour costs, of the whole machine, of one CPU or of one GPU, by backend; "" is for all
/// others.
struct Prices {
  std::map<std::string, double> per_hour, per_cpu_hour;
  /// For backends of devices alone, where it comes before those of all backends.
  std::map<std::string, double> per_gpu_hour{};
  bool of_file = false;  ///< which may have more than a report needs

  bool empty() const { return per_hour.empty() && per_cpu_hour.empty() && per_gpu_hour.empty(); }
  /// What so many seconds on so many CPUs or devices cost; nothing where this backend has no price.
  std::optional<double> of(const std::string& backend, int cpus, double seconds) const;
  /// What an epoch costs; nothing where the cell has no time, too.
  std::optional<double> of(const Cell&) const;
};

/// By their flags.
inline constexpr std::array<std::pair<const char*, std::map<std::string, double> Prices::*>, 3>
    kPriceFlags{{{"price-per-hour", &Prices::per_hour},
                 {"price-per-cpu-hour", &Prices::per_cpu_hour},
                 {"price-per-gpu-hour", &Prices::per_gpu_hour}}};

/// A cell as an object of cells.json, and back: Error(data), naming `where`, for anything odd
/// (counts below 1, times that are no positive numbers, a median outside its spread, paths that
/// lead elsewhere, more repeats that reached the target than repeats, GPUs of a backend of CPUs).
/// Keys that are not known are ignored.
nlohmann::ordered_json to_json(const Cell&);
Cell cell_from_json(const nlohmann::json&, const std::string& where);

nlohmann::ordered_json to_json(const CellTable&);

/// Reads a cells.json that may be hostile. Error(data) says what is wrong with it. A cell that has
/// no time has device and origin of the others of its backend, where these have one.
CellTable read_cells(const std::filesystem::path& file);

/// Whole or absent, and on the disk when this returns. Error(output).
void write_cells(const std::filesystem::path& file, const CellTable&);

}  // namespace cputrain::cells

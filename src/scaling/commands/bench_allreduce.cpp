#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/flags/flag_groups.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/bench/allreduce.h"
#include "scaling/commands/commands.h"
#include "system/print.h"
#include "training/session/session.h"

namespace cputrain::commands {
namespace {

using Json = nlohmann::ordered_json;

struct AllreduceOptions : BenchOptions {
  std::size_t bytes = 52'871'940;
};

constexpr int kCompressions = 3;  ///< repeats of each are enough: nothing but this rank is measured

/// nccl-tests' bus bandwidth: what each rank's link would have to carry.
double bus_gbs(double bytes, double seconds, int ranks) {
  return seconds > 0 ? 2e-9 * bytes / seconds * (ranks - 1) / ranks : 0;
}

void print_table(const bench::AllreduceBench& bench,
                 const std::vector<bench::AllreduceFigure>& figures, double triad) {
  system::print("{} on {}, {:.1f} MB; triad of all ranks {:.1f} GB/s measured in this run\n\n",
                counted(bench.ranks(), "rank"), counted(bench.nodes(), "node"),
                static_cast<double>(bench.bytes()) / 1e6, triad);
  system::print("{:<20}{:>12}{:>10}{:>10}{:>14}\n", "algorithm", "ms, median", "min", "max",
                "bus GB/s");
  for (const bench::AllreduceFigure& figure : figures) {
    if (!figure.reason.empty()) {
      system::print("{:<20}{}\n", figure.name, figure.reason);
      continue;
    }
    const Spread s = spread_of(figure.seconds);
    system::print("{:<20}{:>12.2f}{:>10.2f}{:>10.2f}{:>14.1f}\n", figure.name, 1e3 * s.median,
                  1e3 * s.min, 1e3 * s.max,
                  bus_gbs(static_cast<double>(bench.bytes()), s.median, bench.ranks()));
  }
}

double breakeven(const bench::AllreduceBench& bench, const bench::CompressionFigure& figure) {
  const double longer = spread_of(figure.seconds).median - spread_of(figure.plain_seconds).median;
  return bench::breakeven_gbit_s(bench.ranks(), figure.ratio, static_cast<double>(bench.bytes()),
                                 longer);
}

void print_compression(const bench::AllreduceBench& bench,
                       const std::vector<bench::CompressionFigure>& figures) {
  system::print("\n{:<20}{:>14}{:>22}{:>16}{:>22}\n", "--compress", "fewer bytes",
                "ms without sending", "plain sum's", "pays below, Gbit/s");
  for (const bench::CompressionFigure& figure : figures) {
    const double rate = breakeven(bench, figure);
    system::print("{:<20}{:>13.1f}x{:>22.2f}{:>16.2f}{:>22}\n", figure.name, figure.ratio,
                  1e3 * spread_of(figure.seconds).median,
                  1e3 * spread_of(figure.plain_seconds).median,
                  std::isfinite(rate) ? fmt::format("{:.2f}", rate) : "at any rate");
  }
}

Json compression_json(const bench::AllreduceBench& bench,
                      const std::vector<bench::CompressionFigure>& figures) {
  Json list = Json::array();
  for (const bench::CompressionFigure& figure : figures) {
    const double rate = breakeven(bench, figure);
    list.push_back({{"name", figure.name},
                    {"ratio", figure.ratio},
                    {"seconds_compute", spread_of(figure.seconds).median},
                    {"seconds_plain", spread_of(figure.plain_seconds).median},
                    {"breakeven_gbit_s", std::isfinite(rate) ? Json(rate) : Json("any")}});
  }
  return list;
}

Json figures_json(const std::vector<bench::AllreduceFigure>& figures) {
  Json list = Json::array();
  for (const bench::AllreduceFigure& figure : figures) {
    Json entry{{"name", figure.name}};
    if (figure.reason.empty()) {
      entry["seconds"] = json_of(spread_of(figure.seconds));
    } else {
      entry["seconds"] = nullptr;
      entry["reason"] = figure.reason;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

class BenchAllreduceCommand final : public cli::CommandWith<AllreduceOptions> {
 public:
  BenchAllreduceCommand() : CommandWith({.trains = false, .measures = true}) {}

  cli::CommandEntry help() const override {
    return {.name = "bench",
            .topic = "allreduce",
            .summary = "every way to sum gradients over ranks",
            .about =
                "Measures each algorithm that sums gradients over ranks, beside the memory's "
                "bandwidth.",
            .examples = {{"mpirun -np 4 cputrain bench allreduce --bytes 52871940",
                          "Measures sums of as many bytes as the paper's network has gradients."}},
            .common = {"bytes", "repeat", "threads", "json"}};
  }

  void add_flags(cli::Flags& f, const cli::CommandLineChoices& choices) override {
    AllreduceOptions& c = options_;
    f.group("Measurement");
    f.whole("bytes", c.bytes, 4, std::int64_t{1} << 40,
            "bytes of each rank's gradient [52871940: the paper's network]");
    f.whole("repeat", c.repeat, 1, 1000, "measured sums of each algorithm [5]");
    add_processor_flags(f, c, choices);
    add_stall_flags(f, c);
    add_json_flag(f, c.json);
  }

  ExitCode run(const training::Services&) override;
};

ExitCode BenchAllreduceCommand::run(const training::Services& services) {
  const training::Session session = training::start_session(options_, services);
  comm::SumArrays sum = comm::sum_plainly;
  if (session.backend->memory().is_host()) {
    sum = [&](std::span<const Array> src, const Array& dst) { session.backend->sum(src, dst); };
  }
  bench::AllreduceBench bench(*session.communicator, options_.bytes, sum);
  const compute::Limits before = training::measure_together(session);
  const std::vector<bench::AllreduceFigure> figures = bench.run(options_.repeats());
  const double triad = compute::better(before, training::measure_together(session)).triad_gbs;
  const std::string chosen = bench.automatic_choice();
  const auto compression = bench::bench_compression(*session.communicator, bench.bytes(),
                                                    std::min(options_.repeats(), kCompressions));
  if (session.leads() && options_.prints()) {
    for (const std::string& line : session.placement) system::print("{}\n", line);
    print_table(bench, figures, triad);
    system::print("\nauto takes {}\n", chosen);
    print_compression(bench, compression);
  }
  const Json result{{"bench", "allreduce"},
                    {"ranks", bench.ranks()},
                    {"nodes", bench.nodes()},
                    {"threads", session.threads},
                    {"bytes", bench.bytes()},
                    {"repeats", options_.repeats()},
                    {"engine", session.communicator->describe()},
                    {"cpu", session.machine.cpu_model},
                    {"cpu_id", to_json(session.machine.cpu_id)},
                    {"limit", {{"triad_gbs", triad}}},
                    {"auto", chosen},
                    {"algorithms", figures_json(figures)},
                    {"compression", compression_json(bench, compression)}};
  training::write_json(session, options_.json, result);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_bench_allreduce() {
  return std::make_unique<BenchAllreduceCommand>();
}

}  // namespace cputrain::commands

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/flags/flag_groups.h"
#include "comm/allreduce.h"
#include "comm/allreduce_choice.h"
#include "comm/candidates.h"
#include "comm/communicator.h"
#include "comm/node.h"
#include "core/error.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/commands/commands.h"
#include "system/clock.h"
#include "system/pages.h"
#include "system/print.h"
#include "training/gradient_sums.h"
#include "training/session/session.h"

namespace cputrain::commands {
namespace {

using Json = nlohmann::ordered_json;

struct AllreduceOptions : BenchOptions {
  std::size_t bytes = 52'871'940;
};

constexpr int kCompressions = 3;  ///< repeats of each are enough: nothing but this rank is measured

/// One way to sum over ranks, timed.
struct AllreduceFigure {
  std::string name;
  std::vector<double> seconds;  ///< by repeat, the slowest rank's
  std::string reason;           ///< why there are none
};

/// One sum that is checked; the arrays are zeros afterwards, and stay so whatever is summed.
void check_sum(comm::Communicator& communicator, const std::string& name,
               const comm::Candidate& candidate) {
  const int ranks = communicator.size();
  std::ranges::fill(candidate.input.as<float>(), static_cast<float>(communicator.rank() + 1));
  communicator.barrier();
  candidate.run();
  const auto wrong = [expected = static_cast<float>(ranks * (ranks + 1) / 2)](float x) {
    return x != expected;
  };
  double mistakes = std::ranges::any_of(candidate.result.as<float>(), wrong) ? 1 : 0;
  communicator.sum(Array::of<double>({&mistakes, 1}));
  std::ranges::fill(candidate.input.as<float>(), 0.0f);
  communicator.barrier();
  if (mistakes > 0) {
    fail(ExitCode::internal,
         "allreduce " + name +
             " gives wrong sums (training with it would be wrong, too); please report it");
  }
}

/// All in turn, so that a disturbance of the machine meets all of them alike.
void time_all(comm::Communicator& communicator,
              const std::vector<std::optional<comm::Candidate>>& candidates, int repeat,
              std::vector<AllreduceFigure>& figures) {
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (candidates[i]) check_sum(communicator, figures[i].name, *candidates[i]);
  }
  for (int round = 0; round < repeat; ++round) {
    for (std::size_t i = 0; i < figures.size(); ++i) {
      if (!candidates[i]) continue;
      figures[i].seconds.push_back(comm::time_one(communicator, *candidates[i]));
    }
  }
}

/// Times every name of --allreduce on arrays of `bytes`: a sum of float32 over all ranks, which all
/// can read afterwards. For `shm` and `hierarchical` the arrays lie in shared memory and the result
/// is one copy per node. Collective.
class AllreduceBench {
 public:
  AllreduceBench(comm::Communicator& communicator, std::size_t bytes, comm::SumArrays sum)
      : communicator_(communicator),
        elements_(std::max<std::size_t>(1, bytes / sizeof(float))),
        sum_(std::move(sum)),
        map_(comm::read_node_map(communicator)) {}

  /// One that is checked, then `repeat` of each. Throws Error(internal) where a sum is wrong.
  std::vector<AllreduceFigure> run(int repeat) {
    const system::Pages own(bytes());
    const Array numbers{own.bytes().data(), elements_, DType::f32};
    const comm::SharedArrays shared(communicator_, elements_);
    std::vector<std::optional<comm::Candidate>> candidates;
    std::vector<AllreduceFigure> figures;
    const auto add = [&](const std::string& name, std::optional<comm::Candidate> candidate) {
      figures.push_back({name, {}, {}});
      candidates.push_back(std::move(candidate));
    };
    const auto add_within = [&](const std::string& name, const std::string& algorithm) {
      std::optional<comm::Candidate> candidate;
      if (shared.failure.empty()) {
        candidate = comm::within_node(communicator_, map_, shared, sum_,
                                      comm::open_lane(communicator_, map_, {{algorithm}}));
      }
      add(name, std::move(candidate));
      figures.back().reason = shared.failure;
    };
    if (map_.nodes() == 1) {
      add_within("shm", "tree");
      add_within("hierarchical", "tree");
    } else {
      figures.push_back({"shm", {}, "the ranks are on several nodes"});
      candidates.push_back(std::nullopt);
    }
    for (const std::string& name : comm::allreduce_algorithms()) {
      add(name, comm::between_ranks(numbers, comm::open_world(communicator_, {{name}})));
      if (map_.nodes() > 1) add_within("hierarchical+" + name, name);
    }
    comm::Channel server{communicator_.make_point_to_point(), nullptr, nullptr};
    server.allreduce = comm::make_server(*server.peers);
    add("ps", comm::between_ranks(numbers, std::move(server)));
    time_all(communicator_, candidates, repeat, figures);
    return figures;
  }

  /// What `auto` would take.
  std::string automatic_choice() {
    return training::automatic_allreduce(communicator_, elements_, sum_);
  }

  int ranks() const { return communicator_.size(); }
  int nodes() const { return map_.nodes(); }
  std::size_t bytes() const { return elements_ * sizeof(float); }

 private:
  comm::Communicator& communicator_;
  std::size_t elements_;
  comm::SumArrays sum_;
  comm::NodeMap map_;
};

// Compression.

/// What one way to compress gradients costs and saves.
struct CompressionFigure {
  std::string name;  ///< "topk:0.01"
  double ratio;      ///< times fewer bytes that a rank sends
  /// A sum without sending; and a plain ring's, which has to add as well. By repeat, the slowest
  /// rank's.
  std::vector<double> seconds, plain_seconds;
};

/// Adds up the time that messages take.
class TimedPointToPoint final : public comm::PointToPoint {
 public:
  TimedPointToPoint(std::unique_ptr<comm::PointToPoint> peers, double& seconds)
      : peers_(std::move(peers)), seconds_(seconds) {}
  int rank() const override { return peers_->rank(); }
  int size() const override { return peers_->size(); }
  void exchange(int to, std::span<const std::byte> out, int from,
                std::span<std::byte> in) override {
    const system::Stopwatch watch;
    peers_->exchange(to, out, from, in);
    seconds_ += watch.seconds();
  }
  void add(const Array& dst, const Array& src) override { peers_->add(dst, src); }

 private:
  std::unique_ptr<comm::PointToPoint> peers_;
  double& seconds_;
};

/// Numbers of many sizes around 0, other ones on every rank: a linear congruential generator, since
/// only their spread matters here.
void fill_gradients(const Array& gradients, int rank) {
  auto state = static_cast<std::uint32_t>(rank) * 2654435761u + 1u;
  for (float& value : gradients.as<float>()) {
    state = state * 1664525u + 1013904223u;
    const float x = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
    value = 1e-3f * x * x * x;
  }
}

/// Sums copies of a gradient: the ratio, and the seconds of each repeat without sending.
double time_compression(comm::Communicator& communicator, const Array& kept,
                        const std::string& compression, int repeat, std::vector<double>& seconds) {
  double sending = 0;
  comm::Channel channel{
      std::make_unique<TimedPointToPoint>(communicator.make_point_to_point(), sending), nullptr,
      nullptr};
  channel.allreduce = comm::make_ring(*channel.peers);
  const training::CompressedSum compressed =
      training::compressed_sum(compression, kept.size, std::move(channel));
  const system::Pages memory(kept.bytes().size());
  const Array gradients{memory.bytes().data(), kept.size, kept.dtype};
  for (int i = 0; i <= repeat; ++i) {  // the first warms up
    std::memcpy(gradients.data, kept.data, kept.bytes().size());
    communicator.barrier();
    sending = 0;
    const system::Stopwatch watch;
    compressed.sum(gradients);
    const double slowest =
        std::max(0.0, comm::largest_of_ranks(communicator, watch.seconds() - sending).value());
    if (i > 0) seconds.push_back(slowest);
  }
  return compressed.ratio;
}

/// Times each of compressions() on a gradient of `bytes` in float32. Collective.
std::vector<CompressionFigure> bench_compression(comm::Communicator& communicator,
                                                 std::size_t bytes, int repeat) {
  const std::size_t elements = bytes / sizeof(float);
  const system::Pages memory(elements * sizeof(float));
  const Array kept{memory.bytes().data(), elements, DType::f32};
  fill_gradients(kept, communicator.rank());
  std::vector<double> plain;
  time_compression(communicator, kept, "none", repeat, plain);
  std::vector<CompressionFigure> figures;
  for (const std::string& compression : training::compressions()) {
    CompressionFigure figure{compression, 0, {}, plain};
    figure.ratio = time_compression(communicator, kept, compression, repeat, figure.seconds);
    figures.push_back(std::move(figure));
  }
  return figures;
}

/// nccl-tests' bus bandwidth: what each rank's link would have to carry.
double bus_gbs(double bytes, double seconds, int ranks) {
  return seconds > 0 ? 2e-9 * bytes / seconds * (ranks - 1) / ranks : 0;
}

void print_table(const AllreduceBench& bench, const std::vector<AllreduceFigure>& figures,
                 double triad) {
  system::print("{} on {}, {:.1f} MB; triad of all ranks {:.1f} GB/s measured in this run\n\n",
                counted(bench.ranks(), "rank"), counted(bench.nodes(), "node"),
                static_cast<double>(bench.bytes()) / 1e6, triad);
  system::print("{:<20}{:>12}{:>10}{:>10}{:>14}\n", "algorithm", "ms, median", "min", "max",
                "bus GB/s");
  for (const AllreduceFigure& figure : figures) {
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

/// The bandwidth of a rank's link, in Gbit/s, below which it pays to compress: where the bytes that
/// are not sent would have taken as long as compressing takes,
///     2 (P - 1) / P * (1 - 1 / ratio) * bytes / seconds,
/// with P ranks and the seconds that it takes longer than a plain sum, for as long as nothing hides
/// either. 0 where no byte is saved, infinite where bytes are and no time is lost.
double breakeven(const AllreduceBench& bench, const CompressionFigure& figure) {
  const double seconds = spread_of(figure.seconds).median - spread_of(figure.plain_seconds).median;
  if (figure.ratio <= 1) return 0;
  if (seconds <= 0) return std::numeric_limits<double>::infinity();
  const int ranks = bench.ranks();
  return 8e-9 * 2 * (ranks - 1) / ranks * (1 - 1 / figure.ratio) *
         static_cast<double>(bench.bytes()) / seconds;
}

void print_compression(const AllreduceBench& bench, const std::vector<CompressionFigure>& figures) {
  system::print("\n{:<20}{:>14}{:>22}{:>16}{:>22}\n", "--compress", "fewer bytes",
                "ms without sending", "plain sum's", "pays below, Gbit/s");
  for (const CompressionFigure& figure : figures) {
    const double rate = breakeven(bench, figure);
    system::print("{:<20}{:>13.1f}x{:>22.2f}{:>16.2f}{:>22}\n", figure.name, figure.ratio,
                  1e3 * spread_of(figure.seconds).median,
                  1e3 * spread_of(figure.plain_seconds).median,
                  std::isfinite(rate) ? fmt::format("{:.2f}", rate) : "at any rate");
  }
}

Json compression_json(const AllreduceBench& bench, const std::vector<CompressionFigure>& figures) {
  Json list = Json::array();
  for (const CompressionFigure& figure : figures) {
    const double rate = breakeven(bench, figure);
    list.push_back({{"name", figure.name},
                    {"ratio", figure.ratio},
                    {"seconds_compute", spread_of(figure.seconds).median},
                    {"seconds_plain", spread_of(figure.plain_seconds).median},
                    {"breakeven_gbit_s", std::isfinite(rate) ? Json(rate) : Json("any")}});
  }
  return list;
}

Json figures_json(const std::vector<AllreduceFigure>& figures) {
  Json list = Json::array();
  for (const AllreduceFigure& figure : figures) {
    const bool timed = figure.reason.empty();
    list.push_back(
        {{"name", figure.name}, {"seconds", timed ? json_of(spread_of(figure.seconds)) : Json()}});
    if (!timed) list.back()["reason"] = figure.reason;
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
  AllreduceBench bench(*session.communicator, options_.bytes, sum);
  const compute::Limits before = training::measure_together(session);
  const std::vector<AllreduceFigure> figures = bench.run(options_.repeats());
  const double triad = compute::better(before, training::measure_together(session)).triad_gbs;
  const std::string chosen = bench.automatic_choice();
  const auto compression = bench_compression(*session.communicator, bench.bytes(),
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

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
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

constexpr int kCompressions = 3;  ///< repeats of each are enough: nothing but this rank is measured

/// One way to sum over ranks, timed.
struct SumFigure {
  std::string name;               ///< "ring"; of a compressed one "topk:0.01"
  std::vector<double> seconds{};  ///< by repeat, the slowest rank's
  std::string reason{};           ///< why there are none
  double ratio = 1;               ///< times fewer bytes that a rank sends where it is compressed
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
              std::vector<SumFigure>& figures) {
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

/// Times every name of --allreduce on arrays of so many float32, a sum over all ranks, which all
/// can read afterwards: one sum that is checked, then `repeat`. For `shm` and `hierarchical` the
/// arrays lie in shared memory and the result is one copy per node. Collective; Error(internal)
/// where a sum is wrong.
std::vector<SumFigure> bench_sums(comm::Communicator& communicator, const comm::NodeMap& map,
                                  std::size_t elements, const comm::SumArrays& sum, int repeat) {
  const system::Pages own(elements * sizeof(float));
  const Array numbers{own.bytes().data(), elements, DType::f32};
  const comm::SharedArrays shared(communicator, elements);
  std::vector<std::optional<comm::Candidate>> candidates;
  std::vector<SumFigure> figures;
  const auto add = [&](const std::string& name, std::optional<comm::Candidate> candidate,
                       const std::string& why_none = "") {
    figures.push_back({.name = name, .reason = why_none});
    candidates.push_back(std::move(candidate));
  };
  const auto add_within = [&](const std::string& name, const std::string& algorithm) {
    std::optional<comm::Candidate> candidate;
    if (shared.failure.empty()) {
      candidate = comm::within_node(communicator, map, shared, sum,
                                    comm::open_lane(communicator, map, {{algorithm}}));
    }
    add(name, std::move(candidate), shared.failure);
  };
  if (map.nodes() == 1) {
    add_within("shm", "tree");
    add_within("hierarchical", "tree");
  } else {
    add("shm", std::nullopt, "the ranks are on several nodes");
  }
  for (const std::string& name : comm::allreduce_algorithms()) {
    add(name, comm::between_ranks(numbers, comm::open_world(communicator, {{name}})));
    if (map.nodes() > 1) add_within("hierarchical+" + name, name);
  }
  comm::Channel server{communicator.make_point_to_point(), nullptr, nullptr};
  server.allreduce = comm::make_server(*server.peers);
  add("ps", comm::between_ranks(numbers, std::move(server)));
  time_all(communicator, candidates, repeat, figures);
  return figures;
}

// Compression.

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

/// Sums copies of a gradient, compressed, by a ring. Seconds are those without sending.
SumFigure time_compression(comm::Communicator& communicator, const Array& kept,
                           const std::string& compression, int repeat) {
  double sending = 0;
  const auto time_message = [&sending](const std::function<void()>& exchange) {
    const system::Stopwatch watch;
    exchange();
    sending += watch.seconds();
  };
  comm::Channel channel{
      std::make_unique<comm::MessagesWithin>(communicator.make_point_to_point(), time_message),
      nullptr, nullptr};
  channel.allreduce = comm::make_ring(*channel.peers);
  const auto [sum, ratio] = training::compressed_sum(compression, kept.size, std::move(channel));
  const system::Pages memory(kept.bytes().size());
  const Array gradients{memory.bytes().data(), kept.size, kept.dtype};
  SumFigure figure{.name = compression, .ratio = ratio};
  for (int i = 0; i <= repeat; ++i) {  // the first warms up
    std::memcpy(gradients.data, kept.data, kept.bytes().size());
    communicator.barrier();
    sending = 0;
    const system::Stopwatch watch;
    sum(gradients);
    const double slowest =
        std::max(0.0, comm::largest_of_ranks(communicator, watch.seconds() - sending).value());
    if (i > 0) figure.seconds.push_back(slowest);
  }
  return figure;
}

/// Times a plain sum, which has to add as well, and each of compressions() on a gradient of so many
/// float32. Collective.
std::vector<SumFigure> bench_compression(comm::Communicator& communicator, std::size_t elements,
                                         int repeat) {
  const system::Pages memory(elements * sizeof(float));
  const Array kept{memory.bytes().data(), elements, DType::f32};
  fill_gradients(kept, communicator.rank());
  std::vector<SumFigure> figures{time_compression(communicator, kept, "none", repeat)};
  for (const std::string& compression : training::compressions()) {
    figures.push_back(time_compression(communicator, kept, compression, repeat));
  }
  return figures;
}

/// nccl-tests' bus bandwidth: what each rank's link would have to carry.
double bus_gbs(double bytes, double seconds, int ranks) {
  return seconds > 0 ? 2e-9 * bytes / seconds * (ranks - 1) / ranks : 0;
}

void print_table(const std::vector<SumFigure>& figures, double bytes, int ranks) {
  system::print("{:<20}{:>12}{:>10}{:>10}{:>14}\n", "algorithm", "ms, median", "min", "max",
                "bus GB/s");
  for (const SumFigure& figure : figures) {
    if (!figure.reason.empty()) {
      system::print("{:<20}{}\n", figure.name, figure.reason);
      continue;
    }
    const Spread s = spread_of(figure.seconds);
    system::print("{:<20}{:>12.2f}{:>10.2f}{:>10.2f}{:>14.1f}\n", figure.name, 1e3 * s.median,
                  1e3 * s.min, 1e3 * s.max, bus_gbs(bytes, s.median, ranks));
  }
}

/// The bandwidth of a rank's link, in Gbit/s, below which it pays to compress: where the bytes that
/// are not sent would have taken as long as compressing takes,
///     2 (P - 1) / P * (1 - 1 / ratio) * bytes / seconds,
/// with P ranks and the seconds that it takes longer than a plain sum, for as long as nothing hides
/// either. 0 where no byte is saved, infinite where bytes are and no time is lost.
double breakeven(const SumFigure& figure, const SumFigure& plain, double bytes, int ranks) {
  const double seconds = spread_of(figure.seconds).median - spread_of(plain.seconds).median;
  if (figure.ratio <= 1) return 0;
  if (seconds <= 0) return std::numeric_limits<double>::infinity();
  return 8e-9 * 2 * (ranks - 1) / ranks * (1 - 1 / figure.ratio) * bytes / seconds;
}

// Figures of compression begin with the plain sum's.

void print_compression(const std::vector<SumFigure>& figures, double bytes, int ranks) {
  system::print("\n{:<20}{:>14}{:>22}{:>16}{:>22}\n", "--compress", "fewer bytes",
                "ms without sending", "plain sum's", "pays below, Gbit/s");
  const SumFigure& plain = figures.front();
  for (const SumFigure& figure : std::span(figures).subspan(1)) {
    const double rate = breakeven(figure, plain, bytes, ranks);
    system::print("{:<20}{:>13.1f}x{:>22.2f}{:>16.2f}{:>22}\n", figure.name, figure.ratio,
                  1e3 * spread_of(figure.seconds).median, 1e3 * spread_of(plain.seconds).median,
                  std::isfinite(rate) ? fmt::format("{:.2f}", rate) : "at any rate");
  }
}

Json compression_json(const std::vector<SumFigure>& figures, double bytes, int ranks) {
  Json list = Json::array();
  const SumFigure& plain = figures.front();
  for (const SumFigure& figure : std::span(figures).subspan(1)) {
    const double rate = breakeven(figure, plain, bytes, ranks);
    list.push_back({{"name", figure.name},
                    {"ratio", figure.ratio},
                    {"seconds_compute", spread_of(figure.seconds).median},
                    {"seconds_plain", spread_of(plain.seconds).median},
                    {"breakeven_gbit_s", std::isfinite(rate) ? Json(rate) : Json("any")}});
  }
  return list;
}

Json figures_json(const std::vector<SumFigure>& figures) {
  Json list = Json::array();
  for (const SumFigure& figure : figures) {
    const bool timed = figure.reason.empty();
    list.push_back(
        {{"name", figure.name}, {"seconds", timed ? json_of(spread_of(figure.seconds)) : Json()}});
    if (!timed) list.back()["reason"] = figure.reason;
  }
  return list;
}

void add_allreduce_flags(cli::Flags& f, BenchOptions& c, const cli::CommandLineChoices& choices) {
  f.group("Measurement");
  f.whole("bytes", c.bytes, 4, std::int64_t{1} << 40,
          "bytes of each rank's gradient [52871940: the paper's network]");
  f.whole("repeat", c.repeat, 1, 1000, "measured sums of each algorithm [5]");
  add_processor_flags(f, c, choices);
  add_stall_flags(f, c);
  add_json_flag(f, c.json);
}

ExitCode run_allreduce(const BenchOptions& options, const training::Services& services) {
  const training::Session session = training::start_session(options, services);
  comm::SumArrays sum = comm::sum_plainly;
  if (session.backend->memory().is_host()) {
    sum = [&](std::span<const Array> src, const Array& dst) { session.backend->sum(src, dst); };
  }
  comm::Communicator& communicator = *session.communicator;
  const std::size_t elements = std::max<std::size_t>(1, options.bytes / sizeof(float));
  const std::size_t bytes = elements * sizeof(float);
  const auto real_bytes = static_cast<double>(bytes);
  const comm::NodeMap map = comm::read_node_map(communicator);
  const int ranks = communicator.size(), repeats = options.repeats();
  const compute::Limits before = training::measure_together(session);
  const auto figures = bench_sums(communicator, map, elements, sum, repeats);
  const double triad = compute::better(before, training::measure_together(session)).triad_gbs;
  const std::string chosen = training::automatic_allreduce(communicator, elements, sum);
  const auto compression =
      bench_compression(communicator, elements, std::min(repeats, kCompressions));
  if (session.leads() && options.prints()) {
    for (const std::string& line : session.placement) system::print("{}\n", line);
    system::print("{} on {}, {:.1f} MB; triad of all ranks {:.1f} GB/s measured in this run\n\n",
                  counted(ranks, "rank"), counted(map.nodes(), "node"), real_bytes / 1e6, triad);
    print_table(figures, real_bytes, ranks);
    system::print("\nauto takes {}\n", chosen);
    print_compression(compression, real_bytes, ranks);
  }
  const Json result{{"bench", "allreduce"},
                    {"ranks", ranks},
                    {"nodes", map.nodes()},
                    {"threads", session.threads},
                    {"bytes", bytes},
                    {"repeats", repeats},
                    {"engine", communicator.describe()},
                    {"cpu", session.machine.cpu_model},
                    {"cpu_id", to_json(session.machine.cpu_id)},
                    {"limit", {{"triad_gbs", triad}}},
                    {"auto", chosen},
                    {"algorithms", figures_json(figures)},
                    {"compression", compression_json(compression, real_bytes, ranks)}};
  training::write_json(session, options.json, result);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_bench_allreduce() {
  return cli::make_command<BenchOptions>(
      {.help =
           {.name = "bench",
            .topic = "allreduce",
            .summary = "every way to sum gradients over ranks",
            .about = "Measures each algorithm that sums gradients over ranks, beside the memory's "
                     "bandwidth.",
            .examples = {{"mpirun -np 4 cputrain bench allreduce --bytes 52871940",
                          "Measures sums of as many bytes as the paper's network has gradients."}},
            .common = {"bytes", "repeat", "threads", "json"}},
       .task = {.trains = false, .measures = true},
       .add_flags = add_allreduce_flags,
       .run = run_allreduce});
}

}  // namespace cputrain::commands

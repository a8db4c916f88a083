#include "scaling/bench/allreduce.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "comm/allreduce/candidates.h"
#include "comm/channel.h"
#include "core/error.h"
#include "exchange/compression/compression.h"
#include "exchange/make_exchange.h"
#include "system/clock.h"
#include "system/pages.h"

namespace cputrain::bench {
namespace {

/// One sum that is checked; the arrays are zeros afterwards, and stay so whatever is summed.
void check_sum(comm::Communicator& communicator, const std::string& name,
               comm::Candidate& candidate) {
  const int ranks = communicator.size();
  std::ranges::fill(candidate.input().as<float>(), static_cast<float>(communicator.rank() + 1));
  communicator.barrier();
  candidate.run();
  const auto wrong = [expected = static_cast<float>(ranks * (ranks + 1) / 2)](float x) {
    return x != expected;
  };
  double mistakes = std::ranges::any_of(candidate.result().as<float>(), wrong) ? 1 : 0;
  communicator.sum(Array::of<double>({&mistakes, 1}));
  std::ranges::fill(candidate.input().as<float>(), 0.0f);
  communicator.barrier();
  if (mistakes > 0) {
    fail(ExitCode::internal,
         "allreduce " + name +
             " gives wrong sums (training with it would be wrong, too); please report it");
  }
}

/// All in turn, so that a disturbance of the machine meets all of them alike.
void time_all(comm::Communicator& communicator,
              const std::vector<std::unique_ptr<comm::Candidate>>& candidates, int repeat,
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

// Compression.

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

 private:
  std::unique_ptr<comm::PointToPoint> peers_;
  double& seconds_;
};

compute::ParameterLayout dense_layout(std::size_t elements) {
  constexpr std::size_t kColumns = 512;
  const std::size_t rows = elements / kColumns, whole = rows * kColumns;
  compute::ParameterLayout layout;
  layout.parameters.push_back({"kernel",
                               {static_cast<int>(rows), static_cast<int>(kColumns)},
                               whole,
                               {0, whole},
                               true,
                               true,
                               false,
                               0});
  layout.gradient_size = layout.arena_size = elements;
  return layout;
}

/// Numbers of many sizes around 0, other ones on every rank: a linear congruential generator, since
/// only their spread matters here.
void fill(const Array& gradients, int rank) {
  auto state = static_cast<std::uint32_t>(rank) * 2654435761u + 1u;
  for (float& value : gradients.as<float>()) {
    state = state * 1664525u + 1013904223u;
    const float x = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
    value = 1e-3f * x * x * x;
  }
}

/// A gradient to sum again and again, and what that takes without sending.
class Trial {
 public:
  Trial(comm::Communicator& communicator, std::size_t elements)
      : communicator_(communicator),
        layout_(dense_layout(elements)),
        memory_(elements * sizeof(float)),
        kept_(elements * sizeof(float)) {
    fill({kept_.bytes().data(), elements, DType::f32}, communicator.rank());
  }

  /// The ratio, and the seconds of each repeat.
  double run(const exchange::Compression& compression, int repeat, std::vector<double>& seconds) {
    double sending = 0;
    comm::Channel channel{
        std::make_unique<TimedPointToPoint>(communicator_.make_point_to_point(), sending), nullptr,
        nullptr};
    channel.allreduce = comm::make_ring(*channel.peers);
    const auto sum = exchange::make_gradient_sum(compression, layout_, std::move(channel));
    const Range all{0, layout_.gradient_size};
    const Array gradients{memory_.bytes().data(), all.size(), DType::f32};
    for (int i = 0; i <= repeat; ++i) {  // the first warms up
      std::memcpy(gradients.data, kept_.bytes().data(), kept_.bytes().size());
      communicator_.barrier();
      sending = 0;
      const system::Stopwatch watch;
      sum->sum(all, gradients);
      const double slowest =
          std::max(0.0, comm::largest_of_ranks(communicator_, watch.seconds() - sending).value());
      if (i > 0) seconds.push_back(slowest);
    }
    return exchange::compression_ratio(*sum, {&all, 1}, DType::f32);
  }

 private:
  comm::Communicator& communicator_;
  compute::ParameterLayout layout_;
  system::Pages memory_, kept_;
};

}  // namespace

AllreduceBench::AllreduceBench(comm::Communicator& communicator, std::size_t bytes,
                               comm::SumArrays sum)
    : communicator_(communicator),
      elements_(std::max<std::size_t>(1, bytes / sizeof(float))),
      sum_(std::move(sum)),
      map_(comm::read_node_map(communicator)) {}

std::vector<AllreduceFigure> AllreduceBench::run(int repeat) {
  const system::Pages own(bytes());
  const Array numbers{own.bytes().data(), elements_, DType::f32};
  const comm::SharedArrays shared(communicator_, elements_);
  std::vector<std::unique_ptr<comm::Candidate>> candidates;
  std::vector<AllreduceFigure> figures;
  const auto add = [&](const std::string& name, std::unique_ptr<comm::Candidate> candidate) {
    figures.push_back({name, {}, {}});
    candidates.push_back(std::move(candidate));
  };
  const auto add_within = [&](const std::string& name, const std::string& algorithm) {
    add(name, shared.failure.empty()
                  ? comm::within_node(communicator_, map_, shared, sum_,
                                      comm::open_lane(communicator_, map_, {{algorithm}}))
                  : nullptr);
    figures.back().reason = shared.failure;
  };
  if (map_.nodes() == 1) {
    add_within("shm", "tree");
    add_within("hierarchical", "tree");
  } else {
    figures.push_back({"shm", {}, "the ranks are on several nodes"});
    candidates.push_back(nullptr);
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

std::string AllreduceBench::automatic_choice() {
  compute::ParameterLayout layout;
  layout.parameters.push_back(
      {"all", {static_cast<int>(elements_)}, elements_, {0, elements_}, false, true, false, 0});
  layout.gradient_size = layout.arena_size = elements_;
  const exchange::ExchangeParts parts{communicator_,           layout, bytes(),
                                      exchange::Overlap::none, {},     sum_};
  return comm::to_text(exchange::make_exchange(parts, {}).choice);
}

std::vector<CompressionFigure> bench_compression(comm::Communicator& communicator,
                                                 std::size_t bytes, int repeat) {
  Trial trial(communicator, bytes / sizeof(float));
  std::vector<double> plain;
  trial.run({}, repeat, plain);
  std::vector<CompressionFigure> figures;
  for (const exchange::Compression& compression : exchange::compressions()) {
    CompressionFigure figure{exchange::to_text(compression), 0, {}, plain};
    figure.ratio = trial.run(compression, repeat, figure.seconds);
    figures.push_back(std::move(figure));
  }
  return figures;
}

double breakeven_gbit_s(int ranks, double ratio, double bytes, double seconds) {
  if (ratio <= 1) return 0;
  if (seconds <= 0) return std::numeric_limits<double>::infinity();
  return 8e-9 * 2 * (ranks - 1) / ranks * (1 - 1 / ratio) * bytes / seconds;
}

}  // namespace cputrain::bench

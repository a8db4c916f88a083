#include "scaling/bench/bench_allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/allreduce/candidates.h"
#include "comm/open_channel.h"
#include "core/error.h"
#include "exchange/make_exchange.h"
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
    fail(ExitCode::internal, "allreduce " + name +
                                 " gives wrong sums (training with it would be "
                                 "wrong, too); please report it");
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

}  // namespace cputrain::bench

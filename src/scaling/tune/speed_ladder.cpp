#include "scaling/tune/speed_ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/communicator.h"
#include "core/error.h"
#include "core/statistics/calm_rounds.h"
#include "core/statistics/statistics.h"
#include "scaling/bench/steps.h"
#include "scaling/tune/suggestion.h"
#include "scaling/tune/test_rates.h"
#include "system/clock.h"
#include "system/lost_time/cpu_wait.h"
#include "system/lost_time/stolen_time.h"
#include "system/usage/work_meter.h"

namespace cputrain::tune {
namespace {

/// A size with its training in memory.
struct Placed {
  std::size_t rung = 0;  ///< in the ladder
  std::unique_ptr<bench::StepTrial> trial{};
  int steps = 1;                ///< a round's
  double seconds = 0;           ///< a round's
  std::vector<double> rates{};  ///< a contest's rounds
};

std::size_t beyond(std::size_t now, std::size_t before) { return now - std::min(now, before); }

class LadderWork {
 public:
  LadderWork(StepBench& bench, const LadderRequest& request)
      : bench_(bench),
        request_(request),
        ladder_{.flag = request.flag,
                .rungs = {},
                .climb = {},
                .usual = request.usual,
                .larger_alone = request.larger_alone,
                .crowded = bench.session.plan.crowding > 1} {}

  Ladder run() {
    measure_left();
    placed_.push_back(place(request_.rungs.front()));
    if (!std::exchange(bench_.told, true)) {
      measure_a_few();
      training::say(bench_.session, bench_.left.plan_text());
    }
    ladder_.climb =
        climb(request_.rungs, [this](int best, int next) { return contest(best, next); });
    if (ladder_.rungs.size() == 1) {  // or the second has no room
      measure_rounds();
      settle_first();
    }
    if (!ladder_.can_advise()) {
      bench_.left.only_usual();
      contest(ladder_.climb.best, ladder_.usual);
    }
    bench_.left.climbed();
    return std::move(ladder_);
  }

 private:
  comm::Communicator& communicator() const { return *bench_.session.communicator; }
  static std::size_t images_of_step(const Placed& placed) { return placed.trial->plan().images(0); }
  Rung& rung_of(const Placed& placed) { return ladder_.rungs[placed.rung]; }

  std::optional<Gain> contest(int best, int next);
  Placed place(int value);
  void measure_left();
  void measure_a_few();
  void measure_rounds();
  void measure_round(Placed&);
  void settle_first();
  double image_seconds() const;
  int wanted_rounds() const;
  void settle_memory(const Placed&);
  MemoryBytes planned(const training::TrainingMemory&);
  void say_rung(const Rung&) const;

  StepBench& bench_;
  const LadderRequest& request_;
  Ladder ladder_;
  std::vector<Placed> placed_;            ///< the best one, and the next behind it
  MemoryBytes before_{};                  ///< held, before the last of them
  std::vector<std::size_t> processes_{};  ///< by rank: held before the first
};

std::optional<Gain> LadderWork::contest(int best, int next) {
  std::erase_if(placed_, [&](const Placed& p) { return rung_of(p).value != best; });
  try {
    placed_.push_back(place(next));
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;  // which all ranks have alike
    ladder_.no_room = fmt::format("{} {} has no room beside {}, which it is compared with: {}",
                                  request_.flag, next, best, bench::first_clause(error.what()));
    training::say(bench_.session, ladder_.no_room);
    return std::nullopt;
  }
  measure_rounds();
  if (rung_of(placed_.front()).images_per_second == 0) settle_first();
  Rung& rung = ladder_.rungs.back();
  rung.against = best;
  rung.gain = gain_of(placed_.back().rates, placed_.front().rates);
  rung.images_per_second = rung_of(placed_.front()).images_per_second * (1 + rung.gain->median);
  bench_.left.tried(pays(*rung.gain));
  say_rung(rung);
  return rung.gain;
}

/// Seconds of a step per image, by the rounds of all sizes in memory.
double LadderWork::image_seconds() const {
  double seconds = 0;
  std::size_t rounds = 0;
  for (const Placed& placed : placed_) {
    for (const double rate : placed.rates) seconds += 1 / rate;
    rounds += placed.rates.size();
  }
  return seconds / static_cast<double>(rounds);
}

void LadderWork::settle_first() {
  Rung& first = ladder_.rungs.front();
  first.images_per_second = median(first.rounds);
  bench_.left.tried(true);
  say_rung(first);
}

/// The first training of a process leaves more than its own, which later ones find there.
void LadderWork::measure_left() {
  const MemoryBytes before = begin_peak();
  place(request_.rungs.front());
  ladder_.rungs.clear();
  const MemoryBytes after = begin_peak();
  bench_.held_before.rank += beyond(after.rank, before.rank);
  bench_.held_before.node += beyond(after.node, before.node);
}

/// The first size's, so that not a single step says how long all will take.
void LadderWork::measure_a_few() {
  constexpr int kSteps = 5;
  bench::StepTrial& trial = *placed_.front().trial;
  for (int i = 0; i < kSteps; ++i) trial.measure();
  bench_.left.measured(1 / comm::mean_of_ranks(communicator(), median(trial.images_per_second())));
}

Placed LadderWork::place(int value) {
  const Silence silence(bench_.session);
  const system::Stopwatch placing;
  before_ = begin_peak();
  training::TrainingSpec spec = request_.spec(value);
  training::follow_ready_form(spec, *bench_.source);
  training::TrainingPlan plan =
      training::plan_training(bench_.session, std::move(spec), bench_.classes);
  plan.keeps_features = false;  // else steps grow quicker the more often images are met
  Placed placed{.rung = ladder_.rungs.size()};
  placed.trial = std::make_unique<bench::StepTrial>(bench_.session, std::move(plan), bench_.source,
                                                    bench_.data);
  const training::TrainingMemory& memory = placed.trial->compiled().memory;
  ladder_.rungs.push_back({.value = value, .planned = planned(memory)});
  const double placed_after = placing.seconds();
  const double seconds = comm::mean_of_ranks(communicator(), placed.trial->warm_up());
  bench_.left.measured({.image_seconds = seconds / static_cast<double>(images_of_step(placed)),
                        .placing_seconds = placed_after,
                        .warm_steps = placed.trial->steps()});
  placed.steps = steps_of_round(seconds);
  placed.seconds = placed.steps * seconds;
  settle_memory(placed);
  return placed;
}

int LadderWork::wanted_rounds() const {
  double seconds = 0;
  for (const Placed& placed : placed_) seconds += placed.seconds;
  return usual_rounds(seconds, bench_.rounds);
}

/// In turn, until enough rounds were calm; up to kMostRounds times as many where they do not tell
/// which is quicker.
void LadderWork::measure_rounds() {
  const int wanted = wanted_rounds();
  CalmRounds rounds(wanted);
  system::CpuWait wait;
  system::StolenTime stolen(bench_.session.place().cpus);
  for (Placed& placed : placed_) placed.rates.clear();
  const auto undecided = [&] {
    if (placed_.size() < 2 || rounds.measured() >= static_cast<std::size_t>(kMostRounds * wanted)) {
      return false;
    }
    return is_unsure(
        gain_of(rounds.counted_of(placed_.back().rates), rounds.counted_of(placed_.front().rates)));
  };
  while (!rounds.enough() || undecided()) {
    for (Placed& placed : placed_) measure_round(placed);
    rounds.add(comm::largest_of_ranks(communicator(), stolen.part_since_last()));
  }
  const LostTime lost{comm::largest_of_ranks(communicator(), wait.part_since_last()),
                      rounds.stolen_of_counted()};
  bench_.left.measured(image_seconds());
  for (Placed& placed : placed_) {
    placed.rates = rounds.counted_of(placed.rates);
    Rung& rung = rung_of(placed);
    if (!rung.rounds.empty()) continue;
    rung.rounds = placed.rates;
    rung.lost = lost;
  }
}

void LadderWork::measure_round(Placed& placed) {
  for (int i = 0; i < placed.steps; ++i) placed.trial->measure();
  const std::vector<double>& rates = placed.trial->images_per_second();
  double seconds = 0;  // per image
  for (int i = 0; i < placed.steps; ++i) seconds += 1 / *(rates.rbegin() + i);
  placed.rates.push_back(comm::mean_of_ranks(communicator(), placed.steps / seconds));
}

/// What the training took on top of what was held before it, and what the process is without one.
void LadderWork::settle_memory(const Placed& placed) {
  struct OfRank {
    MemoryBytes bytes;
    bool known;
  };
  const auto held = system::held_memory();
  const bool on_host = bench_.session.backend->memory().is_host();
  OfRank mine{{}, held && on_host};
  if (mine.known) {
    mine.bytes = {bench_.held_before.rank + beyond(held->peak, before_.rank),
                  bench_.held_before.node + beyond(held->part, before_.node)};
  }
  const std::vector<OfRank> all = comm::gather_values(communicator(), mine);
  if (!std::ranges::all_of(all, &OfRank::known)) return;
  MemoryBytes most;
  const auto& memory = placed.trial->compiled().memory;
  for (const training::NodeCapacity& node : memory.capacities) {
    std::size_t sum = 0;
    for (const int rank : node.ranks) {
      const MemoryBytes& bytes = all[static_cast<std::size_t>(rank)].bytes;
      sum += bytes.node;
      most.rank = std::max(most.rank, bytes.rank);
    }
    most.node = std::max(most.node, sum);
  }
  rung_of(placed).measured = most;
}

/// The plan counts what a process holds already, and here that may be another training.
MemoryBytes LadderWork::planned(const training::TrainingMemory& memory) {
  if (processes_.empty()) {
    for (const training::RankMemory& rank : memory.ranks) processes_.push_back(rank.process);
  }
  MemoryBytes most;
  for (const training::NodeCapacity& node : memory.capacities) {
    std::size_t sum = memory.shared.total();
    for (const int rank : node.ranks) {
      const auto r = static_cast<std::size_t>(rank);
      const std::size_t bytes =
          processes_[r] + memory.ranks[r].to_come() + memory.ranks[r].elsewhere;
      sum += bytes;
      most.rank = std::max(most.rank, bytes);
    }
    most.node = std::max(most.node, sum);
  }
  return most;
}

void LadderWork::say_rung(const Rung& rung) const {
  const std::string lost = lost_text(rung.lost);
  training::say(bench_.session,
                bench_.left.place_text() + rung_line(request_.flag, rung) +
                    (lost.empty() ? "" : "; " + lost) +
                    (&rung == &ladder_.rungs.back() ? bench_.left.left_text() : ""));
}

}  // namespace

MemoryBytes begin_peak() {
  system::forget_peak();
  const auto held = system::held_memory();
  return held ? MemoryBytes{held->peak, held->part} : MemoryBytes{};
}

Ladder measure_ladder(StepBench& bench, const LadderRequest& request) {
  return LadderWork(bench, request).run();
}

}  // namespace cputrain::tune

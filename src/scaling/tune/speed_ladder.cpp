#include "scaling/tune/speed_ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/communicator.h"
#include "core/error.h"
#include "core/statistics/calm_rounds.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/bench/steps.h"
#include "system/clock.h"
#include "system/lost_time.h"
#include "system/usage/work_meter.h"

namespace cputrain::tune {
namespace {

/// "micro-batch 32: 136.2 images/s, +6.1 % (5.0 to 7.2) over 8; memory of a rank: 1.1 GB planned",
/// and time that was lost.
std::string rung_line(const std::string& flag, const Rung& rung) {
  std::string line = fmt::format("{} {}: {}", flag, rung.value,
                                 rate_of_images(rung.images_per_second) + " images/s");
  if (rung.gain) line += fmt::format(", {} over {}", gain_text(*rung.gain), *rung.against);
  line += fmt::format("; memory of a rank: {} planned",
                      bytes_text(static_cast<double>(rung.planned.peak)));
  if (rung.measured) {
    line += fmt::format(", {} measured", bytes_text(static_cast<double>(rung.measured->peak)));
  }
  const std::string lost = lost_text(rung.lost);
  return lost.empty() ? line : line + "; " + lost;
}

/// A contest that does not tell which size is quicker has up to so many times as many rounds.
constexpr int kMostRounds = 2;

/// Steps of a round in which sizes take turns: a quarter of a second of them.
int steps_of_round(double step_seconds) {
  constexpr double kRoundSeconds = 0.25, kMost = 1000;
  return static_cast<int>(std::clamp(std::ceil(kRoundSeconds / step_seconds), 1.0, kMost));
}

/// Rounds that a contest begins with, of so many seconds for all sizes together: those that were
/// asked for, or 3 to 9 that fill 8 seconds.
int usual_rounds(double seconds, std::optional<int> asked) {
  if (asked) return *asked;
  constexpr double kSeconds = 8, kLeast = 3, kMost = 9;
  return static_cast<int>(std::clamp(std::ceil(kSeconds / seconds), kLeast, kMost));
}

/// A size with its training in memory.
struct Placed {
  std::size_t rung = 0;  ///< in the ladder
  std::unique_ptr<bench::StepTrial> trial{};
  int steps = 1;                ///< a round's
  double seconds = 0;           ///< a round's
  std::vector<double> rates{};  ///< a contest's rounds
};

std::size_t beyond(std::size_t now, std::size_t before) { return now - std::min(now, before); }

/// The rank's and the node's with most; every node has `shared` besides.
system::HeldMemory most_of(const std::vector<training::NodeCapacity>& nodes,
                           const std::vector<system::HeldMemory>& ranks, std::size_t shared) {
  system::HeldMemory most;
  for (const training::NodeCapacity& node : nodes) {
    std::size_t sum = shared;
    for (const int rank : node.ranks) {
      const system::HeldMemory& bytes = ranks[static_cast<std::size_t>(rank)];
      sum += bytes.part;
      most.peak = std::max(most.peak, bytes.peak);
    }
    most.part = std::max(most.part, sum);
  }
  return most;
}

class LadderWork {
 public:
  LadderWork(StepBench& bench, Ladder known, const std::vector<int>& rungs, const SpecOf& spec)
      : bench_(bench), rungs_(rungs), spec_(spec), ladder_(std::move(known)) {
    ladder_.crowded = bench.session.plan.crowding > 1;
  }

  Ladder run() {
    measure_left();
    placed_.push_back(place(rungs_.front()));
    if (!std::exchange(bench_.told, true)) {
      measure_a_few();
      training::say(bench_.session, bench_.left.plan_text());
    }
    ladder_.climb = climb(rungs_, [this](int best, int next) { return contest(best, next); });
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
  Rung& rung_of(const Placed& placed) { return ladder_.rungs[placed.rung]; }

  std::optional<Gain> contest(int best, int next);
  Placed place(int value);
  void measure_left();
  void measure_a_few();
  void measure_rounds();
  void measure_round(Placed&);
  void settle_first();
  double image_seconds() const;
  void settle_memory(const Placed&);
  system::HeldMemory planned(const training::TrainingMemory&);
  void say_rung(const Rung&) const;

  StepBench& bench_;
  const std::vector<int>& rungs_;
  const SpecOf& spec_;
  Ladder ladder_;
  std::vector<Placed> placed_;            ///< the best one, and the next behind it
  system::HeldMemory before_{};           ///< held, before the last of them
  std::vector<std::size_t> processes_{};  ///< by rank: held before the first
};

std::optional<Gain> LadderWork::contest(int best, int next) {
  std::erase_if(placed_, [&](const Placed& p) { return rung_of(p).value != best; });
  try {
    placed_.push_back(place(next));
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;  // which all ranks have alike
    ladder_.no_room = fmt::format("{} {} has no room beside {}, which it is compared with: {}",
                                  ladder_.flag, next, best, bench::first_clause(error.what()));
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
  const system::HeldMemory before = begin_peak();
  place(rungs_.front());
  ladder_.rungs.clear();
  const system::HeldMemory after = begin_peak();
  bench_.held_before.peak += beyond(after.peak, before.peak);
  bench_.held_before.part += beyond(after.part, before.part);
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
  training::TrainingSpec spec = spec_(value);
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
  const auto images = static_cast<double>(placed.trial->plan().images(0));
  bench_.left.measured(seconds / images, placed_after, placed.trial->steps());
  placed.steps = steps_of_round(seconds);
  placed.seconds = placed.steps * seconds;
  settle_memory(placed);
  return placed;
}

/// In turn, until enough rounds were calm; up to kMostRounds times as many where they do not tell
/// which is quicker.
void LadderWork::measure_rounds() {
  double seconds = 0;
  for (const Placed& placed : placed_) seconds += placed.seconds;
  const int wanted = usual_rounds(seconds, bench_.rounds);
  CalmRounds rounds(wanted);
  const auto wait = system::watch_cpu_wait();
  const auto stolen = system::watch_stolen(bench_.session.place().cpus);
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
    rounds.add(comm::largest_of_ranks(communicator(), stolen()));
  }
  const TakenTime lost{comm::largest_of_ranks(communicator(), wait()), rounds.stolen_of_counted()};
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
  std::optional<system::HeldMemory> mine;
  const auto held = system::held_memory();
  if (held && bench_.session.backend->memory().is_host()) {
    mine = {bench_.held_before.peak + beyond(held->peak, before_.peak),
            bench_.held_before.part + beyond(held->part, before_.part)};
  }
  std::vector<system::HeldMemory> ranks;
  for (const std::optional<system::HeldMemory>& rank : comm::gather_values(communicator(), mine)) {
    if (!rank) return;
    ranks.push_back(*rank);
  }
  rung_of(placed).measured = most_of(placed.trial->compiled().memory.capacities, ranks, 0);
}

/// The plan counts what a process holds already, and here that may be another training.
system::HeldMemory LadderWork::planned(const training::TrainingMemory& memory) {
  if (processes_.empty()) {
    for (const training::RankMemory& rank : memory.ranks) processes_.push_back(rank.process);
  }
  std::vector<system::HeldMemory> ranks;
  for (const training::RankMemory& rank : memory.ranks) {
    const std::size_t bytes = processes_[ranks.size()] + rank.to_come() + rank.elsewhere;
    ranks.push_back({bytes, bytes});
  }
  return most_of(memory.capacities, ranks, memory.shared.total());
}

void LadderWork::say_rung(const Rung& rung) const {
  const std::string left = &rung == &ladder_.rungs.back() ? bench_.left.left_text() : "";
  training::say(bench_.session, bench_.left.place_text() + rung_line(ladder_.flag, rung) + left);
}

}  // namespace

double computed(double all, double there, double kept_features) {
  return all - kept_features * std::max(0.0, all - there);
}

void WorkLeft::climbed() {
  ladders_.erase(ladders_.begin());
  tried_ = 0;
  in_vain_ = 0;
  ended_ = usual_done_ = false;
}

double WorkLeft::placing_seconds(std::size_t images) const {
  return placing_seconds_ + warm_steps_ * image_seconds_ * static_cast<double>(images);
}

double WorkLeft::round_seconds(std::size_t images) const {
  const double step = image_seconds_ * static_cast<double>(images);
  return steps_of_round(step) * step;
}

double WorkLeft::contest_seconds(std::size_t images, std::size_t other, bool most) const {
  const double round = round_seconds(images) + round_seconds(other);
  const double times = most ? kMostRounds : (1.0 + kMostRounds) / 2;
  return placing_seconds(images) + times * usual_rounds(round, rounds_) * round;
}

std::size_t WorkLeft::contests_left(const LadderLeft& ladder, bool begun, bool most) const {
  const std::size_t done = begun ? std::max<std::size_t>(1, tried_) : 1;
  if ((begun && ended_) || done >= ladder.images.size()) return 0;
  const std::size_t left = ladder.images.size() - done;
  const int in_vain = begun ? in_vain_ : 0;
  const bool compared = begun && tried_ > 1;
  const int pay = compared ? (in_vain == 0 ? 1 : 0) : 2;
  const int likely = kPatience - in_vain + pay;
  return most && in_vain < kPatience ? left : std::min(left, static_cast<std::size_t>(likely));
}

/// The best size of a contest is not known; it takes no longer than the largest before.
double WorkLeft::ladder_seconds(const LadderLeft& ladder, bool begun, bool most) const {
  const std::vector<std::size_t>& images = ladder.images;
  const std::size_t done = begun ? tried_ : 0;
  double seconds = begun ? 0 : 2 * placing_seconds(images.front());  // it is placed twice
  if (images.size() == 1 && done == 0) {
    const double round = round_seconds(images.front());
    seconds += usual_rounds(round, rounds_) * round;
  }
  std::size_t next = std::max<std::size_t>(1, done);
  const std::size_t end = next + contests_left(ladder, begun, most);
  for (; next < end; ++next) seconds += contest_seconds(images[next], images[next - 1], most);
  if (ladder.usual && !(begun && usual_done_)) {
    seconds += contest_seconds(*ladder.usual, images[std::min(next, images.size()) - 1], most);
  }
  return seconds;
}

double WorkLeft::seconds(bool most) const {
  double seconds = 0;
  for (const LadderLeft& ladder : ladders_) {
    seconds += ladder_seconds(ladder, &ladder == &ladders_.front(), most);
  }
  if (rates_.steps == 0) return seconds;
  const std::size_t images = most ? rates_.most_images : rates_.likely_images;
  const double all = static_cast<double>(images) * rates_.steps,
               there = static_cast<double>(rates_.there);
  return seconds + placing_seconds_ + rates_.decoding_seconds * std::min(all, there) +
         image_seconds_ * computed(all, there, most ? 0 : rates_.kept_features);
}

std::string WorkLeft::plan_text() const {
  constexpr double kNear = 1.5;
  std::vector<std::string> parts;
  for (const LadderLeft& ladder : ladders_) {
    const std::size_t sizes = ladder.sizes();
    parts.push_back(fmt::format("{}{} of --{}", sizes > 1 ? "up to " : "", counted(sizes, "size"),
                                ladder.flag));
  }
  if (rates_.steps > 0) {
    parts.push_back(fmt::format("up to {} steps with growing learning rates", rates_.steps));
  }
  const double likely = likely_seconds(), most = most_seconds();
  return fmt::format(
      "Tuning: {}: about {}{}, by the first steps; the line of each size says what is left",
      join(parts, ", then "), about_text(likely),
      most <= kNear * likely ? fmt::format(", at most {}", most_text(most)) : "");
}

std::string WorkLeft::place_text() const {
  const std::size_t sizes = ladders_.front().sizes();
  return fmt::format("[{} of {}{}] ", tried_, sizes > 1 ? "up to " : "", sizes);
}

std::string WorkLeft::left_text() const {
  const double seconds = likely_seconds();
  return seconds > 0 ? fmt::format(" - about {} left", about_text(seconds)) : "";
}

system::HeldMemory begin_peak() {
  system::forget_peak();
  return system::held_memory().value_or(system::HeldMemory{});
}

Ladder measure_ladder(StepBench& bench, Ladder known, const std::vector<int>& rungs,
                      const SpecOf& spec) {
  return LadderWork(bench, std::move(known), rungs, spec).run();
}

}  // namespace cputrain::tune

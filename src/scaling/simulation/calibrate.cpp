#include "scaling/simulation/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <exception>
#include <list>
#include <optional>
#include <thread>

#include "core/statistics/calm_rounds.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "core/version.h"
#include "scaling/simulation/timed_worker.h"
#include "system/clock.h"
#include "system/limits/process_limits.h"
#include "system/lost_time.h"

namespace cputrain::simulation {
namespace {

constexpr int kRounds = 12;

/// All measurements of one team.
class TeamTimes {
 public:
  TeamTimes(const Calibration& todo, Team team) : todo_(todo), team_(team) {
    for (int i = 0; i < team.ranks; ++i) workers_.emplace_back(todo, team, i);
    together([&](int i) { workers_[index(i)].start(); });
  }

  /// First of all: measures the machine's limits and makes the programs.
  void compile() {
    measure_calm_limits();
    for (TimedWorker& worker : workers_) {
      worker.compile([&](const compute::ParameterLayout& layout) {
        if (!weights_)
          weights_ = std::make_unique<system::Pages>(layout.arena_size * sizeof(float));
        return Array{weights_->bytes().data(), layout.arena_size, DType::f32};
      });
    }
  }

  /// One rank makes the weights of several trainings, for all teams.
  void train() {
    constexpr double kPart = 0.1;
    const auto bytes = static_cast<double>(weights_->bytes().size());
    const int fit = static_cast<int>(kPart * todo_.machine.memory_gb * 1e9 / bytes);
    together([&](int i) {
      if (i == 0) workers_[0].train(std::clamp(fit, 1, todo_.trainings));
    });
  }

  /// With the weights that `trainer` has made, which may be this one itself: finds each size's
  /// algorithms, and how many passes of it make a round of so many seconds.
  void prepare(const TeamTimes& trainer, double round) {
    trainer_ = &trainer;
    use_weights(0);
    for (std::size_t size = 0; size < todo_.sizes.size(); ++size) {
      const double seconds = round / static_cast<double>(todo_.sizes.size());
      passes_.push_back(static_cast<int>(std::ceil(seconds / warm_up(size))));
    }
  }

  bool done() const { return rounds_.enough(); }

  /// With the next weights in turn.
  void time_round() {
    const int kept = static_cast<int>(rounds_.measured()) % trainer_->workers_[0].kept();
    use_weights(kept);
    weights_of_round_.push_back(kept);
    rounds_.add(most_stolen([&] {
      for (std::size_t size = 0; size < passes_.size(); ++size) {
        together([&](int i) { workers_[index(i)].time_passes(size, passes_[size]); });
      }
    }));
  }

  /// Where its rounds were disturbed and count all the same, in words; else empty.
  std::string complaint() const {
    if (!rounds_.gave_up()) return "";
    return fmt::format("{}: {:.0f} % of the CPU time", text_of(team_),
                       100 * rounds_.stolen_of_counted().value_or(0));
  }

  CostsWhenActive costs() {
    for (std::size_t size = 0; size < passes_.size(); ++size) add_layers(size);
    add_spread();
    std::vector<double> updates(workers_.size()), sums(workers_.size());
    together([&](int i) { updates[index(i)] = workers_[index(i)].time_update(); });
    together([&](int i) { sums[index(i)] = workers_[index(i)].time_sum(); });
    costs_.active = team_.ranks;
    costs_.threads = team_.threads;
    costs_.update_seconds_per_number = median(updates);
    costs_.sum_gbs = median(sums) / 1e9;
    return costs_;
  }

  /// That a rank of its own allocates.
  double bytes_of_rank() const {
    double bytes = sizeof(float) * static_cast<double>(workers_[0].gradient_size());
    for (const double workspace : workspaces()) bytes += workspace;
    return bytes;
  }

  std::vector<double> workspaces() const {
    std::vector<double> bytes;
    for (std::size_t size = 0; size < todo_.sizes.size(); ++size) {
      bytes.push_back(static_cast<double>(workers_[0].program(size).workspace_bytes()));
    }
    return bytes;
  }

 private:
  /// Calls work(0), work(1), ... at the same time, each on its own thread. Throws what one threw.
  void together(const std::function<void(int)>& work) const {
    std::vector<std::exception_ptr> failures(workers_.size());
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < team_.ranks; ++i) {
        threads.emplace_back([&, i] {
          try {
            workers_[index(i)].bind();
            work(i);
          } catch (...) {
            failures[index(i)] = std::current_exception();
          }
        });
      }
    }
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

  void use_weights(int kept) {
    together([&](int i) {
      if (i == 0) workers_[0].use_weights(trainer_->workers_[0], kept);
    });
  }

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  /// The part that was stolen while this worked, of the rank that lost most, as others may wait for
  /// it; nothing where the system does not tell.
  std::optional<double> most_stolen(const std::function<void()>& work) const {
    std::vector<system::PartSinceLast> watches;
    for (const auto& worker : workers_) watches.push_back(system::watch_stolen(worker.cpus()));
    work();
    std::optional<double> most;
    for (const auto& watch : watches) most = std::max(most, watch());
    return most;
  }

  /// The best of a few attempts, until one was not disturbed.
  void measure_calm_limits() {
    constexpr int kAttempts = 4;
    compute::Limits best;
    for (int i = 0; i < kAttempts; ++i) {
      const auto stolen = most_stolen([&] { best = compute::better(best, measure_limits()); });
      if (stolen.value_or(0) <= CalmRounds::kCalm) break;
    }
    costs_.fma_gflops = best.fma_gflops;
    costs_.triad_gbs = best.triad_gbs;
  }

  /// Multiply-adds of a rank, bandwidth of all.
  compute::Limits measure_limits() {
    std::barrier<> meeting(team_.ranks);
    std::vector<double> slowest(workers_.size());
    std::vector<compute::Limits> limits(workers_.size());
    together([&](int i) {
      const compute::Together together{.processes = team_.ranks,
                                       .meet = [&] { meeting.arrive_and_wait(); },
                                       .slowest =
                                           [&, i](double seconds) {
                                             slowest[index(i)] = seconds;
                                             meeting.arrive_and_wait();
                                             const double most = std::ranges::max(slowest);
                                             meeting.arrive_and_wait();
                                             return most;
                                           }};
      limits[index(i)] = workers_[index(i)].backend().measure_limits(together);
    });
    compute::Limits sum;
    for (const compute::Limits& limit : limits) {
      sum.fma_gflops += limit.fma_gflops / team_.ranks;
      sum.triad_gbs += limit.triad_gbs;
    }
    return sum;
  }

  /// The slowest rank's seconds of a pass. All then use the algorithms that the first one found.
  double warm_up(std::size_t size) {
    std::vector<double> seconds(workers_.size());
    together([&](int i) { seconds[index(i)] = workers_[index(i)].warm_up(size); });
    const std::string found = workers_[0].program(size).tuner().tuned_methods();
    for (TimedWorker& worker : workers_) {
      if (!found.empty()) worker.program(size).tuner().use_tuned_methods(found);
    }
    return std::ranges::max(seconds);
  }

  using OfRound = std::function<double(const TimedRound&)>;

  static std::vector<double> of_rounds(const TimedWorker& worker, std::size_t size,
                                       const OfRound& seconds) {
    std::vector<double> values;
    for (const TimedRound& round : worker.rounds(size)) values.push_back(seconds(round));
    return values;
  }

  /// From values of all rounds, as many of each: those that count, by the median of their weights,
  /// so that what is left is the machine's doing and the images'.
  std::vector<double> by_weights(const std::vector<double>& values) const {
    return by_group_median(rounds_.counted_of(values), rounds_.counted_of(weights_of_round_));
  }

  /// What `seconds` takes of a round: the median over ranks and rounds that count, and the mean of
  /// those over the weights, as an epoch has them all.
  double typical_of(std::size_t size, const OfRound& seconds) {
    const std::vector<int> weights = rounds_.counted_of(weights_of_round_);
    std::vector<double> values;
    std::vector<int> groups;
    for (const TimedWorker& worker : workers_) {
      const std::vector<double> own = rounds_.counted_of(of_rounds(worker, size, seconds));
      values.insert(values.end(), own.begin(), own.end());
      groups.insert(groups.end(), weights.begin(), weights.end());
    }
    return mean_of_group_medians(values, groups);
  }

  void add_layers(std::size_t size) {
    const std::vector<compute::LayerTime> layers = workers_[0].program(size).layer_times();
    costs_.layers.resize(layers.size() + 1);
    for (double LayerSeconds::*way : {&LayerSeconds::forward, &LayerSeconds::backward}) {
      const auto add = [&](std::size_t i, double seconds) {
        LayerCost& cost = costs_.layers[i];
        (way == &LayerSeconds::forward ? cost.forward : cost.backward).push_back(seconds);
      };
      for (std::size_t i = 0; i < layers.size(); ++i) {
        costs_.layers[i].name = layers[i].name;
        add(i, typical_of(size, [&](const TimedRound& round) { return round[i].*way; }));
      }
      costs_.layers.back().name = kBetweenLayers;
      add(layers.size(), typical_of(size, [&](const TimedRound& round) {
            double rest = round.back().*way;
            for (std::size_t i = 0; i < layers.size(); ++i) rest -= round[i].*way;
            return std::max(0.0, rest);
          }));
    }
  }

  /// Disturbances of single passes on one rank, and how far rounds drift: medians over the sizes.
  void add_spread() {
    std::vector<double> spreads, drifts;
    for (std::size_t size = 0; size < passes_.size(); ++size) {
      for (const TimedWorker& worker : workers_) {
        constexpr double kSigma = 0.341;  // a normal distribution has so much within one, each side
        const std::vector<double> passes = by_weights(worker.passes(size));
        spreads.push_back((quantile(passes, 0.5 + kSigma) - quantile(passes, 0.5 - kSigma)) / 2);
        const std::vector<double> rounds =
            by_weights(of_rounds(worker, size, [](const TimedRound& round) {
              return round.back().forward + round.back().backward;
            }));
        drifts.push_back(quantile(rounds, 0.75) - quantile(rounds, 0.25));
      }
    }
    costs_.spread = median(spreads);
    costs_.drift = median(drifts);
  }

  const Calibration& todo_;
  Team team_;
  const TeamTimes* trainer_ = nullptr;
  std::unique_ptr<system::Pages> weights_;
  std::vector<TimedWorker> workers_;
  std::vector<int> passes_;  ///< in a round, by size
  CalmRounds rounds_{kRounds};
  std::vector<int> weights_of_round_;
  CostsWhenActive costs_;
};

CostTable table_of(const Calibration& todo) {
  const placement::Machine& machine = todo.machine;
  CostTable table;
  table.cpu = machine.cpu_model;
  table.host = machine.host;
  table.build = kVersion;
  table.cores = std::max(1, machine.allowed_cores);
  table.hardware_threads = std::max(table.cores, static_cast<int>(machine.allowed_cpus.size()));
  table.memory_bytes = machine.memory_gb * 1e9;
  table.sizes = todo.sizes;
  return table;
}

/// Before any are started: OpenMP ends the process where it cannot have its own.
void require_threads(const CostTable& table) {
  int most = 0;
  for (const Team& team : teams_of(table.cores, table.hardware_threads)) {
    most = std::max(most, team.ranks * team.threads);
  }
  system::require_threads(most);
}

/// Behind the team's name; empty where it can be measured. `first` has its programs.
std::string why_left_out(const Calibration& todo, const Team& team, const TeamTimes* first) {
  const placement::Machine& machine = todo.machine;
  if (machine.team_limit > 0 && team.threads > machine.team_limit) {
    return fmt::format(": {} allows no more than {}", machine.team_limited_by, machine.team_limit);
  }
  // All teams keep their programs, since rounds go through them.
  constexpr double kPart = 0.25;
  const bool fits =
      !first || team.ranks * first->bytes_of_rank() <= kPart * machine.memory_gb * 1e9;
  return fits ? "" : " would need too much memory";
}

/// A second is long enough for the clock, for all ranks to be at it most of the time, and for what
/// is stolen, in ticks of 10 ms, to tell something. Little time for many teams makes shorter ones;
/// below half a second one tick already makes a round a disturbed one.
double seconds_of_round(double asked, std::size_t teams) {
  return std::min(1.0, asked / (kRounds * static_cast<double>(teams)));
}

/// Rounds over all teams, as many as are wanted and for the time asked for; then those that the
/// host disturbed again, for a while.
void time_rounds(const Calibration& todo, std::list<TeamTimes>& teams) {
  constexpr double kTell = 30, kAgain = 60;
  const system::Stopwatch watch;
  system::Stopwatch said;
  std::optional<system::Stopwatch> again;
  for (int round = 1;; ++round) {
    for (TeamTimes& team : teams) {
      if (watch.seconds() < todo.seconds || !team.done()) team.time_round();
    }
    const double past = watch.seconds();
    if (past >= todo.seconds && round >= kRounds) {
      if (std::ranges::all_of(teams, &TeamTimes::done)) return;
      if (!again) again.emplace();
      if (again->seconds() >= kAgain) return;
    }
    if (said.seconds() < kTell) continue;
    said = {};
    todo.say(calibration_progress(round, past, todo.seconds));
  }
}

}  // namespace

std::string calibration_progress(int rounds, double past, double least) {
  if (past >= least && rounds >= kRounds) {
    return fmt::format(
        "Measured for {:.0f} s; measuring again what the host disturbed, which took CPU time for "
        "others",
        past);
  }
  const double whole = std::max(least, past * kRounds / rounds);
  return fmt::format("Measured for {:.0f} s, about {:.0f} s to go", past, whole - past);
}

CostTable calibrate(const Calibration& todo) {
  CostTable table = table_of(todo);
  std::list<TeamTimes> teams;
  todo.say(
      fmt::format("Measuring the model's costs on {} (preparations, then at least {:.0f} s; "
                  "--measure-seconds N changes that, --costs FILE takes those of another machine)",
                  counted(table.cores, "core"), todo.seconds));
  require_threads(table);
  for (const Team& team : teams_of(table.cores, table.hardware_threads)) {
    const std::string why = why_left_out(todo, team, teams.empty() ? nullptr : &teams.front());
    if (why.empty()) {
      teams.emplace_back(todo, team).compile();
    } else {
      todo.say(fmt::format("{}{}; their costs are taken from fewer", text_of(team), why));
    }
  }
  // Has all cores, where there are several and memory for it.
  TeamTimes& trainer = teams.back();
  trainer.train();
  const double round = seconds_of_round(todo.seconds, teams.size());
  for (TeamTimes& team : teams) team.prepare(trainer, round);
  time_rounds(todo, teams);
  for (const TeamTimes& team : teams) {
    if (const std::string lost = team.complaint(); !lost.empty()) {
      todo.say(
          fmt::format("{} went to others on the host; these costs are too high, so measure again "
                      "at a quieter time",
                      lost));
    }
  }
  table.workspace_bytes = teams.front().workspaces();
  for (TeamTimes& team : teams) table.by_active.push_back(team.costs());
  return table;
}

}  // namespace cputrain::simulation

#include "scaling/simulation/team.h"

#include <fmt/format.h>

namespace cputrain::simulation {

std::string text_of(const Team& team) {
  return fmt::format("{} rank{} x {} thread{}", team.ranks, team.ranks == 1 ? "" : "s",
                     team.threads, team.threads == 1 ? "" : "s");
}

std::vector<Team> teams_of(int cores, int hardware_threads) {
  std::vector<Team> teams;
  for (int ranks = 1; ranks < cores; ranks *= 4) teams.push_back({ranks, 1});
  teams.push_back({cores, 1});
  if (hardware_threads > cores) teams.push_back({hardware_threads, 1});
  if (cores > 1) teams.push_back({1, cores});
  return teams;
}

}  // namespace cputrain::simulation

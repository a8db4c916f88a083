#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/error.h"
#include "core/text.h"
#include "scaling/simulation/simulator.h"
#include "system/child_process.h"
#include "system/files.h"

namespace cputrain::simulation {
namespace {

/// What of the process' own environment the simulator needs.
std::vector<std::string> environment() { return {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"}; }

std::vector<std::string> words_of(const Simulator& simulator, const std::string& stem, int ranks) {
  return {simulator.smpirun, "-quiet", "-np", std::to_string(ranks), "-platform", stem + ".xml",
          "-hostfile", stem + ".hosts", "--log=root.thres:error",
          // Time passes where the program says so, not where this machine takes its time.
          "--cfg=smpi/simulate-computation:no",
          // There are no globals to be kept apart.
          "--cfg=smpi/privatization:no",
          // Bandwidth and latency are the platform's; links are full duplex.
          "--cfg=smpi/bw-factor:0:1", "--cfg=smpi/lat-factor:0:1", "--cfg=network/crosstraffic:0",
          "--cfg=network/TCP-gamma:0",
          // Areas that are not read are mapped as they are, not filled page by page.
          "--cfg=smpi/shared-malloc:local",
          // From so many bytes on a message is not kept for a receiver that comes later.
          "--cfg=smpi/send-is-detached-thresh:8192",
          // Open MPI's choices, but where those of SimGrid take ranks^2 messages at the start.
          "--cfg=smpi/coll-selector:ompi", "--cfg=smpi/allgatherv:ompi_bruck",
          "--cfg=smpi/bcast:binomial_tree", simulator.program, stem + ".job.json"};
}

std::string last_words(const std::string& log) {
  constexpr std::size_t kLongest = 600;
  std::ifstream stream(log, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (text.size() > kLongest) text.erase(0, text.size() - kLongest);
  return printable(text);
}

/// One cell, from its files to its result.
class Run {
 public:
  Run(const Simulator& simulator, const std::filesystem::path& folder, SimulationJob job,
      std::size_t number)
      : stem_((folder / fmt::format("cell-{}", number)).string()) {
    job.result = stem_ + ".result.json";
    write_job(stem_ + ".job.json", job);
    system::write_own_file(stem_ + ".xml", simgrid_platform(job.platform, job.nodes()));
    system::write_own_file(stem_ + ".hosts", simgrid_hosts(job.nodes(), job.ranks));
    std::filesystem::remove(job.result);
    process_.emplace(
        system::ChildRequest{words_of(simulator, stem_, job.ranks), environment(), stem_ + ".log"});
  }

  bool ended() { return process_->exit_code().has_value(); }

  SimulationResult result() {
    const int code = process_->exit_code().value_or(-1);
    const std::string file = stem_ + ".result.json";
    if (code == 0 && std::filesystem::exists(file)) return read_result(file);
    SimulationResult result;
    result.failure =
        fmt::format("the simulation ended with code {}: {}", code, last_words(stem_ + ".log"));
    return result;
  }

 private:
  std::string stem_;
  std::optional<system::ChildProcess> process_;
};

}  // namespace

std::vector<SimulationResult> run_cells(const Simulator& simulator,
                                        const std::filesystem::path& folder,
                                        const std::vector<SimulationJob>& cells, int at_once,
                                        const CellWatch& watch) {
  SimulationResult unfinished;
  unfinished.failure = "stopped before it was simulated";
  std::vector<SimulationResult> results(cells.size(), unfinished);
  std::vector<std::pair<std::size_t, std::unique_ptr<Run>>> running;
  std::size_t next = 0;
  while ((next < cells.size() || !running.empty()) && !watch.stopped()) {
    while (next < cells.size() && running.size() < static_cast<std::size_t>(at_once)) {
      running.emplace_back(next, std::make_unique<Run>(simulator, folder, cells[next], next));
      ++next;
    }
    std::erase_if(running, [&](auto& entry) {
      if (!entry.second->ended()) return false;
      results[entry.first] = entry.second->result();
      watch.done(entry.first);
      return true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return results;
}

}  // namespace cputrain::simulation

#include "scaling/simulation/simulator.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/text.h"
#include "system/child_process.h"
#include "system/files.h"

namespace cputrain::simulation {
namespace {

// The files between the program and cputrain-smpi.

constexpr int kMost = 1'000'000'000;

void describe_job(JsonMembers& f, SimulationJob& job) {
  f.need("ranks", job.ranks, 1, 1'000'000);
  f.need("threads", job.threads, 1, 65536);
  f.need("arguments", job.arguments, 1000);
  f.object("platform", job.platform, fields_of_platform);
  f.object("costs", job.costs, fields_of_costs);
  f.need("classes", job.classes, 1, 65536);
  f.need("images_per_epoch", job.images_per_epoch, 1, kMost);
  f.need("validation_images", job.validation_images, 0, kMost);
  f.need("steps", job.steps, 1, kMost);
  f.need("repeats", job.repeats, 1, kMost);
  f.need("seed", job.seed, 0, INT64_MAX);
  f.need("result", job.result);
}

void describe_steps(JsonMembers& f, SimulatedSteps& steps) {
  f.need("seconds", steps.seconds, 0, 1e15);
  f.need("memory_stall", steps.memory_stall, 0, 1e15);
  f.object("budget", steps.budget, fields_of_budget);
}

void describe_result(JsonMembers& f, SimulationResult& result) {
  f.need("failure", result.failure);
  if (!result.failure.empty()) return;
  f.need("exchange", result.exchange);
  f.need("images_at_once", result.images_at_once, 1, kMost);
  f.need("sharded", result.sharded, 10'000);
  f.need("steps", result.steps, 1, kMost);
  f.need("images", result.images, 1, kMost);
  f.objects("repeats", result.repeats, 1, 1'000'000, describe_steps);
}

template <class T, class Describe>
T read(const std::filesystem::path& file, const Describe& describe) {
  const nlohmann::json json = read_file(file);
  return value_of<T>({json, file.string(), kFileRemedy}, describe);
}

// Its processes.

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
  std::string text = system::text_in(log);
  if (text.size() > kLongest) text.erase(0, text.size() - kLongest);
  return printable(text);
}

// One cell's files have names that begin with a stem.

std::unique_ptr<system::ChildProcess> start(const Simulator& simulator, const std::string& stem,
                                            SimulationJob job) {
  job.result = stem + ".result.json";
  write_job(stem + ".job.json", job);
  system::write_own_file(stem + ".xml", simgrid_platform(job.platform, job.nodes()));
  system::write_own_file(stem + ".hosts", simgrid_hosts(job.nodes(), job.ranks));
  std::filesystem::remove(job.result);
  return std::make_unique<system::ChildProcess>(words_of(simulator, stem, job.ranks), environment(),
                                                stem + ".log");
}

SimulationResult result_of(const std::string& stem, int code) {
  const std::string file = stem + ".result.json";
  if (code == 0 && std::filesystem::exists(file)) return read_result(file);
  return {.failure = fmt::format("the simulation ended with code {}: {}", code,
                                 last_words(stem + ".log"))};
}

// SimGrid's description of the machines.

/// Each node has a link of each direction to a switch that is never the bottleneck.
std::string routes_between(int nodes) {
  std::string text;
  for (int from = 0; from < nodes; ++from) {
    for (int to = 0; to < nodes; ++to) {
      if (from == to) continue;
      text += fmt::format(
          "<route src=\"node-{0}\" dst=\"node-{1}\" symmetrical=\"NO\"><link_ctn "
          "id=\"up-{0}\"/><link_ctn id=\"down-{1}\"/></route>\n",
          from, to);
    }
  }
  return text;
}

}  // namespace

void write_job(const std::filesystem::path& file, const SimulationJob& job) {
  system::write_own_file(file, json_text(json_of(job, describe_job)) + "\n");
}

SimulationJob read_job(const std::filesystem::path& file) {
  return read<SimulationJob>(file, describe_job);
}

void write_result(const std::filesystem::path& file, const SimulationResult& result) {
  system::write_own_file(file, json_text(json_of(result, describe_result)) + "\n");
}

SimulationResult read_result(const std::filesystem::path& file) {
  return read<SimulationResult>(file, describe_result);
}

std::vector<SimulationResult> run_cells(const Simulator& simulator,
                                        const std::filesystem::path& folder,
                                        const std::vector<SimulationJob>& cells, int at_once,
                                        const std::function<void()>& done,
                                        const std::function<bool()>& stopped) {
  std::vector<SimulationResult> results(cells.size(),
                                        {.failure = "stopped before it was simulated"});
  std::map<std::size_t, std::unique_ptr<system::ChildProcess>> running;  // by cell
  const auto stem = [&](std::size_t cell) {
    return (folder / fmt::format("cell-{}", cell)).string();
  };
  std::size_t next = 0;
  while ((next < cells.size() || !running.empty()) && !stopped()) {
    while (next < cells.size() && running.size() < static_cast<std::size_t>(at_once)) {
      running.emplace(next, start(simulator, stem(next), cells[next]));
      ++next;
    }
    std::erase_if(running, [&](auto& entry) {
      const auto code = entry.second->exit_code();
      if (!code) return false;
      results[entry.first] = result_of(stem(entry.first), *code);
      done();
      return true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return results;
}

std::string simgrid_platform(const Platform& platform, int nodes) {
  std::string text =
      "<?xml version=\"1.0\"?>\n"
      "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\">\n<zone id=\"all\" routing=\"Full\">\n";
  for (int node = 0; node < nodes; ++node) {
    text += fmt::format("<host id=\"node-{}\" speed=\"1Gf\" core=\"{}\"/>\n", node,
                        platform.hardware_threads());
  }
  for (int node = 0; node < nodes; ++node) {
    // A FATPIPE limits each of the flows through it, whatever their number. Every node has its own,
    // or each flow of one node would be computed anew with those of all others.
    text += fmt::format(
        "<link id=\"core-{}\" bandwidth=\"{:.0f}Bps\" latency=\"0\" sharing_policy=\"FATPIPE\"/>\n",
        node, platform.core_gbs * 1e9);
    text += fmt::format("<link id=\"memory-{}\" bandwidth=\"{:.0f}Bps\" latency=\"{}us\"/>\n", node,
                        platform.node_gbs * 1e9, platform.node_latency_us);
    if (nodes == 1) continue;
    const double bytes = platform.network_gbps * platform.network_efficiency * 1e9 / 8;
    for (const char* direction : {"up", "down"}) {
      text += fmt::format("<link id=\"{}-{}\" bandwidth=\"{:.0f}Bps\" latency=\"{}us\"/>\n",
                          direction, node, bytes, platform.network_latency_us / 2);
    }
  }
  for (int node = 0; node < nodes; ++node) {
    text += fmt::format(
        "<route src=\"node-{0}\" dst=\"node-{0}\"><link_ctn id=\"core-{0}\"/><link_ctn "
        "id=\"memory-{0}\"/></route>\n",
        node);
  }
  return text + routes_between(nodes) + "</zone>\n</platform>\n";
}

std::string simgrid_hosts(int nodes, int ranks) {
  // As many on each node as can be the same for all; the first ones have one more.
  std::string text;
  for (int node = 0; node < nodes; ++node) {
    const int here = ranks / nodes + (node < ranks % nodes ? 1 : 0);
    for (int i = 0; i < here; ++i) text += fmt::format("node-{}\n", node);
  }
  return text;
}

}  // namespace cputrain::simulation

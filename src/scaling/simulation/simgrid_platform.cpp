#include <fmt/format.h>

#include "scaling/simulation/platform.h"

namespace cputrain::simulation {
namespace {

/// Each node has a link of each direction to a switch that is never the bottleneck.
std::string routes_between(int nodes) {
  std::string text;
  for (int from = 0; from < nodes; ++from) {
    for (int to = 0; to < nodes; ++to) {
      if (from == to) continue;
      text += fmt::format(
          "<route src=\"node-{0}\" dst=\"node-{1}\" symmetrical=\"NO\"><link_ctn id=\"up-{0}\"/>"
          "<link_ctn id=\"down-{1}\"/></route>\n",
          from, to);
    }
  }
  return text;
}

}  // namespace

int nodes_used(const Platform& platform, int ranks, int threads) {
  const int of_a_node = platform.ranks_of_node(threads);
  return (ranks + of_a_node - 1) / of_a_node;
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
        "<route src=\"node-{0}\" dst=\"node-{0}\"><link_ctn id=\"core-{0}\"/>"
        "<link_ctn id=\"memory-{0}\"/></route>\n",
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

#include "emulated/counts.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "emulated/streams.h"

namespace cputrain::emulated {
namespace {

using Json = nlohmann::ordered_json;

Counts::Bytes difference(const Counts::Bytes& now, const Counts::Bytes& before) {
  return {now.calls - before.calls, now.bytes - before.bytes};
}

Json json_of(const Counts::Bytes& of) { return {{"calls", of.calls}, {"bytes", of.bytes}}; }

Json json_of(const Traffic::Way& way) { return {{"bytes", way.bytes}, {"sectors", way.sectors}}; }

void add_traffic(Json& to, const Traffic& traffic) {
  to["read"] = json_of(traffic.read);
  to["written"] = json_of(traffic.written);
}

Json kernels_json(const Counts& counts) {
  std::map<std::string, Traffic> sums;
  for (const auto& [name, blocks, traffic] : counts.traffic) {
    sums[name].read += traffic.read;
    sums[name].written += traffic.written;
  }
  Json kernels = Json::object();
  for (const auto& [name, of] : counts.kernels) {
    kernels[name] = {{"launches", of.launches}, {"blocks", of.blocks}};
    if (sums.count(name)) add_traffic(kernels[name], sums[name]);
  }
  return kernels;
}

Json traffic_json(const Counts& counts) {
  Json launches = Json::array();
  for (const auto& [name, blocks, traffic] : counts.traffic) {
    add_traffic(launches.emplace_back(Json{{"kernel", name}, {"blocks", blocks}}), traffic);
  }
  return launches;
}

/// Never freed: read when the process ends.
std::string& file() {
  static std::string& name = *new std::string;
  return name;
}

/// At the end of the process, whose code only _Exit can change then.
void write_counts() {
  std::ofstream out(file());
  out << json_of(counts()) << '\n';
  if (out.flush()) return;
  const std::string reason = std::strerror(errno);
  std::fprintf(stderr,
               "cputrain: CPUTRAIN_EMULATED_COUNTS=%s cannot be written (%s), so the counts are "
               "lost; name a file where there is room\n",
               file().c_str(), reason.c_str());
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(ExitCode::output));
}

std::string file_of_variable() {
  const char* value = std::getenv("CPUTRAIN_EMULATED_COUNTS");
  std::string name = value ? value : "";
  if (const auto at = name.find("%p"); at != std::string::npos) {
    name.replace(at, 2, std::to_string(getpid()));
  }
  return name;
}

}  // namespace

std::uint64_t Counts::launches() const {
  std::uint64_t sum = 0;
  for (const auto& [name, of] : kernels) sum += of.launches;
  return sum;
}

Counts counts() {
  Devices& d = devices();
  const std::lock_guard lock(d.mutex);
  return d.counts;
}

Counts difference(const Counts& now, const Counts& before) {
  Counts d{.graphs = now.graphs - before.graphs,
           .to_device = difference(now.to_device, before.to_device),
           .to_host = difference(now.to_host, before.to_host),
           .on_device = difference(now.on_device, before.on_device),
           .cleared = difference(now.cleared, before.cleared),
           .timed_events = now.timed_events - before.timed_events,
           .untimed_events = now.untimed_events - before.untimed_events,
           .stream_waits = now.stream_waits - before.stream_waits,
           .event_waits = now.event_waits - before.event_waits,
           .copy_waits = now.copy_waits - before.copy_waits};
  for (const auto& [name, of] : now.kernels) {
    const auto found = before.kernels.find(name);
    const Counts::Launches old = found == before.kernels.end() ? Counts::Launches{} : found->second;
    if (of.launches == old.launches) continue;
    d.kernels[name] = {of.launches - old.launches, of.blocks - old.blocks};
  }
  d.traffic.assign(now.traffic.begin() + static_cast<std::ptrdiff_t>(before.traffic.size()),
                   now.traffic.end());
  return d;
}

std::string json_of(const Counts& counts) {
  Json json{
      {"launches", counts.launches()},
      {"kernels", kernels_json(counts)},
      {"graphs", counts.graphs},
      {"copies",
       {{"host_to_device", json_of(counts.to_device)},
        {"device_to_host", json_of(counts.to_host)},
        {"device_to_device", json_of(counts.on_device)}}},
      {"clears", json_of(counts.cleared)},
      {"events_recorded", {{"timed", counts.timed_events}, {"untimed", counts.untimed_events}}},
      {"host_waits",
       {{"stream", counts.stream_waits},
        {"event", counts.event_waits},
        {"copy", counts.copy_waits}}},
      {"ranges", counts.ranges}};
  if (!counts.traffic.empty()) json["traffic"] = traffic_json(counts);
  return json.dump(2);
}

void write_counts_at_exit() {
  file() = file_of_variable();
  if (file().empty()) return;
  if (!std::ofstream(file())) {
    fail(ExitCode::output, "CPUTRAIN_EMULATED_COUNTS=" + file() +
                               ": the file cannot be made; give one in a folder that is there");
  }
  std::atexit(write_counts);
}

}  // namespace cputrain::emulated

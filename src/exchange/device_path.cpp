#include "exchange/device_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/json_text.h"

namespace cputrain::compute {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceSumsFacts, library, lack, remedy, device, varies,
                                   share_devices, node, mpi_reads)
}

namespace cputrain::exchange {
namespace {

using compute::DeviceSumsFacts;

/// The first two ranks that share a device, or nothing.
std::optional<std::pair<std::size_t, std::size_t>> sharers(
    std::span<const DeviceSumsFacts> reports) {
  std::map<std::pair<int, std::string>, std::size_t> owners;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const auto [owner, is_new] =
        owners.try_emplace({reports[rank].node, reports[rank].device}, rank);
    if (!is_new) return std::pair{owner->second, rank};
  }
  return std::nullopt;
}

/// What the devices lack to sum by themselves; nothing where they can.
std::optional<DeviceSumsFacts> obstacle(std::span<const DeviceSumsFacts> reports) {
  const auto lacking = std::ranges::find(reports, "", &DeviceSumsFacts::library);
  if (lacking != reports.end()) {
    return DeviceSumsFacts{
        .lack = fmt::format("rank {}: {}", lacking - reports.begin(), lacking->lack),
        .remedy = lacking->remedy};
  }
  const std::string& library = reports.front().library;
  const auto other = std::ranges::find_if(
      reports, [&](const DeviceSumsFacts& report) { return report.library != library; });
  if (other != reports.end()) {
    return DeviceSumsFacts{.lack = fmt::format("rank 0 has {}, and rank {} {}", library,
                                               other - reports.begin(), other->library),
                           .remedy = "install one version of NCCL on all hosts"};
  }
  const auto pair = sharers(reports);
  const bool may_share = std::ranges::all_of(reports, &DeviceSumsFacts::share_devices);
  if (pair && !may_share) {
    return DeviceSumsFacts{.lack = fmt::format("ranks {} and {} share a GPU, which {} refuses",
                                               pair->first, pair->second, library),
                           .remedy =
                               "start one rank per GPU (with NCCL 2.30 and newer, "
                               "NCCL_MULTI_RANK_GPU_ENABLE=1 may allow more)"};
  }
  return std::nullopt;
}

[[noreturn]] void refuse_nccl(const std::string& why, const std::string& remedy) {
  fail(ExitCode::usage, "--allreduce nccl: {}; {}, or use --allreduce staged", why, remedy);
}

DevicePathChoice by_nccl(std::span<const DeviceSumsFacts> reports) {
  std::string reason = fmt::format(
      "{}, {}", reports.front().library,
      sharers(reports) ? "whose ranks may share a GPU" : "a GPU of its own for every rank");
  const auto varying =
      std::ranges::find_if_not(reports, &std::string::empty, &DeviceSumsFacts::varies);
  if (varying != reports.end()) {
    reason += fmt::format("; bits may differ from run to run: {}", varying->varies);
  }
  return {DevicePath::nccl, std::move(reason)};
}

}  // namespace

DevicePathChoice choose_device_path(std::span<const compute::DeviceSumsFacts> reports,
                                    std::optional<DevicePath> asked, const std::string& but,
                                    bool compresses) {
  if (reports.size() == 1 && !asked) return {DevicePath::alone, "one rank"};
  if (asked == DevicePath::staged) return {DevicePath::staged, "as asked for"};
  const auto found = obstacle(reports);
  if (asked == DevicePath::nccl) {
    if (!but.empty()) refuse_nccl(but, "leave that out");
    if (found) refuse_nccl(found->lack, found->remedy);
  }
  if (!but.empty()) return {DevicePath::staged, but};
  if (!found) return by_nccl(reports);
  if (!compresses && std::ranges::all_of(reports, &DeviceSumsFacts::mpi_reads)) {
    return {DevicePath::direct, "MPI reads the memory of GPUs; no NCCL: " + found->lack};
  }
  return {DevicePath::staged, "no NCCL: " + found->lack};
}

std::string to_text(const DevicePathChoice& choice) {
  constexpr std::array kWays{"stay where they are", "are summed by NCCL",
                             "are summed by MPI where they lie", "are summed by way of the host"};
  return fmt::format("Gradients of GPUs {} ({})", kWays[static_cast<std::size_t>(choice.path)],
                     choice.reason);
}

std::vector<compute::DeviceSumsFacts> gather_facts(comm::Communicator& communicator,
                                                   const compute::DeviceSumsFacts& facts,
                                                   int node) {
  compute::DeviceSumsFacts mine = facts;
  mine.node = node;
  mine.mpi_reads = communicator.reads_devices();
  std::vector<compute::DeviceSumsFacts> all;
  for (const std::string& text : communicator.gather(json_text(nlohmann::json(mine)))) {
    all.push_back(nlohmann::json::parse(text));
  }
  return all;
}

}  // namespace cputrain::exchange

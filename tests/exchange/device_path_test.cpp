// How gradients get from device to device, of tables that no machine here has.
#include "exchange/device_path.h"

#include <gtest/gtest.h>

#include "backends/threads/threads_communicator.h"
#include "core/error.h"

namespace cputrain::exchange {
namespace {

using compute::DeviceSumsFacts;

/// So many ranks on each of two nodes, with a GPU each.
std::vector<DeviceSumsFacts> two_nodes(int ranks) {
  std::vector<DeviceSumsFacts> reports;
  for (int rank = 0; rank < 2 * ranks; ++rank) {
    reports.push_back({.library = "NCCL 2.28.9",
                       .device = "GPU-" + std::to_string(rank % ranks),
                       .node = rank / ranks});
  }
  return reports;
}

std::string text_of(const std::vector<DeviceSumsFacts>& reports,
                    std::optional<DevicePath> asked = {}, const std::string& but = "") {
  return to_text(choose_device_path(reports, asked, but));
}

std::string refusal(const std::vector<DeviceSumsFacts>& reports, const std::string& but = "") {
  try {
    return text_of(reports, DevicePath::nccl, but);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
}

TEST(DevicePath, IsNoneForOneRank) {
  const std::vector<DeviceSumsFacts> one{{.lack = "NCCL is not there", .device = "GPU-0"}};
  EXPECT_EQ(text_of(one), "Gradients of GPUs stay where they are (one rank)");
  EXPECT_EQ(choose_device_path(one, DevicePath::staged).path, DevicePath::staged);
  EXPECT_EQ(choose_device_path(two_nodes(1), DevicePath::nccl).path, DevicePath::nccl);
  EXPECT_EQ(choose_device_path({{two_nodes(1)[0]}}, DevicePath::nccl).path, DevicePath::nccl);
}

/// The same name on another node is another device.
TEST(DevicePath, IsNcclWhereEveryRankHasADevice) {
  EXPECT_EQ(text_of(two_nodes(4)),
            "Gradients of GPUs are summed by NCCL (NCCL 2.28.9, a GPU of its own for every rank)");
}

/// Whoever turned it on; where NCCL does not sum, it changes nothing.
TEST(DevicePath, SaysThatBitsMayDiffer) {
  auto reports = two_nodes(1);
  reports[1].varies = "NCCL_NVLS_ENABLE=1";
  EXPECT_EQ(text_of(reports),
            "Gradients of GPUs are summed by NCCL (NCCL 2.28.9, a GPU of its own for every rank; "
            "bits may differ from run to run: NCCL_NVLS_ENABLE=1)");
  EXPECT_EQ(text_of(reports, DevicePath::staged).find("bits"), std::string::npos);
}

TEST(DevicePath, DependsOnWhatAllRanksReport) {
  threads::run_ranks(3, [](comm::Communicator& communicator) {
    const std::string own = std::to_string(communicator.rank());
    const auto reports = gather_facts(communicator,
                                      {.library = "library " + own,
                                       .lack = "lack " + own,
                                       .remedy = "remedy " + own,
                                       .device = "device " + own,
                                       .varies = "varies " + own,
                                       .share_devices = communicator.rank() == 1},
                                      10 + communicator.rank());
    ASSERT_EQ(reports.size(), 3u);
    for (std::size_t rank = 0; rank < reports.size(); ++rank) {
      const std::string of_rank = std::to_string(rank);
      EXPECT_EQ(reports[rank].node, 10 + static_cast<int>(rank));
      EXPECT_EQ(reports[rank].library, "library " + of_rank);
      EXPECT_EQ(reports[rank].lack, "lack " + of_rank);
      EXPECT_EQ(reports[rank].remedy, "remedy " + of_rank);
      EXPECT_EQ(reports[rank].device, "device " + of_rank);
      EXPECT_EQ(reports[rank].varies, "varies " + of_rank);
      EXPECT_EQ(reports[rank].share_devices, rank == 1);
      EXPECT_FALSE(reports[rank].mpi_reads);
    }
  });
}

TEST(DevicePath, IsStagedWhereRanksShareADevice) {
  auto reports = two_nodes(2);
  reports[3].device = reports[2].device;
  EXPECT_EQ(text_of(reports),
            "Gradients of GPUs are summed by way of the host (no NCCL: ranks 2 and 3 share a GPU, "
            "which NCCL 2.28.9 refuses)");
  const std::string text = refusal(reports);
  EXPECT_EQ(text.find("--allreduce nccl: ranks 2 and 3 share a GPU"), 0u) << text;
  EXPECT_NE(text.find("start one rank per GPU"), std::string::npos) << text;
  EXPECT_NE(text.find("--allreduce staged"), std::string::npos) << text;
  for (DeviceSumsFacts& report : reports) report.share_devices = true;
  EXPECT_EQ(choose_device_path(reports, {}).path, DevicePath::nccl);
  reports[0].share_devices = false;
  EXPECT_EQ(choose_device_path(reports, {}).path, DevicePath::staged);
}

TEST(DevicePath, NeedsOneVersionEverywhere) {
  auto reports = two_nodes(2);
  reports[2].library = "NCCL 2.18.5";
  EXPECT_NE(text_of(reports).find("rank 0 has NCCL 2.28.9, and rank 2 NCCL 2.18.5"),
            std::string::npos);
  reports[1].library.clear();
  reports[1].lack = "NCCL is not there (libnccl.so.2)";
  reports[1].remedy = "install libnccl2";
  EXPECT_EQ(refusal(reports),
            "--allreduce nccl: rank 1: NCCL is not there (libnccl.so.2); install libnccl2, or use "
            "--allreduce staged");
}

/// MPI is asked where NCCL cannot, and only where all ranks' can.
TEST(DevicePath, IsMpiWhereItReadsDevices) {
  auto reports = two_nodes(1);
  for (DeviceSumsFacts& report : reports) report = {.lack = "none", .mpi_reads = true};
  EXPECT_EQ(choose_device_path(reports, {}).path, DevicePath::direct);
  EXPECT_EQ(choose_device_path(reports, DevicePath::staged).path, DevicePath::staged);
  EXPECT_EQ(choose_device_path(reports, {}, "", /*compresses=*/true).path, DevicePath::staged);
  reports[1].mpi_reads = false;
  EXPECT_EQ(choose_device_path(reports, {}).path, DevicePath::staged);
}

TEST(DevicePath, GoesByTheHostForWhatIsComputedThere) {
  const std::string topk = "--compress topk:0.01 is computed on the host";
  EXPECT_EQ(text_of(two_nodes(1), {}, topk),
            "Gradients of GPUs are summed by way of the host (--compress topk:0.01 is computed on "
            "the host)");
  EXPECT_EQ(refusal(two_nodes(1), topk),
            "--allreduce nccl: --compress topk:0.01 is computed on the host; leave that out, or "
            "use --allreduce staged");
}

}  // namespace
}  // namespace cputrain::exchange

// What NCCL takes of a device is in the account of its memory: two ranks plan a training, each with
// an emulated device of its own.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "backends/cuda/backend.h"
#include "backends/threads/threads_communicator.h"
#include "cli/commands/commands.h"
#include "composition/services.h"
#include "core/error.h"
#include "emulated/settings.h"
#include "nccl/fake_nccl.h"
#include "training/training.h"

namespace cputrain::training {
namespace {

constexpr int kRanks = 2;

struct Planned {
  RankMemory memory{};
  bool images_on_device = false;
  std::string refusal{};
  std::string warning{};  ///< of what is an estimate
  std::string dry_run{};  ///< JSON
  /// Bytes of the device beside the images.
  std::size_t program() const { return memory.elsewhere - memory.images; }
};

class NcclMemory : public ::testing::Test {
 protected:
  NcclMemory() : services_(composition::make_services(launcher_, signals_)) {
    services_.make_backend = [](const BackendRequest& request) {  // asked what else would fit
      return cuda::make_device_backend({.device = request.device, .numbers = cuda::Numbers::bf16});
    };
    flags_.data = "synthetic:40";
    flags_.image_size = 48;
    flags_.batch = 8;
    flags_.threads = 1;
    flags_.decode = Decoding::first;
    flags_.allreduce = comm::parse_allreduce("nccl");
  }
  ~NcclMemory() override { emulated::restart(before_); }

  /// The same of both ranks, on devices with so many bytes.
  Planned plan(std::size_t bytes) {
    emulated::Settings all = before_;
    all.devices = kRanks;
    all.memory = bytes;
    emulated::restart(all);
    nccl::fake::restart();
    Planned planned;
    ::testing::internal::CaptureStdout();
    threads::run_ranks(kRanks, [&](comm::Communicator& communicator) {
      Session session{.services = services_, .communicator = nullptr, .quiet = true};
      session.communicator.reset(&communicator);
      try {
        const Planned mine = plan(session);
        if (session.leads()) planned = mine;
      } catch (...) {
        (void)session.communicator.release();
        throw;
      }
      (void)session.communicator.release();
    });
    planned.dry_run = ::testing::internal::GetCapturedStdout();
    return planned;
  }

  TrainingFlags flags_;

 private:
  Planned plan(Session& session) {
    const int rank = session.communicator->rank();
    session.nodes = comm::read_node_map(*session.communicator);
    for (int each = 0; each < kRanks; ++each) {
      session.plan.ranks.push_back({.rank = each, .host = "here"});
    }
    session.backend = cuda::make_device_backend({.device = rank, .numbers = cuda::Numbers::exact},
                                                {.library = &nccl::fake::library()});
    Training training = open_training(session, choose_training(flags_));
    try {
      training.compile();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return {.refusal = error.what()};
    }
    commands::print_dry_run(training, "-");
    const CompiledTraining& compiled = training.compiled();
    Planned planned{.memory = compiled.memory.ranks.at(static_cast<std::size_t>(rank)),
                    .images_on_device = compiled.images_on_device};
    for (const std::string& line : session.told) {
      if (line.find("by estimate") != std::string::npos) planned.warning = line;
    }
    return planned;
  }

  system::SignalWatch signals_;
  placement::Launcher launcher_;  // nobody's
  Services services_;
  emulated::Settings before_ = emulated::settings();
};

constexpr std::size_t kPlenty = std::size_t{8} << 30;

TEST_F(NcclMemory, IsInTheAccountWhereNcclSums) {
  const Planned with = plan(kPlenty);
  EXPECT_EQ(with.memory.library, nccl::estimated_memory(kRanks));
  const auto told = nlohmann::json::parse(with.dry_run).at("memory").at("ranks").at(1);
  EXPECT_EQ(told.at("nccl_estimate"), nccl::estimated_memory(kRanks));
  flags_.allreduce = comm::parse_allreduce("staged");
  const Planned without = plan(kPlenty);
  EXPECT_EQ(without.memory.library, 0u);
  EXPECT_EQ(with.program() - without.program(), nccl::estimated_memory(kRanks));
  EXPECT_EQ(with.memory.weights, without.memory.weights);
  // None of it is the host's.
  EXPECT_LT(with.memory.to_come(), nccl::estimated_memory(kRanks));
}

TEST_F(NcclMemory, IsLeftWhereImagesMayStayOnTheDevice) {
  const Planned plenty = plan(kPlenty);
  ASSERT_TRUE(plenty.images_on_device);
  ASSERT_GT(plenty.memory.images, 0u);
  const std::size_t least = plenty.program() + 2 * plenty.memory.images;  // half stays free
  EXPECT_TRUE(plan(least).images_on_device);
  EXPECT_FALSE(plan(least - 1).images_on_device);
}

// An estimate refuses nothing by itself: what is sure does, and the message then has both.
TEST_F(NcclMemory, IsToldWhereItIsTooMuch) {
  flags_.data_on_device = DataOnDevice::off;
  const RankMemory memory = plan(kPlenty).memory;
  const std::size_t sure = memory.elsewhere - memory.library;
  EXPECT_EQ(plan(memory.elsewhere).warning, "");
  for (const std::size_t bytes : {memory.elsewhere - 1, sure}) {
    const Planned planned = plan(bytes);
    EXPECT_EQ(planned.refusal, "");
    EXPECT_NE(planned.warning.find("NCCL takes about"), std::string::npos) << planned.warning;
    EXPECT_NE(planned.warning.find("--allreduce staged"), std::string::npos) << planned.warning;
  }
  const std::string text = plan(sure - 1).refusal;
  EXPECT_NE(text.find("NCCL takes about"), std::string::npos) << text;
  EXPECT_NE(text.find("--allreduce staged"), std::string::npos) << text;
  flags_.allreduce = comm::parse_allreduce("staged");
  EXPECT_EQ(plan(memory.elsewhere - 1).warning, "");
}

}  // namespace
}  // namespace cputrain::training

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "composition/services.h"
#include "tests/support/temporary_folder.h"
#include "training/training.h"

/// Whole trainings with threads as ranks, which leave checkpoints and go on from them.
namespace cputrain::training {

/// Backends to train on; own_kernels() is `cpu`, or floats() where this machine cannot.
std::unique_ptr<compute::Backend> floats();
std::unique_ptr<compute::Backend> doubles();
std::unique_ptr<compute::Backend> locked();
std::unique_ptr<compute::Backend> own_kernels();
using BackendMaker = std::function<std::unique_ptr<compute::Backend>()>;

/// A layer for flags() below.
inline constexpr const char* kBatchNorm = R"({"type": "batch_norm"},)";

/// What a rank's arrays hold between two steps, as they lie in memory: padding included.
struct RawState {
  std::vector<std::byte> weights{};
  std::vector<std::vector<std::byte>> state{};  ///< by array and owned range
  std::vector<double> unsent{};                 ///< in the ranges that the rank owns
  double own_images = 0;
  bool operator==(const RawState&) const = default;
};

/// A training that is made by several ranks.
struct RankJob {
  std::string name;
  TrainingFlags flags;
  BackendMaker backend;
  int ranks = 2;
  std::optional<int> ranks_a_node{};
  bool overlap = false;  ///< buckets travel while backward goes on
};

/// What it came to.
struct RankResult {
  std::vector<double> weights;  ///< canonical, statistics included
  RawState at_checkpoint;       ///< when it was taken, or restored
  loop::Progress progress;      ///< the same
  std::uint64_t steps = 0;
};

class RankJobs : public ::testing::Test {
 protected:
  RankJobs();

  /// Flags of a small network with a padded convolution; `layers` are put behind that.
  TrainingFlags flags(const std::string& optimizer, const std::string& layers = "");

  /// Trains from the beginning, and leaves a checkpoint behind this step, which another thread
  /// writes while the training goes on. By rank.
  std::vector<RankResult> train(const RankJob&, std::uint64_t checkpoint_step,
                                const std::filesystem::path& folder);
  /// Goes on from one; from the end so many times back to it. Results are of the last time.
  std::vector<RankResult> resume(const RankJob&, const std::filesystem::path& folder,
                                 int times = 1);
  /// Restores it, changes what it likes, and takes another one at once.
  std::vector<RankResult> copy(const RankJob&, const std::filesystem::path& from,
                               const std::filesystem::path& to,
                               const std::function<void(Training&)>& change = {});
  /// A new folder.
  std::filesystem::path folder(const std::string& name);
  const std::filesystem::path& path() const { return temporary_.path(); }

 private:
  std::vector<RankResult> on_ranks(const RankJob&,
                                   const std::function<void(Training&, RankResult&)>&);

  system::SignalWatch signals_;
  placement::Launcher launcher_;  // nobody's
  Services services_;
  testing::TemporaryFolder temporary_;
  int models_ = 0;
};

/// Tensors of a file by name, as text of their numbers and shapes.
std::vector<std::string> tensors_of(const std::filesystem::path&);
/// The numbers of one.
std::vector<double> numbers_in(const std::filesystem::path&, const std::string& tensor);

}  // namespace cputrain::training

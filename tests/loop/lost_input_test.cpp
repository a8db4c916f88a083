// What ranks agree on about images that are still being decoded.
#include "loop/replicas.h"

#include <gtest/gtest.h>

#include <mutex>

#include "backends/threads/threads_communicator.h"

namespace cputrain::loop {
namespace {

/// Images of a rank that come, or turn out to be damaged, as a test says.
class Coming final : public data::BatchSource {
 public:
  void seek(int, std::size_t) override {}
  const compute::MicroBatch& next() override { return batch_; }
  bool may_fail() const override { return !settled; }
  bool complete() const override { return has_all; }
  std::string failure() const override { return damage; }
  void settle() override { settled = true; }

  bool has_all = false, settled = false;
  std::string damage;

 private:
  compute::MicroBatch batch_;
};

TEST(LostInput, SettlesWhenTheLastRankHasAllImages) {
  threads::run_ranks(4, [](comm::Communicator& comm) {
    Coming images;
    for (int step = 0; step < 5; ++step) {
      images.has_all = step >= comm.rank();
      EXPECT_EQ(images.settled, step > 3) << "step " << step;
      EXPECT_EQ(lost_input(images, comm), "");
    }
  });
}

TEST(LostInput, DamageThatOneRankHasFoundSettlesNothing) {
  threads::run_ranks(3, [](comm::Communicator& comm) {
    Coming images;
    images.has_all = true;
    if (comm.rank() > 0) images.damage = "rank " + std::to_string(comm.rank());
    EXPECT_EQ(lost_input(images, comm), "rank 1") << "the first rank's words";
    EXPECT_FALSE(images.settled);
  });
}

}  // namespace
}  // namespace cputrain::loop

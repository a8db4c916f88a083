#include "backends/cuda/device_sums.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <span>
#include <string_view>
#include <thread>

#include "backends/cuda/kernels/updates.h"
#include "comm/communicator.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

/// How often sums that are under way are looked at.
constexpr auto kLook = std::chrono::milliseconds(20);

/// Looks after sums that the host does not wait for in a call of its own. It notes that this rank
/// waits for others (comm/pulse.h), and gives up what failed, since a wait for the device would
/// never end. Giving up takes until the program's graphs are gone, so a thread does it.
class Overseer {
 public:
  Overseer(int device, ComputeStream& compute, nccl::Group& group,
           std::shared_ptr<comm::Pulse> pulse)
      : device_(device),
        compute_(compute),
        group_(group),
        pulse_(std::move(pulse)),
        thread_([this](const std::stop_token& stop) { serve(stop); }) {}

  /// A pass with sums has begun.
  void expect() { wake(expected_); }
  /// There will be no more sums, and what is behind those that are under way is nonsense.
  void give_up(const std::string& why) {
    compute_.spoil(why);
    wake(lost_);
  }
  /// Those of a pass end here in the backend's stream: with each launch of its graph anew.
  void mark_end() { last_.record(compute_.get()); }

 private:
  void wake(bool& reason) {
    const std::lock_guard lock(mutex_);
    reason = true;
    changed_.notify_all();
  }

  /// Until it is asked to stop, or the sums are given up. An error here is an error of every wait
  /// for the device, which throws it.
  void serve(const std::stop_token& stop) {
    try {
      use_device(device_);
      std::unique_lock lock(mutex_);
      while (changed_.wait(lock, stop, [&] { return expected_ || lost_; }) && !lost_) {
        expected_ = false;
        lock.unlock();
        see_through(stop);
        lock.lock();
      }
      const bool lost = lost_;
      lock.unlock();
      if (lost) group_.abort();
    } catch (const Error& error) {
      compute_.spoil(error.what());
      group_.abort();
    }
  }

  /// Until the last sum is there, or none will be.
  void see_through(const std::stop_token& stop) {
    const comm::Pulse::Meeting meeting(*pulse_);
    while (!stop.stop_requested() && !last_.was_reached()) {
      const std::string failure = group_.failure();
      if (!failure.empty()) {
        return give_up("the sum of gradients over GPUs failed (NCCL: " + failure +
                       "), so this training cannot go on; resume it, and see NCCL_DEBUG=INFO");
      }
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, stop, kLook, [&] { return lost_; })) return;
    }
  }

  int device_;
  ComputeStream& compute_;
  nccl::Group& group_;
  std::shared_ptr<comm::Pulse> pulse_;
  StreamEvent last_{compute_};
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool expected_ = false, lost_ = false;
  std::jthread thread_;  // last: it uses the others
};

class NcclSum final : public compute::DeviceSum {
 public:
  NcclSum(int device, ComputeStream& compute, std::unique_ptr<nccl::Group> group,
          const comm::Communicator& ranks, std::size_t narrowed)
      : compute_(compute),
        ranks_(ranks.size()),
        pulse_(ranks.share_pulse()),
        narrowed_(narrowed * sizeof(Bf16), "gradients on their way"),
        group_(std::move(group)),
        overseer_(device, compute, *group_, pulse_) {}

  /// A captured stream takes others into its capture that wait for a place in it.
  void enqueue(const Array& numbers) override {
    begun_.record(compute_.get());
    begun_.hold_up(stream_.get());
    const std::span<float> values = numbers.as<float>();
    if (narrowed_.size() == 0) return sum(values.data(), values.size(), nccl::DataType::float32);
    auto* const narrow = narrowed_.as<Bf16>();
    const auto count = static_cast<std::int64_t>(values.size());
    narrow_gradients(stream_.get(), values.data(), count, narrow);
    sum(narrow, values.size(), nccl::DataType::bfloat16);
    widen_gradients(stream_.get(), narrow, count, values.data());
  }

  void join() override {
    done_.record(stream_.get());
    done_.hold_up(compute_.get());
    overseer_.mark_end();
  }

  void started() override { overseer_.expect(); }

  std::size_t memory() const override { return narrowed_.size(); }
  std::size_t library_memory() const override { return nccl::estimated_memory(ranks_); }

 private:
  /// NCCL's first sums connect the ranks, which wait for each other there. The error names what
  /// failed first.
  void sum(void* numbers, std::size_t count, nccl::DataType type) {
    const comm::Pulse::Meeting meeting(*pulse_);
    try {
      group_->all_reduce(numbers, count, type, reinterpret_cast<nccl::Stream*>(stream_.get()));
    } catch (const Error& error) {
      overseer_.give_up(error.what());
      compute_.check();
    }
  }

  ComputeStream& compute_;
  int ranks_;
  OwnedStream stream_;
  Event begun_, done_;
  std::shared_ptr<comm::Pulse> pulse_;
  DeviceBlock narrowed_;  ///< empty where numbers travel as they are
  // To free memory of a device takes until its sums are done: the group, which gives up those that
  // never will be, goes first.
  std::unique_ptr<nccl::Group> group_;
  Overseer overseer_;  // last: it uses the group
};

compute::DeviceSumsFacts facts_of(const nccl::Library& library, const std::string& device) {
  if (!library.calls) {
    return {.lack = library.why_none, .remedy = library.remedy, .device = device};
  }
  const char* const shares = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  constexpr int kShares = 23000;
  return {.library = "NCCL " + nccl::version_text(library.version),
          .device = device,
          .varies = nccl::varying_bits(),
          .share_devices = library.version >= kShares && shares && std::string_view(shares) == "1"};
}

}  // namespace

NcclSums::NcclSums(int device, const std::string& identity, ComputeStream& compute,
                   const nccl::Library& library, const nccl::TimeLimits& limits)
    : device_(device),
      compute_(compute),
      library_(library),
      limits_(limits),
      facts_(facts_of(library, identity)) {}

std::unique_ptr<compute::DeviceSum> NcclSums::make(comm::Communicator& communicator, bool narrow,
                                                   std::size_t most) {
  use_device(device_);
  nccl::UniqueId id{};
  if (communicator.rank() == 0) id = nccl::Group::make_id(library_);
  communicator.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
  const comm::Pulse::Meeting meeting(communicator.pulse());
  auto group = std::make_unique<nccl::Group>(library_, id, communicator.rank(), communicator.size(),
                                             limits_);
  return std::make_unique<NcclSum>(device_, compute_, std::move(group), communicator,
                                   narrow ? most : 0);
}

}  // namespace cputrain::cuda

#include "datasets/loader/batch_loader.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/casts.h"
#include "datasets/loader/assembler.h"
#include "datasets/loader/views.h"
#include "datasets/pixels/change.h"

namespace cputrain::datasets {
namespace {

/// What both loaders do about images that lie in a file or are still being decoded.
class Loader : public data::BatchSource {
 public:
  Loader(const data::ImageSet& set, const data::BatchPlan& plan, const data::BatchRequest& request)
      : assembler_(set, plan, request),
        plan_(plan),
        repeats_(!request.shuffle && request.augment == data::Augment{}),
        reads_(!request.on_device && (set.stored || (set.filling && !set.filling->keeps_all()))),
        filling_(set.judged ? nullptr : set.filling),
        on_whole_(request.on_whole) {}

  bool may_fail() const override { return reads_ || filling_; }
  bool filling() const override { return filling_ != nullptr; }
  void read_rest() override {
    if (filling_) filling_->read_rest();
  }
  bool complete() const override { return !filling_ || filling_->complete(); }
  std::string failure() const override {
    return failure_.empty() && filling_ ? filling_->damage() : failure_;
  }
  void settle() override {
    if (std::exchange(filling_, nullptr) && on_whole_) on_whole_();
  }

 protected:
  void check_seek([[maybe_unused]] int epoch, [[maybe_unused]] std::size_t step) const {
    assert(step == 0 || step < plan_.in_epoch(epoch).steps());
  }
  const compute::MicroBatch& hand_out(const Slot& slot) {
    if (!slot.failure.empty()) failure_ = slot.failure;
    return slot.batch;
  }
  /// Whether both are the same images: in validation, also those of two epochs.
  bool are_alike(const Position& a, const Position& b) const {
    if (a.step != b.step || a.piece != b.piece) return false;
    if (a.epoch == b.epoch) return true;
    return repeats_ &&
           plan_.in_epoch(a.epoch).global_batch() == plan_.in_epoch(b.epoch).global_batch();
  }

  Assembler assembler_;  // only for the thread that fills slots

 private:
  const data::BatchPlan plan_;
  const bool repeats_, reads_;
  data::FillingCache* filling_;  // null once it is whole
  const std::function<void()> on_whole_;
  std::string failure_;  // the caller's alone
};

/// Each micro-batch is made when it is asked for.
class DirectLoader final : public Loader {
 public:
  using Loader::Loader;

  void seek(int epoch, std::size_t step) override {
    check_seek(epoch, step);
    at_ = {epoch, step, 0};
  }

  const compute::MicroBatch& next() override {
    assembler_.fill(at_, 0, slot_);
    at_ = assembler_.after(at_);
    return hand_out(slot_);
  }

 private:
  Slot slot_;
  Position at_;
};

/// Two slots: the caller has one, the producer fills the other. A slot that is ready belongs to the
/// caller, one that is not to the producer; the flags change hands under the mutex. A seek to what
/// comes next anyway is no journey: the first micro-batch of an epoch is made during the last step
/// before it.
class PrefetchingLoader final : public Loader {
 public:
  PrefetchingLoader(const data::ImageSet& set, const data::BatchPlan& plan,
                    const data::BatchRequest& request)
      : Loader(set, plan, request), producer_([this] { produce(); }) {}

  ~PrefetchingLoader() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    producer_.join();
  }

  void seek(int epoch, std::size_t step) override {
    check_seek(epoch, step);
    {
      const std::lock_guard lock(mutex_);
      const Position& next = in_use_ ? behind_[*in_use_] : target_;
      if (!failure_ && are_alike(next, {epoch, step, 0})) return;
      target_ = {epoch, step, 0};
      ++journey_;
      ready_ = {};
      in_use_.reset();
      failure_ = nullptr;
    }
    changed_.notify_all();
  }

  const compute::MicroBatch& next() override {
    std::unique_lock lock(mutex_);
    if (in_use_) ready_[*in_use_] = false;
    in_use_ = in_use_ ? 1 - *in_use_ : 0;  // a journey begins with slot 0
    const std::size_t given = *in_use_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ready_[given] || failure_; });
    if (!ready_[given]) std::rethrow_exception(failure_);
    return hand_out(slots_[given]);
  }

 private:
  void produce() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      // seek() during a fill makes that fill worthless: it is begun anew for the new target.
      const unsigned long journey = journey_;
      Position at = target_;
      for (std::size_t filling = 0; !stopping_ && journey == journey_; filling = 1 - filling) {
        changed_.wait(lock, [&] {
          return stopping_ || journey != journey_ || (!ready_[filling] && !failure_);
        });
        if (stopping_ || journey != journey_) break;
        lock.unlock();
        std::exception_ptr failure = try_fill(at, filling);
        at = assembler_.after(at);
        lock.lock();
        if (journey != journey_) break;
        behind_[filling] = at;
        failure_ = failure;
        ready_[filling] = !failure;
        changed_.notify_all();
      }
    }
  }

  std::exception_ptr try_fill(const Position& at, std::size_t i) {
    try {
      assembler_.fill(at, i, slots_[i]);
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  std::array<Slot, 2> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<bool, 2> ready_{};       // guarded by mutex_, as are all below
  std::array<Position, 2> behind_{};  // what comes behind that of the slot
  Position target_;
  unsigned long journey_ = 0;          // counts seeks
  std::optional<std::size_t> in_use_;  // the slot that the caller has
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread producer_;  // last: starts when everything else is there
};

}  // namespace

std::unique_ptr<data::BatchSource> make_batch_loader(const data::ImageSet& set,
                                                     const data::BatchPlan& plan,
                                                     const data::BatchRequest& request) {
  assert(set.larger == data::kept_sides(request.augment));
  check_fits(request.augment, set.image);
  if (slots_of(request) == 1) return std::make_unique<DirectLoader>(set, plan, request);
  return std::make_unique<PrefetchingLoader>(set, plan, request);
}

compute::FeedBytes memory_of_batches(const data::DataSource& source, Shape image,
                                     const data::BatchPlan& plan,
                                     const data::BatchRequest& request) {
  const auto turned = [&](std::uint32_t sample) {
    return source.dataset->view(sample).turn != data::Turn::none;
  };
  const bool changes =
      request.augment != data::Augment{} || std::ranges::any_of(source.train, turned);
  // Images that are read for a micro-batch come as they would be kept.
  const auto sides = to_size(data::kept_sides(request.augment));
  const std::size_t read =
      (source.dataset->ready_form() && !request.on_device ? 1 : 0) + (request.filling ? 1 : 0);
  const std::size_t mixed = request.augment.mixes() ? 1 : 0;
  const std::size_t copies =
      (1 + mixed) * ((changes && !device_moves(request) ? 1 : 0) + read * sides * sides) + mixed;
  const std::size_t kept = request.on_device ? images_of(*source.dataset, source.train).size() : 0;
  const compute::FeedSize size = feed_size(image, plan, request, kept);
  compute::FeedBytes bytes;
  if (request.feeder) bytes = request.feeder->feed_bytes(size);
  bytes.host += copies * size.slots * size.images * image.size();
  return bytes;
}

}  // namespace cputrain::datasets

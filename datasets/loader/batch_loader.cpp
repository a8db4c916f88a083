#include "datasets/loader/batch_loader.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>

#include "core/error.h"
#include "datasets/loader/work_arena.h"
#include "datasets/pixels/augment.h"

namespace cputrain::datasets {
namespace {

/// A micro-batch of the training: piece k of a step of an epoch.
struct Position {
  int epoch = 0;
  std::size_t step = 0;
  int piece = 0;
};

constexpr std::size_t kSlots = 2;  // the one in use, and the one that is made meanwhile

/// A micro-batch with the memory that it needs.
struct Slot {
  std::vector<const std::uint8_t*> images;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> samples;
  std::vector<data::Turn> turns;
  std::vector<std::uint8_t> stored;   // pixels of images that are read for each micro-batch
  std::vector<std::uint8_t> changed;  // pixels of turned and augmented images
  std::string failure;                // why one of them could not be read
  compute::MicroBatch batch;
  bool ready = false;  // guarded by the loader's mutex, as is who may touch the rest
};

/// Fills slots; used by one thread only.
class Assembler {
 public:
  Assembler(const data::ImageSet& set, const data::BatchPlan& plan,
            const data::BatchRequest& request)
      : set_(set),
        plan_(plan),
        epoch_plan_(plan.in_epoch(0)),
        request_(request),
        arena_(request.threads) {
    assert(plan.samples() == set.size());
  }

  void fill(const Position& at, Slot& slot) {
    enter(at.epoch);
    const data::StridedRange piece =
        epoch_plan_.steps() > 0 ? epoch_plan_.piece(at.step, at.piece) : data::StridedRange{};
    const std::size_t count = piece.size();
    slot.images.resize(count);
    slot.labels.resize(count);
    slot.samples.resize(count);
    slot.turns.assign(count, data::Turn::none);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t index = order_[piece.at(i)];
      slot.labels[i] = set_.labels[index];
      slot.samples[i] = set_.samples[index];
      if (!set_.stored) slot.images[i] = set_.pixels[index];
      if (!set_.turns.empty()) slot.turns[i] = set_.turns[index];
    }
    if (set_.stored) read_all(piece, slot);
    if (request_.augment != data::Augment{} || !set_.turns.empty()) change_all(at.epoch, slot);
    slot.batch = {slot.images, slot.labels, slot.samples};
  }

  /// Of the position that was filled last.
  Position after(Position at) const {
    if (epoch_plan_.steps() == 0) return at;
    if (++at.piece < epoch_plan_.micro_batches(at.step)) return at;
    at.piece = 0;
    if (++at.step < epoch_plan_.steps()) return at;
    return {at.epoch + 1, 0, 0};
  }

 private:
  void enter(int epoch) {
    if (epoch_ == epoch) return;
    if (request_.shuffle) {
      order_ = data::epoch_order(set_.size(), request_.seed, epoch);
    } else if (order_.empty()) {
      order_.resize(set_.size());
      std::iota(order_.begin(), order_.end(), 0u);
    }
    epoch_plan_ = plan_.in_epoch(epoch);
    epoch_ = epoch;
  }

  /// An image that cannot be read is what the memory held before: the micro-batch keeps its size.
  void read_all(const data::StridedRange& piece, Slot& slot) {
    const std::size_t bytes = set_.image.size();
    slot.stored.resize(piece.size() * bytes);
    std::mutex mutex;
    arena_.for_each(piece.size(), [&](std::size_t i) {
      const auto space = std::span(slot.stored).subspan(i * bytes, bytes);
      slot.images[i] = space.data();
      try {
        set_.pixels_of(order_[piece.at(i)], space);
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        slot.failure = error.what();
      }
    });
  }

  void change_all(int epoch, Slot& slot) {
    const std::size_t bytes = set_.image.size();
    slot.changed.resize(slot.images.size() * bytes);
    arena_.for_each(slot.images.size(), [&](std::size_t i) {
      const Change change =
          choose_change(request_.augment, set_.image, request_.seed, epoch, slot.samples[i]);
      if (slot.turns[i] == data::Turn::none && change == Change{}) return;
      const auto dst = std::span(slot.changed).subspan(i * bytes, bytes);
      change_image(slot.images[i], set_.image, slot.turns[i], change, dst);
      slot.images[i] = dst.data();
    });
  }

  const data::ImageSet& set_;
  const data::BatchPlan plan_;
  data::BatchPlan epoch_plan_;  // of the epoch that was entered
  const data::BatchRequest request_;
  WorkArena arena_;
  std::vector<std::uint32_t> order_;
  std::optional<int> epoch_;
};

/// Two slots: the caller has one, the producer fills the other. A slot that is ready belongs to the
/// caller, one that is not to the producer; the flags change hands under the mutex.
class BatchLoader final : public data::BatchSource {
 public:
  BatchLoader(const data::ImageSet& set, const data::BatchPlan& plan,
              const data::BatchRequest& request)
      : plan_(plan),
        reads_(set.stored != nullptr),
        assembler_(set, plan, request),
        producer_([this] { produce(); }) {}

  ~BatchLoader() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    producer_.join();
  }

  void seek(int epoch, std::size_t step) override {
    assert(step == 0 || step < plan_.in_epoch(epoch).steps());
    {
      const std::lock_guard lock(mutex_);
      target_ = {epoch, step, 0};
      ++journey_;
      for (Slot& slot : slots_) slot.ready = false;
      in_use_.reset();
      failure_ = nullptr;
    }
    changed_.notify_all();
  }

  const compute::MicroBatch& next() override {
    std::unique_lock lock(mutex_);
    if (in_use_) slots_[*in_use_].ready = false;
    in_use_ = in_use_ ? 1 - *in_use_ : 0;  // a journey begins with slot 0
    Slot& slot = slots_[*in_use_];
    changed_.notify_all();
    changed_.wait(lock, [&] { return slot.ready || failure_; });
    if (!slot.ready) std::rethrow_exception(failure_);
    if (!slot.failure.empty()) changed_data_ = slot.failure;
    return slot.batch;
  }

  bool may_fail() const override { return reads_; }
  std::string failure() const override { return changed_data_; }

 private:
  void produce() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      // seek() during a fill makes that fill worthless: it is begun anew for the new target.
      const unsigned long journey = journey_;
      Position at = target_;
      for (std::size_t filling = 0; !stopping_ && journey == journey_; filling = 1 - filling) {
        changed_.wait(lock, [&] {
          return stopping_ || journey != journey_ || (!slots_[filling].ready && !failure_);
        });
        if (stopping_ || journey != journey_) break;
        lock.unlock();
        std::exception_ptr failure = try_fill(at, slots_[filling]);
        at = assembler_.after(at);
        lock.lock();
        if (journey != journey_) break;
        failure_ = failure;
        slots_[filling].ready = !failure;
        changed_.notify_all();
      }
    }
  }

  std::exception_ptr try_fill(const Position& at, Slot& slot) {
    try {
      assembler_.fill(at, slot);
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  const data::BatchPlan plan_;
  const bool reads_;          // images that lie in a file
  std::string changed_data_;  // the caller's alone
  Assembler assembler_;       // the producer's alone
  std::array<Slot, kSlots> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Position target_;                    // guarded by mutex_, as are all below
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
  check_fits(request.augment, set.image);
  return std::make_unique<BatchLoader>(set, plan, request);
}

std::size_t bytes_in_flight(const data::DataSource& source, Shape image,
                            const data::BatchPlan& plan, const data::BatchRequest& request) {
  const auto turned = [&](std::uint32_t sample) {
    return source.dataset->view(sample).turn != data::Turn::none;
  };
  const bool changes =
      request.augment != data::Augment{} || std::ranges::any_of(source.train, turned);
  const std::size_t copies = (changes ? 1 : 0) + (source.dataset->ready_form() ? 1 : 0);
  if (copies == 0) return 0;
  const std::vector<int> sizes = plan.sizes();
  return kSlots * static_cast<std::size_t>(std::ranges::max(sizes)) * image.size() * copies;
}

}  // namespace cputrain::datasets

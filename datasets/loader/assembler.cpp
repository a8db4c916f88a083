#include "datasets/loader/assembler.h"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "core/error.h"
#include "system/scratch/scratch_file.h"

namespace cputrain::datasets {

bool device_moves(const data::BatchRequest& request) {
  return request.feeder && data::only_moves(request.augment);
}

std::size_t slots_of(const data::BatchRequest& request) {
  assert(request.prefetch == 0 || request.prefetch == 1);
  return 1 + static_cast<std::size_t>(request.prefetch);
}

compute::FeedSize feed_size(Shape image, const data::BatchPlan& plan,
                            const data::BatchRequest& request, std::size_t kept) {
  assert(!request.on_device || device_moves(request));
  const std::vector<int> sizes = plan.sizes();
  return {.image = image,
          .images = static_cast<std::size_t>(std::ranges::max(sizes)),
          .slots = slots_of(request),
          .kept = kept};
}

Assembler::Assembler(const data::ImageSet& set, const data::BatchPlan& plan,
                     const data::BatchRequest& request)
    : set_(set),
      plan_(plan),
      epoch_plan_(plan.in_epoch(0)),
      request_(request),
      arena_(request.threads) {
  assert(plan.samples() == set.size());
  if (!request.feeder) return;
  if (request.on_device) {
    keep_on_device();
  } else {
    feed_ = request.feeder->make_feed(feed_size(set.image, plan, request, 0));
  }
}

/// Each image once, however many samples show it.
void Assembler::keep_on_device() {
  std::unordered_map<std::uintptr_t, std::uint32_t> numbers;
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < set_.size(); ++i) {
    const std::uintptr_t image = set_.stored ? set_.stored->view(set_.samples[i]).image
                                             : reinterpret_cast<std::uintptr_t>(set_.pixels[i]);
    const auto [found, is_new] = numbers.emplace(image, static_cast<std::uint32_t>(firsts.size()));
    if (is_new) firsts.push_back(i);
    kept_.push_back(found->second);
  }
  feed_ = request_.feeder->make_feed(feed_size(set_.image, plan_, request_, firsts.size()));
  std::vector<std::uint8_t> space(set_.stored || set_.filling ? set_.kept().size() : 0);
  feed_->keep([&](std::size_t i) { return set_.pixels_of(firsts[i], space); });
}

void Assembler::fill(const Position& at, std::size_t i, Slot& slot) {
  enter(at.epoch);
  const data::StridedRange piece =
      epoch_plan_.steps() > 0 ? epoch_plan_.piece(at.step, at.piece) : data::StridedRange{};
  const std::size_t count = piece.size();
  slot.images.resize(count);
  slot.labels.resize(count);
  slot.samples.resize(count);
  slot.turns.assign(count, data::Turn::none);
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t index = order_[piece.at(k)];
    slot.labels[k] = set_.labels[index];
    slot.samples[k] = set_.samples[index];
    slot.images[k] = set_.ready(index);
    if (!set_.turns.empty()) slot.turns[k] = set_.turns[index];
  }
  if (kept_.empty()) read_missing(piece, slot);
  if (kept_.empty() && set_.on_disk) wait_for_disk(slot);
  const bool changes = request_.augment != data::Augment{} || !set_.turns.empty();
  if (changes && !device_moves(request_)) change_all(at.epoch, slot);
  slot.batch = {slot.images, slot.labels, slot.samples};
  if (feed_ && count > 0) stage(at, piece, i, slot);
}

/// Where the device moves pixels, by the numbers that change_all() draws.
void Assembler::stage(const Position& at, const data::StridedRange& piece, std::size_t i,
                      Slot& slot) {
  slot.moves.clear();
  for (std::uint32_t k = 0; k < slot.images.size(); ++k) {
    const std::uint32_t source = kept_.empty() ? k : kept_[order_[piece.at(k)]];
    slot.moves.push_back(device_moves(request_) ? move_of(source, set_.image, slot.turns[k],
                                                          change_of(at.epoch, slot.samples[k]))
                                                : compute::whole_image(source, set_.image));
  }
  slot.batch.staged = feed_->stage(i, slot.batch, slot.moves);
}

Position Assembler::after(Position at) const {
  if (epoch_plan_.steps() == 0) return at;
  if (++at.piece < epoch_plan_.micro_batches(at.step)) return at;
  at.piece = 0;
  if (++at.step < epoch_plan_.steps()) return at;
  return {at.epoch + 1, 0, 0};
}

void Assembler::enter(int epoch) {
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

/// Images that lie in a file, or are not decoded yet. One that cannot be read is what the memory
/// held before: the micro-batch keeps its size.
void Assembler::read_missing(const data::StridedRange& piece, Slot& slot) {
  std::vector<std::size_t> missing;
  for (std::size_t k = 0; k < slot.images.size(); ++k) {
    if (!slot.images[k]) missing.push_back(k);
  }
  if (missing.empty()) return;
  const std::size_t bytes = set_.kept().size();
  slot.stored.resize(slot.images.size() * bytes);
  std::mutex mutex;
  arena_.for_each(missing.size(), [&](std::size_t i) {
    const std::size_t k = missing[i];
    const auto space = std::span(slot.stored).subspan(k * bytes, bytes);
    slot.images[k] = space.data();
    try {
      slot.images[k] = set_.pixels_of(order_[piece.at(k)], space);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      slot.failure = error.what();
    }
  });
}

/// Here and not in a step, which would wait page by page and count it as its own time.
void Assembler::wait_for_disk(const Slot& slot) {
  const auto pixels = [&](std::size_t i) { return std::span(slot.images[i], set_.image.size()); };
  for (std::size_t i = 0; i < slot.images.size(); ++i) system::read_ahead(pixels(i));
  arena_.for_each(slot.images.size(), [&](std::size_t i) { system::wait_for_pages(pixels(i)); });
}

Change Assembler::change_of(int epoch, std::uint32_t sample) const {
  return choose_change(request_.augment, images(), request_.seed, epoch, sample);
}

void Assembler::change_all(int epoch, Slot& slot) {
  const std::size_t bytes = set_.image.size();
  slot.changed.resize(slot.images.size() * bytes);
  arena_.for_each(slot.images.size(), [&](std::size_t i) {
    const Change change = change_of(epoch, slot.samples[i]);
    if (slot.turns[i] == data::Turn::none && change == Change{}) return;
    const auto dst = std::span(slot.changed).subspan(i * bytes, bytes);
    change_image(slot.images[i], images(), slot.turns[i], change, dst);
    slot.images[i] = dst.data();
  });
}

}  // namespace cputrain::datasets

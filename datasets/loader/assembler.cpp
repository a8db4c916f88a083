#include "datasets/loader/assembler.h"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/casts.h"
#include "core/error.h"
#include "system/scratch/scratch_file.h"

namespace cputrain::datasets {

bool device_moves(const data::BatchRequest& request) {
  return request.feeder && data::only_moves(request.augment);
}

std::size_t slots_of(const data::BatchRequest& request) {
  assert(request.prefetch == 0 || request.prefetch == 1);
  return 1 + to_size(request.prefetch);
}

compute::FeedSize feed_size(Shape image, const data::BatchPlan& plan,
                            const data::BatchRequest& request, std::size_t kept) {
  assert(!request.on_device || device_moves(request));
  const std::vector<int> sizes = plan.sizes();
  return {.image = image,
          .images = to_size(std::ranges::max(sizes)),
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
  choose_images(piece, slot);
  if (kept_.empty()) read_missing(slot);
  if (kept_.empty() && set_.on_disk) wait_for_disk(slot);
  const bool changes =
      request_.augment != data::Augment{} || request_.mirror || !set_.turns.empty();
  if (changes && !device_moves(request_)) change_all(at.epoch, slot);
  mix_labels(at, count, slot);
  if (request_.augment.mixes()) mix_all(at.epoch, count, slot);
  slot.batch = {std::span(slot.images).first(count), std::span(slot.labels).first(count),
                std::span(slot.samples).first(count), slot.mixed_labels};
  if (feed_ && count > 0) stage(at, i, slot);
}

/// Those of the piece and, where images are mixed, their partners.
void Assembler::choose_images(const data::StridedRange& piece, Slot& slot) {
  slot.indices.clear();
  for (std::size_t k = 0; k < piece.size(); ++k) slot.indices.push_back(order_[piece.at(k)]);
  for (std::size_t k = 0; request_.augment.mixes() && k < piece.size(); ++k) {
    slot.indices.push_back(partner_of(piece.at(k)));
  }
  const std::size_t count = slot.indices.size();
  slot.images.resize(count);
  slot.labels.resize(count);
  slot.samples.resize(count);
  slot.turns.assign(count, data::Turn::none);
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t index = slot.indices[k];
    slot.labels[k] = set_.labels[index];
    slot.samples[k] = set_.samples[index];
    slot.images[k] = set_.ready(index);
    if (!set_.turns.empty()) slot.turns[k] = set_.turns[index];
  }
}

/// Where the device moves pixels, by the numbers that change_all() draws.
void Assembler::stage(const Position& at, std::size_t i, Slot& slot) {
  slot.moves.clear();
  for (std::uint32_t k = 0; k < slot.batch.images.size(); ++k) {
    const std::uint32_t source = kept_.empty() ? k : kept_[slot.indices[k]];
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
void Assembler::read_missing(Slot& slot) {
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
      slot.images[k] = set_.pixels_of(slot.indices[k], space);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      slot.failure = error.what();
    }
  });
}

/// Here and not in a step, which would wait page by page and count it as its own time.
void Assembler::wait_for_disk(const Slot& slot) {
  const auto pixels = [&](std::size_t i) { return std::span(slot.images[i], set_.kept().size()); };
  for (std::size_t i = 0; i < slot.images.size(); ++i) system::read_ahead(pixels(i));
  arena_.for_each(slot.images.size(), [&](std::size_t i) { system::wait_for_pages(pixels(i)); });
}

Change Assembler::change_of(int epoch, std::uint32_t sample) const {
  Change change = choose_change(request_.augment, images(), request_.seed, epoch, sample);
  if (request_.mirror) change.flip = !change.flip;
  return change;
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

/// By its place in the epoch's order: its index in the set.
std::size_t Assembler::partner_of(std::size_t place) const {
  return order_[partner_place(place, order_.size(), request_.seed, *epoch_)];
}

Mix Assembler::mix_of(int epoch, std::uint32_t sample) const {
  return choose_mix(request_.augment, set_.image, request_.seed, epoch, sample);
}

/// The first `count` images, with those behind them.
void Assembler::mix_all(int epoch, std::size_t count, Slot& slot) {
  const std::size_t bytes = set_.image.size();
  slot.mixed.resize(count * bytes);
  arena_.for_each(count, [&](std::size_t i) {
    const Mix mix = mix_of(epoch, slot.samples[i]);
    if (!mix.mixes()) return;
    const auto dst = std::span(slot.mixed).subspan(i * bytes, bytes);
    mix_images(slot.images[i], slot.images[count + i], set_.image, mix, dst);
    slot.images[i] = dst.data();
  });
}

/// The label becomes that of the image with the larger share: predictions are judged by it.
void Assembler::mix_labels(const Position& at, std::size_t count, Slot& slot) {
  slot.mixed_labels.clear();
  const bool mixes = request_.augment.mixes();
  if (!mixes && request_.class_weights.empty()) return;
  const double mean = mean_weight(at);
  for (std::size_t i = 0; i < count; ++i) {
    const double share = mixes ? mix_of(at.epoch, slot.samples[i]).partner_share(set_.image) : 0;
    std::int32_t own = slot.labels[i], other = mixes ? slot.labels[count + i] : own;
    double own_share = 1 - share, other_share = share;
    if (other_share > own_share) {
      std::swap(own, other);
      std::swap(own_share, other_share);
    }
    slot.labels[i] = own;
    slot.mixed_labels.push_back({other, static_cast<float>(own_share * class_weight(own) / mean),
                                 static_cast<float>(other_share * class_weight(other) / mean)});
  }
}

double Assembler::class_weight(std::int32_t label) const {
  return request_.class_weights.empty() ? 1 : request_.class_weights[to_size(label)];
}

/// Over all ranks' images of the step, added up in one order wherever that is done.
double Assembler::mean_weight(const Position& at) {
  if (request_.class_weights.empty()) return 1;
  if (weighed_.epoch == at.epoch && weighed_.step == at.step) return mean_weight_;
  double sum = 0, images = 0;
  for (const data::StridedRange& piece : epoch_plan_.all_pieces(at.step)) {
    for (std::size_t k = 0; k < piece.size(); ++k) {
      const std::size_t index = order_[piece.at(k)];
      const double own = class_weight(set_.labels[index]);
      images += 1;
      sum += own;
      if (!request_.augment.mixes()) continue;
      const double share = mix_of(at.epoch, set_.samples[index]).partner_share(set_.image);
      sum += share * (class_weight(set_.labels[partner_of(piece.at(k))]) - own);
    }
  }
  weighed_ = at;
  mean_weight_ = images > 0 ? sum / images : 1;
  return mean_weight_;
}

}  // namespace cputrain::datasets

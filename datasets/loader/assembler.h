#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/pipeline.h"
#include "datasets/loader/work_arena.h"
#include "datasets/pixels/change.h"
#include "datasets/pixels/mix.h"

namespace cputrain::datasets {

/// A micro-batch of the training: piece k of a step of an epoch.
struct Position {
  int epoch = 0;
  std::size_t step = 0;
  int piece = 0;
};

/// A micro-batch with the memory that it needs. Where images are mixed, their partners lie behind
/// them until they are.
struct Slot {
  std::vector<std::size_t> indices;  // in the set
  std::vector<const std::uint8_t*> images;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> samples;
  std::vector<data::Turn> turns;
  std::vector<compute::MixedLabel> mixed_labels;
  std::vector<std::uint8_t> stored;       // pixels of images that are read for this micro-batch
  std::vector<std::uint8_t> changed;      // pixels of turned and augmented images
  std::vector<std::uint8_t> mixed;        // pixels of mixed images
  std::string failure;                    // why one of them could not be read
  std::vector<compute::ImageMove> moves;  // for a feed
  compute::MicroBatch batch;
};

/// Whether the device makes turns and changes of images, or bytes of the host are changed.
bool device_moves(const data::BatchRequest&);

/// Slots of a batch source: the micro-batch in use, and those that are made meanwhile.
std::size_t slots_of(const data::BatchRequest&);

/// The feed that sends these micro-batches.
compute::FeedSize feed_size(Shape image, const data::BatchPlan&, const data::BatchRequest&,
                            std::size_t kept);

/// Fills slots with the micro-batches of a plan; used by one thread only.
class Assembler {
 public:
  /// The set is borrowed. Sends all of it with `request.on_device`. Error(data), Error(internal).
  Assembler(const data::ImageSet&, const data::BatchPlan&, const data::BatchRequest&);

  /// Slot number `i` of slots_of().
  void fill(const Position&, std::size_t i, Slot&);
  /// What comes behind the position that was filled last.
  Position after(Position) const;

 private:
  void keep_on_device();
  void enter(int epoch);
  void choose_images(const data::StridedRange& piece, Slot&);
  void read_missing(Slot&);
  KeptImages images() const { return {set_.image, set_.larger, request_.resize}; }
  void wait_for_disk(const Slot&);
  Change change_of(int epoch, std::uint32_t sample) const;
  void change_all(int epoch, Slot&);
  std::size_t partner_of(std::size_t place) const;
  Mix mix_of(int epoch, std::uint32_t sample) const;
  void mix_all(int epoch, std::size_t count, Slot&);
  void mix_labels(const Position&, std::size_t count, Slot&);
  double class_weight(std::int32_t label) const;
  double mean_weight(const Position&);
  void stage(const Position&, std::size_t i, Slot&);

  const data::ImageSet& set_;
  const data::BatchPlan plan_;
  data::BatchPlan epoch_plan_;  // that of the epoch that was entered
  const data::BatchRequest request_;
  WorkArena arena_;
  std::vector<std::uint32_t> kept_;  // by index in the set: which image of those on the device
  std::unique_ptr<compute::ImageFeed> feed_;
  std::vector<std::uint32_t> order_;
  std::optional<int> epoch_;
  Position weighed_{-1, 0, 0};  // the step that mean_weight_ is of
  double mean_weight_ = 1;
};

}  // namespace cputrain::datasets

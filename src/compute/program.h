#pragma once

#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compute/device_sums.h"
#include "compute/layer_time.h"
#include "compute/memory.h"
#include "compute/parameters/parameters.h"
#include "compute/tally.h"
#include "compute/tuner.h"
#include "compute/update.h"

namespace cputrain::compute {

/// A program's parameters: where they lie in arenas (weights, gradients, optimizer state), and
/// their way from and to the canonical layout. `parameter` indexes layout().parameters.
class StoredParameters {
 public:
  using Formats = std::vector<std::unique_ptr<ParameterFormat>>;

  /// A format for each parameter; without any, arenas hold canonical numbers of layout.dtype. The
  /// memory, where arenas lie, is borrowed.
  StoredParameters(ParameterLayout, Formats, Memory&);
  /// The same in arenas of another memory.
  StoredParameters in(Memory& memory) const;

  const ParameterLayout& layout() const { return layout_; }

  std::vector<double> to_canonical(std::size_t parameter, const Array& arena) const;
  /// The same as float32, as files have them. A dense layer may be half of a process's memory, so
  /// arenas of floats do not go by way of doubles.
  std::vector<float> to_canonical_floats(std::size_t parameter, const Array& arena) const;
  void from_canonical(std::size_t parameter, std::span<const double> values,
                      const Array& arena) const;
  /// The same, where arenas of floats need no second copy.
  void from_canonical(std::size_t parameter, std::span<const float> values,
                      const Array& arena) const;

 private:
  Array stored_part(std::size_t parameter, const Array& arena) const;

  ParameterLayout layout_;
  std::shared_ptr<const Formats> formats_;
  Memory* memory_;
};

/// A result that a device may still be at. Valid as long as what it came from.
template <class T>
class Pending {
 public:
  Pending(T there = {}) : there_(std::move(there)) {}
  /// `fetch` waits until the device has come there.
  explicit Pending(std::function<T()> fetch) : fetch_(std::move(fetch)) {}

  T wait() const { return fetch_ ? fetch_() : there_; }

 private:
  T there_{};
  std::function<T()> fetch_;
};

enum class Phase { train, evaluate };

/// What an image's loss is where that of its label, once, is not all of it: of a mixed image, or
/// where classes have weights. The loss is own * loss(label) + others * loss(other); predictions
/// are judged by the label.
struct MixedLabel {
  std::int32_t other = 0;
  float own = 1, others = 0;

  bool operator==(const MixedLabel&) const = default;
};

/// Images that are on their way to a device, or there. Only their backend knows what it is.
class StagedImages {
 protected:
  ~StagedImages() = default;
};

/// What one call of a program works on: a few images of this rank's share. Borrowed memory that
/// stays valid until the batch source is asked for the next one.
struct MicroBatch {
  std::span<const std::uint8_t* const> images;  ///< one pointer an image: H*W*3 bytes, RGB
  std::span<const std::int32_t> labels;
  std::span<const std::uint32_t> samples;  ///< identities, for randomness that is f(sample)
  /// One an image, or none: then each loss is the label's. For training.
  std::span<const MixedLabel> mixed{};
  /// The same on a device (image_feed.h); `images` then count alone. Null where they were not sent.
  StagedImages* staged = nullptr;

  int size() const { return static_cast<int>(images.size()); }
  /// Images [begin, begin + count), not staged.
  MicroBatch part(std::size_t begin, std::size_t count) const {
    return {images.subspan(begin, count), labels.subspan(begin, count),
            samples.subspan(begin, count), mixed.empty() ? mixed : mixed.subspan(begin, count)};
  }
};

/// What a forward pass must know besides its images.
struct Pass {
  Phase phase = Phase::evaluate;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  ///< counts from 0 over the whole training; dropout depends on it
  /// Program::probabilities() will be asked for. A device then sends them with the sums; else it
  /// does not.
  bool probabilities = false;
};

/// Called with n when gradients [0, n) of the arena are final and weights [0, n) will not be read
/// again in this step, once a device has come to `after`; null: already. n only grows; the last
/// call has n = ParameterLayout::gradient_size. The program's next backward pass uses its events
/// anew, so waits for them must have ended by then.
using ReadySink = std::function<void(std::size_t n, Event* after)>;

/// What a backward pass must know.
struct Backward {
  double loss_scale = 1;                          ///< what the summed loss is multiplied by
  Accumulate accumulate = Accumulate::overwrite;  ///< for gradients
  ReadySink ready = [](std::size_t, Event*) {};
  /// Sums these gradients over ranks where they lie; null: the receiver of `ready` does.
  const PassSums* sums = nullptr;
  /// What the gradients go to, where nothing comes between: a device has it as part of the pass.
  const StepUpdate* update = nullptr;

  void apply_update() const {
    if (update) update->apply();
  }
};

/// What a program would keep of an image.
struct FeatureFacts {
  int node;           ///< whose output is kept, in the compiled graph (pools before their ReLUs)
  std::size_t bytes;  ///< per image, with what finds it again
};

/// A graph compiled for one backend: layouts, fusion, algorithms and memory are decided; running it
/// allocates nothing. The sizes it can run were named when it was compiled; 0 images always work.
class Program {
 public:
  virtual ~Program() = default;

  virtual const StoredParameters& parameters() const = 0;
  const ParameterLayout& layout() const { return parameters().layout(); }

  /// Begins a pass over the images. They may change when it returns, though a device may still be
  /// at work; those that were staged for a training pass only after its backward() or tally().
  virtual void forward(const MicroBatch&, const Pass&) = 0;

  /// Gradients of the loss of the last forward pass (which must have been one of Phase::train), and
  /// the update. With no images, overwrite clears the gradients and add does nothing.
  /// A device may still be at it when it returns.
  virtual void backward(const Backward&) = 0;

  /// Sums over the images of all forward passes since it was last asked. To ask waits for nothing.
  /// The last two that were asked for can be had, so that the passes of the next step may be
  /// enqueued before those of a step are done.
  virtual Pending<Tally> tally() = 0;

  /// Training passes move batch norm's statistics on the side; this writes them to the weights
  /// arena. Called when the weights of a step change.
  virtual void publish_statistics() = 0;

  /// Class probabilities of the last forward pass, which it waits for and whose Pass must have
  /// asked for them: images x classes, or x 1 where it is the probability of class 1 of two. They
  /// lie in the host's memory, wherever arrays do.
  virtual std::span<const float> probabilities() = 0;

  /// Every layer with what runs it, and the seconds of all passes that were timed by layer.
  virtual std::vector<LayerTime> layer_times() const = 0;
  /// Whether passes from now on are timed by layer, where that makes them slower: on a device,
  /// which begins without. Elsewhere all are.
  virtual void time_layers([[maybe_unused]] bool on) {}

  /// Which of several methods compute it, where there are several.
  virtual Tuner& tuner() { return one_method_; }

  /// Bytes of activations, workspaces and scratchpads that the program allocated, with this rank's
  /// part of what ranks share, and all of what programs of an arena share; in the backend's memory.
  virtual std::size_t workspace_bytes() const = 0;

  /// A program may keep what its frozen beginning makes of an image, so that later passes over the
  /// same pixels begin behind it. Images are told apart by their pixels: each view that an
  /// augmentation makes is one of its own. Nothing where the graph has no such beginning, or the
  /// program cannot, as those whose arrays lie on a device.
  virtual std::optional<FeatureFacts> features() const { return {}; }
  /// Keeps those of the first images that have room in so many bytes, where there are features().
  virtual void keep_features([[maybe_unused]] std::size_t most_bytes) { assert(features()); }
  /// Images whose frozen beginning was not computed, of all passes since the program was made.
  virtual std::uint64_t images_from_features() const { return 0; }

  /// Seconds that passes spent waiting for other ranks of the node since the program was made.
  virtual double waited() const { return 0; }

 private:
  Tuner one_method_;
};

/// How parameters lie in the arena, as a number: programs whose numbers differ (other instruction
/// sets, other sizes) must not share or add up arenas. Large parameters, whose layout is that of
/// the activation they read, are left out. `memory`: the backend's.
std::uint64_t layout_fingerprint(const Program&, Memory& memory);

/// What that holds at once of the host's memory, where arenas lie there.
std::size_t layout_fingerprint_bytes(const ParameterLayout&);

}  // namespace cputrain::compute

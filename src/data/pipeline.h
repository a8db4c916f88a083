#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/node.h"
#include "compute/image_feed.h"
#include "core/shape.h"
#include "data/augment.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"
#include "data/check_report.h"
#include "data/dataset.h"
#include "data/resize.h"

/// The data side as the commands see it; `datasets/` implements it.
namespace cputrain::data {

/// Which samples a command wants.
struct DataRequest {
  std::string spec;                          ///< --data, in one of the forms of datasets/README.md
  double validation_split = 0.1;             ///< where the data has no part of its own for it
  std::uint64_t seed = 0;                    ///< chooses the split and what the limits keep
  std::optional<std::size_t> limit_train{};  ///< at most so many; chosen by seed
  std::optional<std::size_t> limit_validation{};
  bool balanced = false;  ///< the limits keep as many of each class, not the classes' proportions
  Expand expand = Expand::none;
  /// For `eval`: one class is enough, others may be empty, and the description leaves training out.
  bool to_evaluate = false;
  /// For `eval`: classes of the weights, which may be classes without images here.
  std::vector<std::string> known_classes{};
  bool allow_empty_classes = false;  ///< a class without images stays a class
  Exif exif = Exif::apply;
  bool list_unread = false;  ///< names the files that are not read, instead of counting
  bool to_check = false;     ///< for `data check`: classes without images are no error
  /// Bytes that are available for this process alone, for all ranks alike; nothing: it looks
  /// itself.
  std::optional<std::size_t> memory{};
};

/// Everything decoded to one size, once per node.
struct DecodedData {
  ImageSet train, validation;
  std::vector<BadSample> bad;      ///< left out, the same on every rank
  std::string empty_classes;       ///< a warning of classes that have no image left; or empty
  std::vector<std::string> flaws;  ///< warnings of classes whose images show little (Flaw)
  std::size_t warnings = 0;        ///< decoded although the decoder complained
  std::shared_ptr<system::SharedBlock> memory;  ///< what the sets point into
  std::shared_ptr<FillingCache> filling;        ///< the sets'; null where all is there and stays
  std::size_t not_kept = 0;  ///< images that are decoded whenever they are needed
  std::size_t bytes = 0;     ///< pixels, once per node: in memory, or in a file
  std::string folder;        ///< where the file lies that they are in, where that was asked for
  double seconds = 0;
  double images_per_second = 0;  ///< that the node decoded at first, with no steps beside it
};

/// How far a long task has come; called at least every second, on the caller's thread.
using OnProgress = std::function<void(std::size_t done, std::size_t total)>;

struct DecodeRequest {
  Shape image;
  int threads = 1;
  OnProgress progress{};
  Resizing resize{};
  /// Returns while the images are still being decoded, except for the `first` samples, and unless
  /// one of these is damaged. Images that are ready in a file are looked at all the same.
  bool meanwhile = false;
  std::vector<std::uint32_t> first{};
  std::optional<std::size_t> keep{};  ///< at most so many images; the others are decoded each time
  std::string folder{};               ///< they are to lie in a file there; empty: in memory
  int larger = 1;                     ///< ImageForm::larger
};

struct BatchRequest {
  std::uint64_t seed = 0;
  bool shuffle = true;  ///< false: in the data's own order (evaluation)
  Augment augment{};
  Resize resize = Resize::bilinear;  ///< brings crops of it to the image's size
  bool mirror = false;               ///< each image left and right swapped, beside its augmentation
  /// By label; empty: all count alike. Losses of a step's images are multiplied by the weight over
  /// the mean weight of the step, over all ranks.
  std::vector<double> class_weights{};
  int threads = 1;
  int prefetch = 1;  ///< micro-batches made ahead by a thread, 0 or 1; 0: when they are asked for
  compute::ImageFeeder* feeder = nullptr;  ///< sends them to its device; null: they stay here
  /// The whole set stays on the feeder's device. The augmentation must be one that only_moves().
  bool on_device = false;
  bool filling = false;  ///< the set is still being decoded: some images get a copy
  /// Called once, by the thread that takes micro-batches, when all ranks have all images.
  std::function<void()> on_whole{};
};

struct PackReport {
  std::size_t images = 0, bytes = 0;  ///< in the file; bytes of the whole file
  std::vector<BadSample> bad;         ///< left out
  std::string empty_classes;          ///< a warning of classes that have no image left; or empty
  std::vector<std::string> flaws;     ///< as of DecodedData
};

/// What `data synth` is to do: made-up images in class folders.
struct SynthRequest {
  std::string folder;
  std::size_t images = 200;
  Shape image;
  std::string format = "jpeg";  ///< "jpeg", "png" or "bmp"
  std::uint64_t seed = 0;
};

/// What `bench input` is to do.
struct InputBenchRequest {
  std::string data;  ///< --data, for messages
  Shape image;
  Resizing resize{};
  Exif exif = Exif::apply;
  Augment augment{};
  std::uint64_t seed = 0;  ///< for the augmentation and the order of images in batches
  int micro_batch = 32;
  int threads = 1;
  int repeat = 5;  ///< measured rounds
};

/// A way to bring all images nearer to training, timed in every round.
struct InputStage {
  std::string name;
  std::vector<double> seconds;  ///< one way through all images, a round each
};

/// The input path, piece by piece, each measured in the same rounds as what limits it.
struct InputBench {
  std::size_t images = 0, left_out = 0;  ///< left out: no JPEG, or not without complaints
  double megapixels = 0;                 ///< all images', as they are stored
  std::size_t bytes = 0;                 ///< all files'
  /// Nothing but decompression, by the codec's own interface and as its own benchmark calls it.
  InputStage codec;
  std::vector<InputStage> decoding;  ///< from files in memory; limited by the codec
  std::vector<InputStage> batches;   ///< from the cache; limited by memory
};

/// Decoded images, once per node.
struct CacheSize {
  std::size_t bytes = 0;          ///< in all
  std::size_t images = 0;         ///< several samples may show one
  std::size_t beside_pixels = 0;  ///< bytes of each image that are no pixels
};

struct DataPipeline {
  /// Lists the samples without decoding any. Throws Error(data).
  std::function<DataSource(const DataRequest&)> open;
  /// At most so many of these samples of the data, chosen by the request's seed as its limits are.
  std::function<std::vector<std::uint32_t>(const Dataset&, const std::vector<std::uint32_t>&,
                                           std::size_t limit, const DataRequest&)>
      limited;
  /// What decode() will ask a node for. Error(usage) where the data cannot be had at this size.
  std::function<CacheSize(const DataSource&, const ImageForm&)> cache_size;
  /// Collective over the node's ranks. Throws Error(data) where nothing usable is left.
  std::function<DecodedData(const DataSource&, const DecodeRequest&, comm::NodeMemory&)> decode;
  /// Decodes what is missing of images that are being decoded meanwhile, in the same memory, and
  /// leaves out damaged ones, as decode() does. Nothing else may use them. Collective as decode().
  std::function<DecodedData(const DataSource&, const DecodedData&, const DecodeRequest&,
                            comm::NodeMemory&)>
      finish;
  /// The set must outlive the source.
  std::function<std::unique_ptr<BatchSource>(const ImageSet&, const BatchPlan&,
                                             const BatchRequest&)>
      batches;
  /// Bytes that such a source of the training images will keep beside what lies in memory.
  std::function<compute::FeedBytes(const DataSource&, Shape image, const BatchPlan&,
                                   const BatchRequest&)>
      batch_memory;
  /// Reads one image file for `predict`.
  std::function<ReadResult(const std::string& path, Shape image, const Resizing&, Exif,
                           std::span<std::uint8_t> dst)>
      read_image;
  /// Writes an image left and right swapped, as `BatchRequest::mirror` has it.
  std::function<void(std::span<const std::uint8_t> src, Shape image, std::span<std::uint8_t> dst)>
      mirror_image;
  /// Paths of all images (by their names) below a folder, sorted; links are followed, hidden files
  /// and folders of systems stay out, and what else is not read is told.
  std::function<std::pair<std::vector<std::string>, std::vector<UnreadFile>>(
      const std::string& folder)>
      list_images;
  /// Decoded pixels, H*W*3 bytes, as a small file whose longer side has at most so many pixels.
  std::function<Thumbnail(std::span<const std::uint8_t> pixels, Shape image, Turn, int longest)>
      thumbnail;
  /// Decodes every sample on `threads` threads and reports what is wrong with the data.
  std::function<CheckReport(const DataSource&, int threads, const OnProgress&)> check;
  /// Times the way from files in memory to batches. Error(usage) where the data has no JPEG files.
  std::function<InputBench(const DataSource&, const InputBenchRequest&)> bench;
  /// Decodes into one file that is read instead of being decoded. Error(data, usage, output).
  std::function<PackReport(const DataSource&, const std::string& file, const DecodeRequest&)> pack;
  /// Error(usage) where the folder holds something, Error(output).
  std::function<void(const SynthRequest&)> synth;
};

}  // namespace cputrain::data

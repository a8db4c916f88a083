#include "datasets/loader/bench_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "core/casts.h"
#include "core/error.h"
#include "datasets/decode/decode.h"
#include "datasets/decode/limits.h"
#include "datasets/decode/turbo_decoder.h"
#include "datasets/loader/batch_loader.h"
#include "datasets/loader/work_arena.h"
#include "datasets/pixels/change.h"
#include "datasets/pixels/resize.h"
#include "system/clock.h"

namespace cputrain::datasets {
namespace {

using File = std::vector<std::uint8_t>;

constexpr int kEpochsOfBatches = 10;    ///< in a round: one is soon over, images lie ready
constexpr double kLeastSeconds = 0.05;  ///< in a measurement: a few images go many times

/// The JPEG files that both decoders read without a complaint, so that both do the same work.
std::vector<File> read_jpegs(const data::DataSource& source, data::InputBench& bench) {
  std::vector<File> files;
  TurboDecoder codec;
  for (const std::uint32_t sample : source.train) {
    File file = source.dataset->file(sample);
    const Decoded decoded = format_of(file) == Format::jpeg
                                ? decode(file)
                                : Decoded{{data::ReadStatus::unsupported, {}}, {}};
    if (decoded.result.status != data::ReadStatus::ok || decoded.result.warned ||
        codec.decode(file).empty()) {
      ++bench.left_out;
      continue;
    }
    bench.megapixels += 1e-6 * decoded.image.width * decoded.image.height;
    bench.bytes += file.size();
    files.push_back(std::move(file));
  }
  bench.images = files.size();
  return files;
}

/// Everything that is measured, on the same images and threads.
class Course {
 public:
  Course(std::vector<File> files, const data::InputBenchRequest& request)
      : files_(std::move(files)),
        request_(request),
        workers_(to_size(std::max(request.threads, 1))),
        arena_(to_int(workers_)),
        codecs_(workers_),
        changed_(workers_, std::vector<std::uint8_t>(request.image.size())),
        form_{request.image, request.resize, data::kept_sides(request.augment)},
        cache_(files_.size() * form_.kept_shape().size()) {
    set_.image = request.image;
    set_.larger = form_.larger;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      set_.pixels.push_back(image(i).data());
      set_.labels.push_back(0);
      set_.samples.push_back(static_cast<std::uint32_t>(i));
    }
  }

  double codec() {
    return timed([&](std::size_t i, std::size_t worker) { codecs_[worker].decode(files_[i]); });
  }

  double decoding() {
    return timed([&](std::size_t i, std::size_t) { decode(files_[i]); });
  }

  double resizing() {
    return timed([&](std::size_t i, std::size_t) { fill_cache(i); });
  }

  double augmenting() {
    return timed([&](std::size_t i, std::size_t worker) {
      fill_cache(i);
      const KeptImages images(request_.image, form_.larger, request_.resize.way);
      const Change change = choose_change(request_.augment, images, request_.seed, epoch_,
                                          static_cast<std::uint32_t>(i));
      if (change == Change{}) return;  // as in the loader
      change_image(image(i).data(), images, data::Turn::none, change, changed_[worker]);
    });
  }

  double ready_batches() { return epochs_with({}); }
  double augmented_batches() { return epochs_with(request_.augment); }

  void next_epoch() { ++epoch_; }

  /// Chooses how often a measurement goes through the images; in warming up.
  void choose_times() { times_ = std::max(1, to_int(kLeastSeconds / std::max(decoding(), 1e-6))); }

 private:
  std::span<std::uint8_t> image(std::size_t i) {
    const std::size_t bytes = form_.kept_shape().size();
    return std::span(cache_).subspan(i * bytes, bytes);
  }

  void fill_cache(std::size_t i) {
    const Decoded decoded = decode(files_[i]);
    resize_image(shown(decoded, request_.exif), form_.kept_shape(), form_.kept_resize(), image(i));
  }

  /// Seconds until the workers have taken all images, one after the other; the mean of times_.
  double timed(const std::function<void(std::size_t image, std::size_t worker)>& work) {
    const system::Stopwatch watch;
    for (int time = 0; time < times_; ++time) {
      std::atomic<std::size_t> next{0};
      arena_.for_each(workers_, [&](std::size_t worker) {
        for (std::size_t i = next++; i < files_.size(); i = next++) work(i, worker);
      });
    }
    return watch.seconds() / times_;
  }

  /// Seconds an epoch: from the wish for the first micro-batch until the last one is there. The
  /// loader works ahead, so it ends here, before the next measurement.
  double epochs_with(const data::Augment& augment) const {
    data::ImageSet set = set_;
    set.larger = data::kept_sides(augment);  // without crops the same bytes pass for small images
    const data::BatchPlan plan(files_.size(), files_.size(), request_.micro_batch, 0, 1);
    const auto batches = make_batch_loader(set, plan,
                                           {.seed = request_.seed,
                                            .augment = augment,
                                            .resize = request_.resize.way,
                                            .threads = request_.threads});
    const system::Stopwatch watch;
    batches->seek(epoch_ * kEpochsOfBatches, 0);
    for (int k = 0; k < kEpochsOfBatches * plan.micro_batches(0); ++k) batches->next();
    return watch.seconds() / kEpochsOfBatches;
  }

  const std::vector<File> files_;
  const data::InputBenchRequest request_;
  const std::size_t workers_;
  WorkArena arena_;
  std::vector<TurboDecoder> codecs_;
  std::vector<std::vector<std::uint8_t>> changed_;  // a worker's augmented image
  const data::ImageForm form_;                      // as the cache has it
  std::vector<std::uint8_t> cache_;                 // resized images
  data::ImageSet set_;
  int epoch_ = 1;
  int times_ = 1;
};

struct Lap {
  data::InputStage* stage;
  double (Course::*run)();
};

}  // namespace

data::InputBench bench_input(const data::DataSource& source,
                             const data::InputBenchRequest& request) {
  check_fits(request.augment, request.image);
  data::InputBench bench{
      .codec = {"libjpeg-turbo alone", {}},
      .decoding = {{"decode", {}}, {"decode, resize", {}}, {"decode, resize, augment", {}}},
      .batches = {{"batches from the cache", {}}, {"batches, augmented", {}}}};
  std::vector<File> files = read_jpegs(source, bench);
  if (files.empty()) {
    fail(ExitCode::usage,
         fmt::format("--data {}: none of the {} images taken is a JPEG file that can be decoded "
                     "(bench input measures that); give a folder of photographs, or make one: "
                     "cputrain data synth FOLDER",
                     request.data, bench.left_out));
  }
  Course course(std::move(files), request);
  course.choose_times();
  std::vector<Lap> laps{
      {&bench.decoding[0], &Course::decoding},     {&bench.codec, &Course::codec},
      {&bench.decoding[1], &Course::resizing},     {&bench.decoding[2], &Course::augmenting},
      {&bench.batches[0], &Course::ready_batches}, {&bench.batches[1], &Course::augmented_batches}};
  for (int round = 0; round <= request.repeat; ++round) {
    for (const Lap& lap : laps) {
      const double seconds = (course.*lap.run)();
      if (round > 0) lap.stage->seconds.push_back(seconds);
    }
    std::ranges::reverse(laps);
    course.next_epoch();
  }
  return bench;
}

}  // namespace cputrain::datasets

// Images on the device are those of the host, and a slot is filled when nobody reads it any more.
#include "backends/cuda/image_feed.h"

#include "backends/cuda/backend.h"
#include "backends/cuda/kernels/elementwise.h"
#include "datasets/loader/batch_loader.h"
#include "tests/backends/cuda/device_arrays.h"
#include "tests/datasets/loader/made_set.h"

namespace cputrain::cuda {
namespace {

/// What the first layer makes of images; numbers are bytes.
class LoadedImages {
 public:
  LoadedImages(std::size_t images, const Shape& shape)
      : images_(static_cast<int>(images)),
        shape_(shape),
        map_(DeviceArray<float>::poisoned(images * shape.size() / 3 * 8)) {}

  /// Puts it into the stream.
  void load(compute::StagedImages* staged) {
    const Stream stream = test_stream().get();
    auto* facts = static_cast<PassFacts*>(facts_.data());
    auto& batch = *static_cast<DeviceBatch*>(staged);
    batch.begin_use(stream);
    write_facts(stream, {.bytes = batch.bytes, .moves = batch.moves}, facts);
    load_images(stream, Numbers::exact, {images_, shape_.height, shape_.width, 1, 0, facts},
                map_.data());
    batch.end_use(stream);
  }

  std::vector<std::uint8_t> bytes() const {
    const std::vector<float> numbers = without_padding(map_.read(), 3);
    return {numbers.begin(), numbers.end()};
  }

 private:
  int images_;
  Shape shape_;
  DeviceBlock facts_{sizeof(PassFacts), "facts"};
  DeviceArray<float> map_;
};

template <class T>
std::vector<T> read_array(const T* on_device, std::size_t count) {
  std::vector<T> values(count);
  copy_async(values.data(), on_device, count * sizeof(T), test_stream().get());
  test_stream().synchronize();
  return values;
}

class ImageFeed : public ::testing::Test {
 protected:
  /// Batches of a loader that sends them, beside those of one that does not.
  void expect_same_images(const data::ImageSet& set, data::BatchRequest request) {
    const std::size_t count = set.size();
    const data::BatchPlan plan(count, 4, 3, 0, 1);
    request.seed = 5;
    const auto here = datasets::make_batch_loader(set, plan, request);
    request.feeder = backend_->feeder();
    const auto there = datasets::make_batch_loader(set, plan, request);
    for (int k = 0; k < 9; ++k) {
      const compute::MicroBatch &expected = here->next(), &sent = there->next();
      ASSERT_TRUE(sent.staged);
      const std::size_t images = expected.images.size();
      LoadedImages loaded(images, set.image);
      loaded.load(sent.staged);
      std::vector<std::uint8_t> bytes;
      for (const std::uint8_t* image : expected.images) {
        bytes.insert(bytes.end(), image, image + set.image.size());
      }
      ASSERT_EQ(loaded.bytes(), bytes) << "batch " << k;
      const auto& batch = *static_cast<DeviceBatch*>(sent.staged);
      EXPECT_TRUE(std::ranges::equal(read_array(batch.labels, images), expected.labels));
      EXPECT_TRUE(std::ranges::equal(read_array(batch.samples, images), expected.samples));
    }
  }

  std::unique_ptr<compute::Backend> backend_ = make_device_backend();
};

struct FeedCase {
  const char* augment;
  Shape image;
  bool turned = false;    ///< each image as six samples
  bool computed = false;  ///< by the host alone
};

constexpr FeedCase kCases[] = {{"none", {5, 7, 3}},
                               {"flip,vflip", {5, 7, 3}},
                               {"flip,vflip,crop:3", {4, 9, 3}},
                               {"none", {5, 5, 3}, true},
                               {"six,flip,crop:2", {5, 5, 3}, true},
                               {"flip,rotate:20,colour:0.3", {5, 7, 3}, false, true}};

data::ImageSet set_of(const FeedCase& c, const datasets::MadeSet& made) {
  data::ImageSet set = made.set();
  for (std::size_t i = 0; c.turned && i < set.size(); ++i) {
    set.pixels[i] = made.set().pixels[i / 6];
    set.turns.push_back(static_cast<data::Turn>(i % 6));
  }
  return set;
}

TEST_F(ImageFeed, SendsWhatTheHostMakes) {
  for (const FeedCase& c : kCases) {
    const datasets::MadeSet made(13, c.image);
    const data::ImageSet set = set_of(c, made);
    data::BatchRequest request{.augment = data::parse_augment(c.augment)};
    for (const int prefetch : {0, 1}) {
      SCOPED_TRACE(std::string(c.augment) + ", prefetch " + std::to_string(prefetch));
      request.prefetch = prefetch;
      request.on_device = false;
      expect_same_images(set, request);
      if (c.computed) continue;
      SCOPED_TRACE("kept");
      request.on_device = true;
      expect_same_images(set, request);
    }
  }
}

/// The host waits for nothing but memory of its own: passes over earlier batches are still to come.
TEST_F(ImageFeed, ASlotIsFilledWhenNobodyReadsItAnyMore) {
  constexpr std::size_t kBatches = 7;
  constexpr Shape kImage{3, 5, 3};
  const datasets::MadeSet made(kBatches, kImage);
  const data::ImageSet& set = made.set();
  const auto feed = backend_->feeder()->make_feed({.image = kImage, .images = 1, .slots = 2});
  std::vector<LoadedImages> loaded;
  for (std::size_t k = 0; k < kBatches; ++k) loaded.emplace_back(1, kImage);
  const compute::ImageMove move = compute::whole_image(0, kImage);
  for (std::size_t k = 0; k < kBatches; ++k) {
    const compute::MicroBatch batch{.images = std::span(set.pixels).subspan(k, 1),
                                    .labels = std::span(set.labels).subspan(k, 1),
                                    .samples = std::span(set.samples).subspan(k, 1)};
    loaded[k].load(feed->stage(k % 2, batch, std::span(&move, 1)));
  }
  for (std::size_t k = 0; k < kBatches; ++k) {
    const std::uint8_t* image = set.pixels[k];
    EXPECT_EQ(loaded[k].bytes(), std::vector(image, image + kImage.size())) << "batch " << k;
  }
}

TEST_F(ImageFeed, SaysWhatItTakes) {
  compute::FeedSize size{.image = {4, 4, 3}, .images = 3, .slots = 2};
  const compute::FeedBytes sent = backend_->feeder()->feed_bytes(size);
  EXPECT_EQ(sent.host, 2 * 3 * (48u + 4 + 4 + sizeof(compute::MixedLabel) + 32));
  EXPECT_EQ(sent.device, sent.host);
  size.kept = 10;
  const compute::FeedBytes kept = backend_->feeder()->feed_bytes(size);
  EXPECT_EQ(kept.host, 2 * 3 * (4u + 4 + sizeof(compute::MixedLabel) + 32));
  EXPECT_EQ(kept.device, kept.host + 10 * 48);
}

}  // namespace
}  // namespace cputrain::cuda

#include "datasets/pixels/expand.h"

#include <array>
#include <string_view>
#include <utility>

#include "datasets/folders/content_hash.h"
#include "datasets/pixels/pixel_map.h"

namespace cputrain::datasets {
namespace {

constexpr std::array<std::string_view, data::kTurns> kNames{"",
                                                            " (flipped top to bottom)",
                                                            " (flipped left to right)",
                                                            " (turned by 90 degrees)",
                                                            " (turned by 180 degrees)",
                                                            " (turned by 270 degrees)"};

class SixFold final : public data::Dataset {
 public:
  explicit SixFold(std::unique_ptr<data::Dataset> originals) : originals_(std::move(originals)) {}

  std::size_t size() const override { return originals_->size() * data::kTurns; }
  const std::vector<std::string>& classes() const override { return originals_->classes(); }
  int label(std::size_t index) const override { return originals_->label(index / data::kTurns); }

  std::string name(std::size_t index) const override {
    return originals_->name(index / data::kTurns) + std::string(kNames[index % data::kTurns]);
  }

  data::View view(std::size_t index) const override {
    const auto sample = static_cast<std::uint32_t>(index);
    return {sample - sample % data::kTurns, static_cast<data::Turn>(sample % data::kTurns)};
  }

  data::ReadResult read(std::size_t index, Shape image, const data::Resizing& resize,
                        std::span<std::uint8_t> dst) const override {
    const auto turn = view(index).turn;
    if (turn == data::Turn::none) return originals_->read(index / data::kTurns, image, resize, dst);
    std::vector<std::uint8_t> original(image.size());
    data::ReadResult result = originals_->read(index / data::kTurns, image, resize, original);
    const Window all{0, image.height, 0, image.width};
    map_image(original.data(), image, then_turn({}, turn, image), all, dst);
    return result;
  }

  data::SampleFacts inspect(std::size_t index) const override {
    return originals_->inspect(index / data::kTurns);
  }
  std::optional<std::uint64_t> content(std::size_t index) const override {
    return originals_->content(index / data::kTurns);
  }
  std::vector<std::uint8_t> file(std::size_t index) const override {
    return originals_->file(index / data::kTurns);
  }
  std::uint64_t origin() const override { return originals_->origin(); }
  std::uint64_t fingerprint() const override {
    return ContentHash().add("six turns").add(originals_->fingerprint()).value();
  }
  std::optional<data::ReadyForm> ready_form() const override { return originals_->ready_form(); }

 private:
  std::unique_ptr<data::Dataset> originals_;
};

}  // namespace

std::unique_ptr<data::Dataset> make_six_fold(std::unique_ptr<data::Dataset> originals) {
  return std::make_unique<SixFold>(std::move(originals));
}

std::vector<std::uint32_t> six_fold(std::span<const std::uint32_t> samples) {
  std::vector<std::uint32_t> result;
  result.reserve(samples.size() * data::kTurns);
  for (const std::uint32_t sample : samples) {
    for (std::uint32_t turn = 0; turn < data::kTurns; ++turn)
      result.push_back(sample * data::kTurns + turn);
  }
  return result;
}

}  // namespace cputrain::datasets

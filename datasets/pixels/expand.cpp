#include "datasets/pixels/expand.h"

#include <array>
#include <string_view>
#include <utility>

#include "datasets/folders/content_hash.h"
#include "datasets/pixels/pixel_map.h"

namespace cputrain {
namespace {

constexpr std::array<std::string_view, kTurns> kNames{"",
                                                      " (flipped top to bottom)",
                                                      " (flipped left to right)",
                                                      " (turned by 90 degrees)",
                                                      " (turned by 180 degrees)",
                                                      " (turned by 270 degrees)"};

class SixFold final : public Dataset {
 public:
  explicit SixFold(std::unique_ptr<Dataset> originals) : originals_(std::move(originals)) {}

  std::size_t size() const override { return originals_->size() * kTurns; }
  const std::vector<std::string>& classes() const override { return originals_->classes(); }
  int label(std::size_t index) const override { return originals_->label(index / kTurns); }

  std::string name(std::size_t index) const override {
    return originals_->name(index / kTurns) + std::string(kNames[index % kTurns]);
  }

  View view(std::size_t index) const override {
    const auto sample = static_cast<std::uint32_t>(index);
    return {sample - sample % kTurns, static_cast<Turn>(sample % kTurns)};
  }

  ReadResult read(std::size_t index, Shape image, Resize resize,
                  std::span<std::uint8_t> dst) const override {
    const auto turn = view(index).turn;
    if (turn == Turn::none) return originals_->read(index / kTurns, image, resize, dst);
    std::vector<std::uint8_t> original(image.size());
    ReadResult result = originals_->read(index / kTurns, image, resize, original);
    const Window all{0, image.height, 0, image.width};
    map_picture(original.data(), image, then_turn({}, turn, image), all, dst);
    return result;
  }

  SampleFacts inspect(std::size_t index) const override {
    return originals_->inspect(index / kTurns);
  }
  std::uint64_t fingerprint() const override {
    return ContentHash().add("six turns").add(originals_->fingerprint()).value();
  }
  std::optional<ReadyForm> ready_form() const override { return originals_->ready_form(); }
  const std::uint8_t* ready_pixels(std::size_t index) const override {
    return originals_->ready_pixels(index / kTurns);
  }
  ReadResult check_ready(std::size_t index) const override {
    return originals_->check_ready(index / kTurns);
  }

 private:
  std::unique_ptr<Dataset> originals_;
};

}  // namespace

std::unique_ptr<Dataset> make_six_fold(std::unique_ptr<Dataset> originals) {
  return std::make_unique<SixFold>(std::move(originals));
}

std::vector<std::uint32_t> six_fold(std::span<const std::uint32_t> samples) {
  std::vector<std::uint32_t> result;
  result.reserve(samples.size() * kTurns);
  for (const std::uint32_t sample : samples) {
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) result.push_back(sample * kTurns + turn);
  }
  return result;
}

}  // namespace cputrain

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/json_text.h"
#include "core/text.h"
#include "logging/reporters.h"
#include "system/files.h"
#include "system/output.h"

namespace cputrain::logging {
namespace {

using Json = nlohmann::ordered_json;

class Profile final : public RunReporter {
 public:
  Profile(std::function<std::vector<compute::LayerTime>()> layers, std::FILE* stream,
          std::filesystem::path path)
      : answer_(std::move(layers)), stream_(stream), path_(std::move(path)) {}

  void begin_epoch(const loop::EpochStart&) override { begin_ = answer_(); }

  void step(const loop::StepRecord& record) override {
    ++steps_;
    seconds_ += record.seconds;
    end_ = answer_();
  }

  void epoch(const loop::EpochRecord&) override { add_epoch(); }

  void summary(const SummaryRecord&) override {
    if (steps_ == 0) return;
    if (stream_) system::put(stream_, text());
    system::AtomicFile file(path_);
    file.write(json_text(json(), 2) + "\n");
    file.commit(system::Durability::process);
  }

 private:
  /// What the epoch's steps took, evaluation behind it left out.
  void add_epoch() {
    if (end_.empty()) return;
    std::vector<compute::LayerTime> taken = compute::difference(std::exchange(end_, {}), begin_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      for (const compute::LayerDirection& way : compute::kLayerDirections) {
        taken[i].*way.seconds += layers_[i].*way.seconds;
      }
    }
    layers_ = std::move(taken);
  }

  double in_layers() const {
    double seconds = 0;
    for (const compute::LayerTime& layer : layers_) seconds += layer.seconds();
    return seconds;
  }

  double share(double seconds) const { return seconds_ > 0 ? seconds / seconds_ : 0; }
  double milliseconds(double seconds) const { return 1e3 * seconds / static_cast<double>(steps_); }

  std::string line(const std::string& name, const std::string& ways, double seconds,
                   const std::string& rest) const {
    return fmt::format("{:<24}{:>30}{:>10.2f}{:>7.1f}%{}\n", name, ways, milliseconds(seconds),
                       100 * share(seconds), rest);
  }

  std::string text() const {
    std::string text = fmt::format(
        "\nProfile: ms per step of rank 0 (mean of {}), its share, and parts of the map that "
        "is read and of the gradient\nthat comes back that are not zero, where that is "
        "known\n{:<24}",
        with_commas(steps_), "layer");
    for (const compute::LayerDirection& way : compute::kLayerDirections)
      text += fmt::format("{:>10}", way.title);
    text += fmt::format("{:>10}{:>8}{:>7}{:>7}  {}\n", "all", "share", "map", "grad.", "algorithm");
    for (const compute::LayerTime& layer : layers_) {
      if (layer.seconds() == 0) continue;
      std::string ways;
      for (const compute::LayerDirection& way : compute::kLayerDirections) {
        const double seconds = layer.*way.seconds;
        ways +=
            fmt::format("{:>10}", seconds > 0 ? fmt::format("{:.2f}", milliseconds(seconds)) : "");
      }
      text += line(escaped(layer.name), ways, layer.seconds(),
                   fmt::format("{:>7}{:>7}  {}", compute::density_text(layer.density),
                               compute::density_text(layer.gradient_density),
                               compute::algorithms_text(layer)));
    }
    text += line("all else", "", seconds_ - in_layers(), "  input, sums over ranks, update");
    return text + line("step", "", seconds_, "");
  }

  Json json() const {
    Json layers = Json::array();
    for (const compute::LayerTime& layer : layers_) {
      Json& entry = layers.emplace_back(Json{{"name", layer.name},
                                             {"seconds", layer.seconds()},
                                             {"share", share(layer.seconds())},
                                             {"density", known(layer.density)},
                                             {"gradient_density", known(layer.gradient_density)}});
      for (const compute::LayerDirection& way : compute::kLayerDirections) {
        const double seconds = layer.*way.seconds;
        if (seconds == 0) continue;
        entry[std::string(way.name)] = {{"seconds", seconds}, {"algorithm", way.algorithm(layer)}};
      }
    }
    return {{"steps", steps_},
            {"seconds", seconds_},
            {"all_else_seconds", seconds_ - in_layers()},
            {"layers", std::move(layers)}};
  }

  std::function<std::vector<compute::LayerTime>()> answer_;
  std::FILE* stream_;
  std::filesystem::path path_;
  std::uint64_t steps_ = 0;
  double seconds_ = 0;  ///< the steps'
  std::vector<compute::LayerTime> begin_, end_,
      layers_;  ///< this epoch's first and last answer; the sum
};

}  // namespace

std::unique_ptr<RunReporter> profile_reporter(
    std::function<std::vector<compute::LayerTime>()> layers, std::FILE* stream,
    const std::filesystem::path& path) {
  return std::make_unique<Profile>(std::move(layers), stream, path);
}

}  // namespace cputrain::logging

#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "logging/reporters.h"
#include "training/training.h"

/// What a training prints at its end: what came out, which weights lie where, how long it took.
namespace cputrain::training {

struct RunEnd {
  const logging::SummaryRecord& summary;
  std::filesystem::path folder;
  bool keeps_best = false;  ///< --save-best or --early-stopping
  bool kept_best = false;   ///< best.safetensors has the weights of the best epoch
  std::string limit{};      ///< input_limit()
  bool averages = false;    ///< averages of weights were saved
  std::string lost{};       ///< runfiles/lost_seconds.h: text_of()
};

std::vector<std::string> end_lines(const RunEnd&);

// What a training prints at its end where steps waited for images that do not lie in memory.

/// Where images lie that steps wait for.
enum class ImageSource { decoders, disk, packed_file };

struct ImageWait {
  double share = 0;    ///< a part of the last epoch's time
  double got = 0;      ///< images a second that steps took in it, all ranks together
  double decoded = 0;  ///< that all hosts decode with no steps beside it; 0: not known
  ImageSource source = ImageSource::decoders;
  std::string folder{};   ///< where the file on disk lies
  bool asked = false;     ///< for decoders: --cache none
  std::size_t bytes = 0;  ///< that all images take when they are decoded

  /// What steps would take without a wait.
  double wanted() const { return got / (1 - share); }
};

/// "Limit: images. ..." with a remedy; empty where steps waited for less than 2 % of their time.
std::string input_limit(const ImageWait&);

/// The same of a training's last epoch; empty where its images lie in memory.
std::string input_limit(const Training&, const loop::TrainResult&);

}  // namespace cputrain::training

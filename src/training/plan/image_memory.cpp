#include "training/plan/image_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "data/parse_data.h"
#include "system/limits/available_memory.h"

namespace cputrain::training {
namespace {

/// The largest of what a person may choose smaller. An evaluation has the size of its weights.
std::vector<std::string> fitting_choices(const TrainingFlags& flags, const ImageForm& form,
                                         const data::DataSource& source,
                                         const data::CacheSize& cache, std::size_t available) {
  const std::size_t of_images = cache.images * (form.kept_shape().size() + cache.beside_pixels);
  const std::size_t fixed = cache.bytes - std::min(cache.bytes, of_images);
  const auto room = static_cast<double>(available - std::min(available, fixed));
  const auto images = static_cast<double>(cache.images);
  const std::size_t samples = source.train.size() + source.validation.size();
  const auto fitting =
      static_cast<std::size_t>(
          room / static_cast<double>(form.kept_shape().size() + cache.beside_pixels)) *
      (samples / cache.images);  // six samples may show one image
  std::vector<std::string> choices;
  if (flags.task.evaluates) {
    if (fitting > 0) choices.push_back(fmt::format("--limit-val {}", fitting));
    return choices;
  }
  if (fitting > source.validation.size()) {
    choices.push_back(fmt::format("--limit-train {}", fitting - source.validation.size()));
  }
  const double pixels = room - images * static_cast<double>(cache.beside_pixels);
  const auto side = static_cast<int>(std::sqrt(std::max(0.0, pixels) / (3 * images))) / form.larger;
  if (side > 0) choices.push_back(fmt::format("--image-size {}", side));
  return choices;
}

/// The flags of `data pack` that decide which images the file has, and in which parts.
bool is_of_packing(const std::string& flag) {
  constexpr std::string_view kFlags[] = {
      "validation-split",    "limit-train", "limit-val", "balanced",
      "allow-empty-classes", "expand",      "exif",      "seed"};
  return std::ranges::find(kFlags, flag) != std::end(kFlags);
}

}  // namespace

void check_images_fit(const TrainingFlags& flags, const ImageForm& form,
                      const data::DataSource& source, const data::CacheSize& cache,
                      std::optional<std::size_t> available) {
  if (!available || cache.bytes <= *available) return;
  const auto choices = fitting_choices(flags, form, source, cache, *available);
  const std::string packed = pack_advice(flags, form);
  fail(ExitCode::usage,
       fmt::format("{} images at {}x{} need {} of memory, {} are available{} (they are decoded "
                   "once and kept, so that later epochs read nothing); {}{}",
                   with_commas(cache.images), form.shape.height, form.shape.width,
                   bytes_text(static_cast<double>(cache.bytes)),
                   bytes_text(static_cast<double>(*available)),
                   system::group_limits_memory() ? system::kInControlGroup : "",
                   choices.empty() ? "use a machine with more of it"
                                   : "the largest that fit: " + join(choices, " or "),
                   packed));
}

std::string pack_advice(const TrainingFlags& flags, const ImageForm& form) {
  if (!flags.task.trains || form.larger > 1) return "";
  const std::string spec = flags.data_or_synthetic();
  const data::DataSpec data = data::parse_data_spec(spec);
  std::string name = data.word == "synthetic" ? data.word : "";
  if (name.empty() && !data.parts.empty()) {
    const std::filesystem::path path = data.parts.front();
    name = (path.has_filename() ? path : path.parent_path()).filename().string();
  }
  std::vector<std::string> words{flags.program, "data", "pack", spec, name + ".ctpack"};
  words.insert(words.end(), {"--image-size", std::to_string(form.shape.height), "--resize",
                             std::string(word_of(form.resize.way))});
  if (form.resize.fit != data::Fit{}) {
    words.insert(words.end(), {"--fit", to_text(form.resize.fit)});
  }
  for (const auto& [flag, value] : flags.given) {
    if (!is_of_packing(flag)) continue;
    words.push_back("--" + flag);
    if (!flags.switches.contains(flag)) words.push_back(value);
  }
  return "; or pack the images into a file that is read as it is needed: " + command_line(words);
}

}  // namespace cputrain::training

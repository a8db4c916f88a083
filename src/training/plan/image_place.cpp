#include "training/plan/image_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "data/dataset.h"
#include "system/limits/process_limits.h"
#include "system/scratch/scratch_file.h"

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

/// Bytes that the tightest node has left.
std::optional<std::size_t> least_left(const TrainingMemory& memory) {
  std::optional<std::size_t> least;
  for (const NodeCapacity& capacity : memory.capacities) {
    if (!capacity.available) continue;
    const std::size_t needed = std::min(memory.needed(capacity), *capacity.available);
    least = std::min(least.value_or(*capacity.available), *capacity.available - needed);
  }
  return least;
}

/// As many images as fit into three quarters of what is left: files that are read need some, too.
std::size_t images_to_keep(const ImageForm& form, const data::CacheSize& cache,
                           const TrainingMemory& memory) {
  const auto left = least_left(memory);
  if (!left) return 0;
  const std::size_t beside = cache.images * cache.beside_pixels, room = *left / 4 * 3;
  return std::min(cache.images, (room - std::min(room, beside)) / form.kept_shape().size());
}

std::string why(const TrainingFlags& flags, const data::CacheSize& cache,
                const TrainingMemory& memory) {
  if (flags.cache != ImageCache::automatic) return fmt::format("--cache {}", word_of(flags.cache));
  return fmt::format("memory has no room for {} ({} are left beside the training)",
                     bytes_text(cache.bytes), bytes_text(least_left(memory).value_or(0)));
}

[[noreturn]] void no_disk(const data::CacheSize& cache, const std::string& reason,
                          const std::string& why_no_folder) {
  fail(ExitCode::usage,
       "no room for {} of decoded images on disk ({}{}); name a folder with room in TMPDIR, raise "
       "the limit where there is one, or use a smaller --image-size or --limit-train",
       bytes_text(cache.bytes), reason, why_no_folder);
}

/// "; host vm: /var/tmp has 1.2 GB free of 3.1 GB, ..." of the first rank that has no folder.
std::string why_no_folder(const Session& session, const data::CacheSize& cache, bool has_one) {
  const std::string mine = has_one ? "" : system::why_no_folder(cache.bytes, /*on_disk=*/true);
  return first_text(session,
                    mine.empty() ? "" : fmt::format("; host {}: {}", session.place().host, mine));
}

/// What TMPDIR has to do with the folder, as rank 0 sees it.
std::string tmpdir_words(const data::CacheSize& cache) {
  const std::string why = system::why_not_tmpdir(cache.bytes, /*on_disk=*/true);
  return why.empty() ? "TMPDIR names another folder" : "TMPDIR is passed over: " + why;
}

/// Whether they fit beside the program, on the rank where most is wanted and on that where least is
/// left. Half of what is left stays free: other programs may want some of the device, too.
bool fit_on_device(const Session& session, const MemoryBefore& before, std::size_t program,
                   bool asked) {
  const int rank = session.communicator->rank();
  std::array<std::size_t, 2> mine{before.kept.device, std::numeric_limits<std::size_t>::max()};
  for (const NodeCapacity& capacity : before.capacities) {
    if (std::ranges::find(capacity.ranks, rank) == capacity.ranks.end()) continue;
    if (capacity.backend_available) {
      mine[1] = *capacity.backend_available - std::min(*capacity.backend_available, program);
    }
  }
  auto [images, left] = mine;
  for (const auto& [their_images, their_left] : comm::gather_values(*session.communicator, mine)) {
    images = std::max(images, their_images);
    left = std::min(left, their_left);
  }
  if (images <= (asked ? left : left / 2)) {
    say_detail(session, "Images: those of training stay on the device, {}", bytes_text(images));
    return true;
  }
  if (asked) {
    fail(ExitCode::usage,
         "--data-on-device on: the training images need {} of the device's memory (each rank), {} "
         "are left beside the program; use --data-on-device auto, --limit-train or a smaller "
         "--image-size",
         bytes_text(images), bytes_text(left));
  }
  say_detail(session,
             "Images: sent to the device batch by batch ({} of them, {} are left beside the "
             "program, of which half stay free)",
             bytes_text(images), bytes_text(left));
  return false;
}

}  // namespace

void check_images_fit(const TrainingFlags& flags, const ImageForm& form,
                      const data::DataSource& source, const data::CacheSize& cache,
                      std::optional<std::size_t> available) {
  if (!available || cache.bytes <= *available) return;
  const auto choices = fitting_choices(flags, form, source, cache, *available);
  const std::string packed = pack_advice(flags, form);
  fail(ExitCode::usage,
       "{} at {}x{} need {} of memory, {} are available{} (they are decoded once and kept, so that "
       "later epochs read nothing); {}{}",
       with_commas(cache.images, "image"), form.shape.height, form.shape.width,
       bytes_text(cache.bytes), bytes_text(*available),
       system::group_limits_memory() ? system::kInControlGroup : "",
       choices.empty() ? "use a machine with more of it"
                       : "the largest that fit: " + join(choices, " or "),
       packed);
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

ImagePlace place_images(const Session& session, const TrainingFlags& flags, const ImageForm& form,
                        const data::CacheSize& cache, bool all_needed, TrainingMemory& memory) {
  const std::string reason = why(flags, cache, memory);
  ImagePlace place;
  std::string no_folder;
  if (flags.cache != ImageCache::none) {
    place.folders =
        session.communicator->gather(session.communicator->node_memory().folder_for(cache.bytes));
    if (std::ranges::all_of(place.folders, [](const auto& f) { return !f.empty(); })) {
      memory.shared.file = cache.bytes;
      say_detail(session, "Images: {}: they lie in a file in {} ({}), which goes with the ranks",
                 reason, place.folders.front(), tmpdir_words(cache));
      return place;
    }
    const auto rank = static_cast<std::size_t>(session.communicator->rank());
    no_folder = why_no_folder(session, cache, !place.folders[rank].empty());
    if (flags.cache == ImageCache::disk || all_needed) no_disk(cache, reason, no_folder);
    place.folders.clear();
  }
  const bool asked = flags.cache == ImageCache::none;
  const std::size_t keep = asked ? 0 : images_to_keep(form, cache, memory);
  place.keep = keep;
  const std::size_t left_out = (cache.images - keep) * form.kept_shape().size();
  memory.shared.cache = cache.bytes - std::min(cache.bytes, left_out);
  const std::string disk = asked ? "" : ", and no disk has it" + no_folder;
  const std::string kept =
      keep == 0 ? "none is kept, each is decoded whenever it is needed"
                : fmt::format("{} of {} are kept, the others are decoded in each epoch",
                              with_commas(keep), with_commas(cache.images));
  say_detail(session, "Images: {}{}; {}", reason, disk, kept);
  return place;
}

bool keep_images_on_device(const Session& session, const TrainingPlan& plan,
                           const MemoryBefore& before, std::size_t program) {
  const DataOnDevice choice = plan.spec.flags.data_on_device;
  if (!session.backend->feeder() || choice == DataOnDevice::off) return false;
  const bool asked = choice == DataOnDevice::on;
  if (plan.spec.flags.cache == ImageCache::none) {
    if (!asked) return false;
    fail(ExitCode::usage,
         "--data-on-device on with --cache none (what stays on a device is decoded once); leave "
         "one of them out");
  }
  if (data::only_moves(plan.spec.augment)) {
    return fit_on_device(session, before, program, asked);
  }
  const std::string augment = data::to_text(plan.spec.augment);
  if (asked) {
    fail(ExitCode::usage,
         "--data-on-device on with --augment {} (a device only moves pixels, as in flip, vflip, "
         "six and crop); use --data-on-device auto, or these changes alone",
         augment);
  }
  say_detail(session,
             "Images: changed on the host and sent to the device batch by batch (--augment {})",
             augment);
  return false;
}

}  // namespace cputrain::training

#include "training/memory/image_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::training {
namespace {

std::string size_words(std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); }

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
                     size_words(cache.bytes), size_words(least_left(memory).value_or(0)));
}

[[noreturn]] void no_disk(const data::CacheSize& cache, const std::string& reason) {
  fail(ExitCode::usage,
       fmt::format("no room for {} of decoded images on disk: no file system of TMPDIR, /var/tmp, "
                   "/tmp and here that is no memory itself has so much on every host ({}); name a "
                   "folder with room in TMPDIR, use a smaller --image-size or --limit-train",
                   size_words(cache.bytes), reason));
}

}  // namespace

bool may_leave_memory(const TrainingFlags& flags, const data::DataSource& source) {
  return flags.cache != ImageCache::memory && !source.dataset->ready_form();
}

bool leaves_memory(const TrainingFlags& flags) {
  return flags.cache == ImageCache::disk || flags.cache == ImageCache::none;
}

ImagePlace place_images(const Session& session, const TrainingFlags& flags, const ImageForm& form,
                        const data::CacheSize& cache, bool all_needed, TrainingMemory& memory) {
  const std::string reason = why(flags, cache, memory);
  ImagePlace place;
  if (flags.cache != ImageCache::none) {
    place.folders =
        session.communicator->gather(session.communicator->node_memory().folder_for(cache.bytes));
    if (std::ranges::all_of(place.folders, [](const auto& f) { return !f.empty(); })) {
      memory.shared.file = cache.bytes;
      say(session, fmt::format("Images: {}: they lie in a file in {} (TMPDIR names another "
                               "folder), which goes with the ranks",
                               reason, place.folders.front()));
      return place;
    }
    if (flags.cache == ImageCache::disk || all_needed) no_disk(cache, reason);
    place.folders.clear();
  }
  const bool asked = flags.cache == ImageCache::none;
  place.keep = asked ? 0 : images_to_keep(form, cache, memory);
  memory.shared.cache = cache.bytes - (cache.images - place.keep) * form.shape.size();
  say(session, fmt::format("Images: {}{}: {} of {} are kept, the others are decoded in each epoch",
                           reason, asked ? "" : ", and no disk has it", with_commas(place.keep),
                           with_commas(cache.images)));
  return place;
}

}  // namespace cputrain::training

#include "training/plan/image_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "system/scratch/scratch_file.h"

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

[[noreturn]] void no_disk(const data::CacheSize& cache, const std::string& reason,
                          const std::string& why_no_folder) {
  fail(ExitCode::usage,
       fmt::format("no room for {} of decoded images on disk ({}{}); name a folder with room in "
                   "TMPDIR, raise the limit where there is one, or use a smaller --image-size or "
                   "--limit-train",
                   size_words(cache.bytes), reason, why_no_folder));
}

/// "; host vm: /var/tmp has 1.2 GB free of 3.1 GB, ..." of the first rank that has no folder.
std::string why_no_folder(const Session& session, const data::CacheSize& cache, bool has_one) {
  const std::string mine = has_one ? "" : system::why_no_folder(cache.bytes, system::Storage::disk);
  return first_text(session,
                    mine.empty() ? "" : fmt::format("; host {}: {}", session.place().host, mine));
}

/// What TMPDIR has to do with the folder, as rank 0 sees it.
std::string tmpdir_words(const data::CacheSize& cache) {
  const std::string why = system::why_not_tmpdir(cache.bytes, system::Storage::disk);
  return why.empty() ? "TMPDIR names another folder" : "TMPDIR is passed over: " + why;
}

std::string in_bytes(std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); }

/// The most that images take on a device of any rank, and the least that is left there beside the
/// program.
struct DeviceRoom {
  std::size_t images, left;
};

DeviceRoom device_room(const Session& session, const MemoryBefore& before, std::size_t program) {
  const int rank = session.communicator->rank();
  std::size_t left = std::numeric_limits<std::size_t>::max();
  for (const NodeCapacity& capacity : before.capacities) {
    if (std::ranges::find(capacity.ranks, rank) == capacity.ranks.end()) continue;
    if (capacity.backend_available)
      left = *capacity.backend_available - std::min(*capacity.backend_available, program);
  }
  DeviceRoom all{before.kept.device, left};
  for (const DeviceRoom& one : comm::gather_values(*session.communicator, all)) {
    all = {std::max(all.images, one.images), std::min(all.left, one.left)};
  }
  return all;
}

/// Half of what is left stays free: other programs may want some of the device, too.
bool keep_in(const Session& session, const DeviceRoom& capacity, bool asked) {
  const bool fits = capacity.images <= (asked ? capacity.left : capacity.left / 2);
  if (fits) {
    say(session,
        fmt::format("Images: those of training stay on the device, {}", in_bytes(capacity.images)));
  } else if (!asked) {
    say(session, fmt::format("Images: sent to the device batch by batch ({} of them, {} are left "
                             "beside the program, of which half stay free)",
                             in_bytes(capacity.images), in_bytes(capacity.left)));
  } else {
    fail(
        ExitCode::usage,
        fmt::format("--data-on-device on: the training images need {} of the device's memory (each "
                    "rank), {} are left beside the program; use --data-on-device auto, "
                    "--limit-train or a smaller --image-size",
                    in_bytes(capacity.images), in_bytes(capacity.left)));
  }
  return fits;
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
  std::string no_folder;
  if (flags.cache != ImageCache::none) {
    place.folders =
        session.communicator->gather(session.communicator->node_memory().folder_for(cache.bytes));
    if (std::ranges::all_of(place.folders, [](const auto& f) { return !f.empty(); })) {
      memory.shared.file = cache.bytes;
      say(session,
          fmt::format("Images: {}: they lie in a file in {} ({}), which goes with the ranks",
                      reason, place.folders.front(), tmpdir_words(cache)));
      return place;
    }
    const auto rank = static_cast<std::size_t>(session.communicator->rank());
    no_folder = why_no_folder(session, cache, !place.folders[rank].empty());
    if (flags.cache == ImageCache::disk || all_needed) no_disk(cache, reason, no_folder);
    place.folders.clear();
  }
  const bool asked = flags.cache == ImageCache::none;
  place.keep = asked ? 0 : images_to_keep(form, cache, memory);
  const std::size_t left_out = (cache.images - place.keep) * form.kept_shape().size();
  memory.shared.cache = cache.bytes - std::min(cache.bytes, left_out);
  const std::string disk = asked ? "" : ", and no disk has it" + no_folder;
  const std::string kept =
      place.keep == 0 ? "none is kept, each is decoded whenever it is needed"
                      : fmt::format("{} of {} are kept, the others are decoded in each epoch",
                                    with_commas(place.keep), with_commas(cache.images));
  say(session, fmt::format("Images: {}{}; {}", reason, disk, kept));
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
    return keep_in(session, device_room(session, before, program), asked);
  }
  const std::string augment = data::to_text(plan.spec.augment);
  if (asked) {
    fail(ExitCode::usage,
         fmt::format("--data-on-device on with --augment {} (a device only moves pixels, as in "
                     "flip, vflip, six and crop); use --data-on-device auto, or these changes "
                     "alone",
                     augment));
  }
  say(session, fmt::format("Images: changed on the host and sent to the device batch by batch "
                           "(--augment {})",
                           augment));
  return false;
}

}  // namespace cputrain::training

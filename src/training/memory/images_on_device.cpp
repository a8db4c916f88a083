#include "training/memory/images_on_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::training {
namespace {

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

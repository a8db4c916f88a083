#include "training/plan/image_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"
#include "data/pixel_sample.h"
#include "training/plan/training_memory.h"

namespace cputrain::training {
namespace {

void say_bad_samples(const Session& session, const data::DecodedData& data) {
  constexpr std::size_t kNamed = 20;
  std::map<data::ReadStatus, int> by_reason;
  for (const data::BadSample& bad : data.bad) ++by_reason[bad.result.status];
  for (std::size_t i = 0; i < std::min(kNamed, data.bad.size()); ++i) {
    const data::BadSample& bad = data.bad[i];
    warn(session, "skipping {}: {} ({})", bad.name, word_of(bad.result.status), bad.result.detail);
  }
  if (data.bad.empty()) return;
  std::vector<std::string> counts;
  for (const auto& [status, count] : by_reason) {
    counts.push_back(fmt::format("{} {}", count, word_of(status)));
  }
  warn(session, "skipped {}: {}; `cputrain data check` lists them all",
       counted(data.bad.size(), "damaged file"), join(counts, ", "));
}

/// "2,000 images at 256x256 ready in 1.2 s (393.2 MB in memory, once per node)".
std::string ready_line(const Session& session, const data::DecodedData& data, Shape image,
                       const std::string& when) {
  const std::size_t count = data.train.size() + data.validation.size();
  const std::string place = data.train.stored     ? "in their file"
                            : data.folder.empty() ? "in memory"
                                                  : "in a file in " + data.folder;
  const std::string images =
      fmt::format("{} at {}x{}", with_commas(count, "image"), image.height, image.width);
  if (data.bytes == 0 && data.not_kept > 0) {
    return fmt::format("{} read {} (none is kept: each is decoded whenever it is needed)", images,
                       when);
  }
  const std::string others =
      data.not_kept > 0 ? fmt::format("; {} {} decoded whenever needed", with_commas(data.not_kept),
                                      data.not_kept == 1 ? "other is" : "others are")
                        : "";
  return fmt::format("{} ready {} ({} {}{}{})", images, when, bytes_text(data.bytes), place,
                     session.is_alone() ? "" : ", once per node", others);
}

void say_decoded(const Session& session, const data::DecodedData& data, Shape image) {
  say_detail(session, ready_line(session, data, image, fmt::format("in {:.1f} s", data.seconds)));
  say_bad_samples(session, data);
  if (!data.empty_classes.empty()) warn(session, data.empty_classes);
  for (const std::string& flaw : data.flaws) warn(session, flaw);
}

void check_same_pixels(const Session& session, const TrainingFlags& flags,
                       const data::DecodedData& data) {
  check_agreement(session, "the pixels of their images (other decoders?)",
                  data::pixel_sample(data, flags.seed.value_or(0)));
}

/// All images that can be read are there.
void check_decoded(const Session& session, const TrainingFlags& flags,
                   const data::DecodedData& data, Shape image) {
  say_decoded(session, data, image);
  Fnv1a left_out;  // a file that one node alone cannot read would shift its order of samples
  for (const data::BadSample& bad : data.bad) left_out.add(bad.name);
  check_agreement(session, "the images that they can read",
                  fmt::format("{} damaged ({:016x})", data.bad.size(), left_out.value()));
  check_same_pixels(session, flags, data);
}

/// A line for each host whose shared memory is too small for the decoded images.
void say_image_folders(const Session& session, const std::vector<std::string>& folders,
                       std::size_t bytes) {
  std::set<std::string> told;
  for (const placement::RankPlan& plan : session.plan.ranks) {
    const std::string& folder = folders[static_cast<std::size_t>(plan.rank)];
    if (folder.empty() || !told.insert(plan.host).second) continue;
    say_detail(session,
               "Decoded images lie in a file in {} on host {}: /dev/shm has no room for {} "
               "(containers: docker run --shm-size); they are read at the speed of memory as long "
               "as the host has enough of it",
               folder, plan.host, bytes_text(bytes));
  }
}

/// Images that the node has decoded since the last look show that its ranks get further.
data::OnProgress watched_progress(const Session& session, const std::string& verb) {
  return [&pulse = session.communicator->pulse(), line = progress_line(session, verb),
          before = std::size_t{0}](std::size_t done, std::size_t total) mutable {
    if (std::exchange(before, done) != done) pulse.moved();
    if (line) line(done, total);
  };
}

data::DecodeRequest decode_request(const Session& session, const ImageForm& form,
                                   const ImagePlace& place) {
  const auto rank = static_cast<std::size_t>(session.communicator->rank());
  return {.image = form.shape,
          .threads = session.io_threads,
          .progress = watched_progress(session, "Decoding"),
          .resize = form.resize,
          .keep = place.keep,
          .folder = place.folders.empty() ? "" : place.folders[rank],
          .larger = form.larger};
}

/// What steps that are quicker will wait for.
void say_decoding_speed(const Session& session, const data::DecodedData& data) {
  if (data.not_kept == 0) return;
  say_detail(session,
             "Decoding makes some {:.0f} images/s on a host with no steps beside it: steps share "
             "its cores, and quicker ones wait for images (input_wait)",
             data.images_per_second);
}

}  // namespace

std::vector<std::string> image_folders(const Session& session, std::size_t bytes,
                                       const std::string& remedy) {
  std::string folder, failure;
  try {
    folder = session.communicator->node_memory().folder_of_large(bytes);
  } catch (const Error& error) {
    failure = error.what();
  }
  failure = first_text(session, failure);
  if (!failure.empty()) fail(ExitCode::usage, failure + remedy);
  return session.communicator->gather(folder);
}

data::DecodedData decode_images(const Session& session, const TrainingFlags& flags,
                                const data::DataSource& source, const ImageForm& form,
                                const ImagePlace& place) {
  reached(session, comm::Phase::decode);
  check_agreement(session, "the data that they see",
                  fmt::format("{:016x}, {} + {} samples", source.dataset->fingerprint(),
                              source.train.size(), source.validation.size()));
  const data::DataPipeline& pipeline = session.services.data;
  data::DecodeRequest request = decode_request(session, form, place);
  if (place.decoding == Decoding::meanwhile) {
    request.meanwhile = true;
    request.first = data::pixel_samples(source, flags.seed.value_or(0));
  }
  const data::CacheSize cache = pipeline.cache_size(source, form);
  if (place.in_memory()) {
    check_images_fit(flags, form, source, cache, least_available(measure_capacities(session)));
    say_image_folders(session, image_folders(session, cache.bytes), cache.bytes);
  }
  comm::Communicator& communicator = *session.communicator;
  data::DecodedData data = pipeline.decode(source, request, communicator.node_memory());
  // Where one node has found damage, the others are to know of theirs, too.
  const bool some_whole = !first_text(session, data.train.judged ? "whole" : "").empty();
  if (!data.train.judged && some_whole)
    return finish_decoding(session, flags, source, form, place, data);
  if (some_whole) {
    check_decoded(session, flags, data, form.shape);
  } else {
    check_same_pixels(session, flags, data);
    say_detail(session, "{} at {}x{}, decoded while the first epoch trains",
               with_commas(data.train.size() + data.validation.size(), "image"), form.shape.height,
               form.shape.width);
  }
  say_decoding_speed(session, data);
  return data;
}

data::DecodedData finish_decoding(const Session& session, const TrainingFlags& flags,
                                  const data::DataSource& source, const ImageForm& form,
                                  const ImagePlace& place, const data::DecodedData& begun) {
  reached(session, comm::Phase::decode);
  comm::Communicator& communicator = *session.communicator;
  data::DecodedData data = session.services.data.finish(
      source, begun, decode_request(session, form, place), communicator.node_memory());
  check_decoded(session, flags, data, form.shape);
  return data;
}

void say_all_decoded(const Session& session, const data::DecodedData& data, const ImageForm& form,
                     double seconds) {
  if (!session.leads()) return;
  say_detail(session, ready_line(session, data, form.shape,
                                 fmt::format("after {:.1f} s of training", seconds)));
  for (const std::string& flaw : data.filling->flaws()) warn(session, flaw);
}

}  // namespace cputrain::training

#include "training/session/decode_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"
#include "data/pixel_sample.h"
#include "training/memory/training_memory.h"

namespace cputrain::training {
namespace {

void say_bad_samples(const Session& session, const data::DecodedData& data) {
  constexpr std::size_t kNamed = 20;
  std::map<data::ReadStatus, int> by_reason;
  for (const data::BadSample& bad : data.bad) ++by_reason[bad.result.status];
  for (std::size_t i = 0; i < std::min(kNamed, data.bad.size()); ++i) {
    const data::BadSample& bad = data.bad[i];
    warn(session, fmt::format("skipping {}: {} ({})", bad.name,
                              data::status_name(bad.result.status), bad.result.detail));
  }
  if (data.bad.empty()) return;
  std::vector<std::string> counts;
  for (const auto& [status, count] : by_reason) {
    counts.push_back(fmt::format("{} {}", count, data::status_name(status)));
  }
  warn(session, fmt::format("skipped {} damaged file{}: {}; `cputrain data check` lists them all",
                            data.bad.size(), data.bad.size() == 1 ? "" : "s", join(counts, ", ")));
}

void say_decoded(const Session& session, const data::DecodedData& data, Shape image) {
  const std::size_t count = data.train.size() + data.validation.size();
  say(session, fmt::format("{} images at {}x{} ready in {:.1f} s ({} {}, once per node)",
                           with_commas(count), image.height, image.width, data.seconds,
                           bytes_text(static_cast<double>(data.bytes)),
                           data.train.stored ? "in their file" : "in memory"));
  say_bad_samples(session, data);
  if (!data.empty_classes.empty()) warn(session, data.empty_classes);
  for (const std::string& flaw : data.flaws) warn(session, flaw);
}

/// A line for each host whose shared memory is too small for the decoded images.
void say_image_folders(const Session& session, const std::vector<std::string>& folders,
                       std::size_t bytes) {
  std::set<std::string> told;
  for (const placement::RankPlan& plan : session.plan.ranks) {
    const std::string& folder = folders[static_cast<std::size_t>(plan.rank)];
    if (folder.empty() || !told.insert(plan.host).second) continue;
    say(session,
        fmt::format("Decoded images lie in a file in {} on host {}: /dev/shm has no room for {} "
                    "(containers: docker run --shm-size); they are read at the speed of memory as "
                    "long as the host has enough of it",
                    folder, plan.host, bytes_text(static_cast<double>(bytes))));
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
                                const data::DataSource& source, const ImageForm& form) {
  reached(session, comm::Phase::decode);
  check_agreement(session, "the data that they see",
                  fmt::format("{:016x}, {} + {} samples", source.dataset->fingerprint(),
                              source.train.size(), source.validation.size()));
  const data::DataPipeline& pipeline = session.services.data;
  const data::DecodeRequest request{form.shape, session.io_threads,
                                    watched_progress(session, "Decoding"), form.resize};
  const data::CacheSize cache = pipeline.cache_size(source, form.shape, form.resize);
  check_images_fit(flags, form, source, cache, least_available(measure_capacities(session)));
  say_image_folders(session, image_folders(session, cache.bytes), cache.bytes);
  comm::Communicator& communicator = *session.communicator;
  data::DecodedData data =
      pipeline.decode(source, request, communicator.node_memory(), communicator.node_barrier());
  say_decoded(session, data, form.shape);
  Fnv1a left_out;  // a file that one node alone cannot read would shift its order of samples
  for (const data::BadSample& bad : data.bad) left_out.add(bad.name);
  check_agreement(session, "the images that they can read",
                  fmt::format("{} damaged ({:016x})", data.bad.size(), left_out.value()));
  check_agreement(session, "the pixels of their images (other decoders?)",
                  data::pixel_sample(data, flags.seed.value_or(0)));
  return data;
}

}  // namespace cputrain::training

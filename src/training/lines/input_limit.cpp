#include "training/lines/input_limit.h"

#include <fmt/format.h>

#include "core/text.h"

namespace cputrain::training {
namespace {

constexpr double kWorthALine = 0.02, kMostShare = 0.999;

/// Why there are no more of them, and what to try.
std::string remedy(const ImageWait& wait) {
  const std::string bytes = bytes_text(static_cast<double>(wait.bytes));
  switch (wait.source) {
    case ImageSource::decoders:
      return fmt::format(
          "they are decoded whenever they are needed, some {:.0f} a second with no steps beside "
          "it. Try {}, more cores, or a packed file (data pack)",
          wait.decoded,
          wait.asked ? "--cache auto, which keeps " + bytes + " in memory or on disk"
                     : "a TMPDIR with room for " + bytes);
    case ImageSource::disk:
      return fmt::format(
          "the file in {} gave {:.0f}. Try a TMPDIR on a quicker disk, or more memory{}",
          wait.folder, wait.got,
          wait.decoded > wait.wanted()
              ? fmt::format("; or --cache none, which decodes some {:.0f} a second with no steps "
                            "beside it",
                            wait.decoded)
              : "");
    case ImageSource::packed_file:
      return fmt::format("the packed file gave {:.0f}. Try a quicker disk, or more memory",
                         wait.got);
  }
  return "";
}

}  // namespace

std::string input_limit(const ImageWait& wait) {
  if (wait.share < kWorthALine || wait.share > kMostShare) return "";
  return fmt::format(
      "Limit: images. Steps waited {:.0f} % of the last epoch for them, and would take {:.0f} a "
      "second; {}",
      100 * wait.share, wait.wanted(), remedy(wait));
}

std::string input_limit(const Training& training, const loop::TrainResult& result) {
  const data::DecodedData& data = *training.data();
  const bool packed = data.train.stored != nullptr;
  const bool in_memory = !packed && data.folder.empty() && data.not_kept == 0;
  if (in_memory || training.compiled().images_on_device) return "";
  if (!result.last || result.last->seconds <= 0) return "";
  const loop::EpochRecord& last = *result.last;
  const Session& session = training.session();
  const TrainingSpec& spec = training.plan().spec;
  return input_limit(
      {.share = last.budget.input_wait / last.seconds,
       .got = last.train.images / last.seconds,
       .decoded = data.images_per_second * session.nodes.nodes(),
       .source = packed                ? ImageSource::packed_file
                 : data.folder.empty() ? ImageSource::decoders
                                       : ImageSource::disk,
       .folder = data.folder,
       .asked = spec.flags.cache == ImageCache::none,
       .bytes = session.services.data.cache_size(training.source(), image_form(spec)).bytes});
}

}  // namespace cputrain::training

#include "datasets/loader/image_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "datasets/folders/empty_classes.h"
#include "datasets/loader/flaw_tally.h"
#include "datasets/loader/views.h"
#include "datasets/loader/work_arena.h"
#include "system/clock.h"

namespace cputrain::datasets {
namespace {

/// How reading a sample went, as all ranks of the node see it.
struct SharedResult {
  std::uint8_t status;
  std::uint8_t warned;
  data::Flaw flaw;
  std::array<char, 93> detail;  // cut to fit, ends in 0
};
static_assert(sizeof(SharedResult) == 96);

constexpr std::size_t kHeaderBytes = 64;  // holds the number of samples that are done

std::size_t results_bytes(std::size_t samples) {
  return (samples * sizeof(SharedResult) + 63) / 64 * 64;
}

/// The block as all ranks see it: a counter, a result a sample, the pixels.
class CacheView {
 public:
  CacheView(const system::SharedBlock& block, std::size_t samples, Shape image)
      : base_(reinterpret_cast<std::uint8_t*>(block.bytes().data())),
        pixels_(base_ + kHeaderBytes + results_bytes(samples)),
        image_bytes_(image.size()) {}

  std::atomic_ref<std::uint64_t> done() const {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(base_));
  }
  SharedResult& result(std::size_t position) const {
    return reinterpret_cast<SharedResult*>(base_ + kHeaderBytes)[position];
  }
  std::span<std::uint8_t> pixels(std::size_t position) const {
    return {pixels_ + position * image_bytes_, image_bytes_};
  }

 private:
  std::uint8_t* base_;
  std::uint8_t* pixels_;
  std::size_t image_bytes_;
};

void store(const data::ReadResult& result, data::Flaw flaw, SharedResult& shared) {
  shared.status = static_cast<std::uint8_t>(result.status);
  shared.warned = result.warned ? 1 : 0;
  shared.flaw = flaw;
  const std::size_t length = std::min(result.detail.size(), shared.detail.size() - 1);
  std::memcpy(shared.detail.data(), result.detail.data(), length);
  shared.detail[length] = 0;
}

data::ReadResult load(const SharedResult& shared) {
  return {static_cast<data::ReadStatus>(shared.status), shared.detail.data(), shared.warned != 0};
}

/// What the two parts show, every image once, ascending.
std::vector<std::uint32_t> images_of(const data::DataSource& source) {
  std::vector<std::uint32_t> samples = source.train;
  samples.insert(samples.end(), source.validation.begin(), source.validation.end());
  return datasets::images_of(*source.dataset, samples);
}

/// Images that lie ready in a file are only looked at: a damaged one is found before the first
/// step, and its pages are in memory then.
void read_slice(const data::DataSource& source, std::span<const std::uint32_t> images, Range mine,
                const data::DecodeRequest& request, const CacheView& view) {
  const data::Dataset& data = *source.dataset;
  const bool ready = data.ready_form().has_value();
  WorkArena arena(request.threads);
  const auto read_one = [&](std::size_t i) {
    const std::size_t position = mine.begin + i;
    std::vector<std::uint8_t> looked_at(ready ? request.image.size() : 0);
    const std::span<std::uint8_t> pixels = ready ? std::span(looked_at) : view.pixels(position);
    const data::ReadResult result =
        data.read(images[position], request.image, request.resize, pixels);
    store(result, data::flaw_of(result, pixels, source.exif), view.result(position));
    view.done().fetch_add(1, std::memory_order_acq_rel);
  };
  arena.for_each(mine.size(), read_one, [&] {
    if (request.progress) {
      request.progress(view.done().load(std::memory_order_acquire), images.size());
    }
  });
}

/// Sorts the results in the shared memory into good and bad; the same on every rank.
class Collector {
 public:
  Collector(const data::Dataset& data, std::span<const std::uint32_t> images, const CacheView& view,
            data::DecodedData& decoded)
      : data_(data),
        images_(images),
        view_(view),
        decoded_(decoded),
        told_(images.size()),
        flaws_(data) {}

  void collect(std::span<const std::uint32_t> samples, data::ImageSet& set) {
    for (const std::uint32_t sample : samples) {
      const data::View shown = data_.view(sample);
      const auto found = std::ranges::lower_bound(images_, shown.image);
      const auto position = static_cast<std::size_t>(found - images_.begin());
      const data::ReadResult result = load(view_.result(position));
      tell(position, result);
      if (result.status != data::ReadStatus::ok) continue;
      if (!set.stored) set.pixels.push_back(view_.pixels(position).data());
      set.labels.push_back(data_.label(sample));
      set.samples.push_back(sample);
      set.turns.push_back(shown.turn);
    }
    const auto turned = [](data::Turn turn) { return turn != data::Turn::none; };
    if (std::ranges::none_of(set.turns, turned)) set.turns.clear();
  }

  std::vector<std::string> warnings_of_flaws() const { return flaws_.warnings(); }

 private:
  /// Once for each image, however many samples show it.
  void tell(std::size_t position, const data::ReadResult& result) {
    if (told_[position]) return;
    told_[position] = true;
    decoded_.warnings += result.warned ? 1 : 0;
    if (result.status != data::ReadStatus::ok) {
      decoded_.bad.push_back({data_.name(images_[position]), result});
    } else {
      flaws_.add(images_[position], view_.result(position).flaw);
    }
  }

  const data::Dataset& data_;
  std::span<const std::uint32_t> images_;
  const CacheView& view_;
  data::DecodedData& decoded_;
  std::vector<bool> told_;
  FlawTally flaws_;
};

std::string first_bad(const data::DecodedData& decoded) {
  const data::BadSample& bad = decoded.bad.front();
  return fmt::format("'{}': {}, {}", bad.name, data::status_name(bad.result.status),
                     bad.result.detail);
}

/// Training cannot go on when damage took a whole part, or a whole class that must be learnt.
void check_what_is_left(const data::DataSource& source, data::DecodedData& decoded) {
  const auto check_part = [&](const char* part, std::size_t listed, std::size_t left) {
    if (listed == 0 || left > 0) return;
    fail(ExitCode::data, fmt::format("none of the {} {} images can be read (first: {}); look with "
                                     "'cputrain data check'",
                                     listed, part, first_bad(decoded)));
  };
  check_part("training", source.train.size(), decoded.train.size());
  check_part("validation", source.validation.size(), decoded.validation.size());
  const std::set<int> left(decoded.train.labels.begin(), decoded.train.labels.end());
  decoded.empty_classes = check_empty_classes(
      lost_classes(*source.dataset, source.train, left, decoded.bad), source.allow_empty_classes);
}

void check_form(const data::ReadyForm& form, Shape image, data::Resize resize, data::Exif exif) {
  const bool turned_alike = form.exif.value_or(exif) == exif;
  if (form.image == image && form.resize == resize && turned_alike) return;
  const auto text = [&](Shape shape, data::Resize way, data::Exif turned) {
    return fmt::format("{}x{}, {}{}", shape.height, shape.width, word_of(way),
                       turned_alike                  ? ""
                       : turned == data::Exif::apply ? ", turned by EXIF"
                                                     : ", not turned by EXIF");
  };
  const std::string flag = turned_alike ? "" : fmt::format(" --exif {}", word_of(*form.exif));
  fail(ExitCode::usage,
       fmt::format("the images of --data are ready at {}, not at {} (a packed file holds one "
                   "form); use --image-size {} --resize {}{}, or pack the data again",
                   text(form.image, form.resize, form.exif.value_or(exif)),
                   text(image, resize, exif), form.image.height, word_of(form.resize), flag));
}

}  // namespace

std::size_t cache_bytes(std::size_t samples, Shape image) {
  return kHeaderBytes + results_bytes(samples) + samples * image.size();
}

data::CacheSize size_of_cache(const data::DataSource& source, Shape image, data::Resize resize) {
  const std::size_t images = images_of(source).size();
  const auto ready = source.dataset->ready_form();
  if (ready) check_form(*ready, image, resize, source.exif);
  const Shape kept = ready ? Shape{0, 0, 0} : image;  // ready images share only their results
  return {cache_bytes(images, kept), images, sizeof(SharedResult)};
}

data::DecodedData decode_into_cache(const data::DataSource& source,
                                    const data::DecodeRequest& request, comm::NodeMemory& memory,
                                    comm::NodeBarrier& barrier) {
  const system::Stopwatch watch;
  const std::vector<std::uint32_t> images = images_of(source);
  const auto ready = source.dataset->ready_form();
  const Shape stored = ready ? Shape{0, 0, 0} : request.image;
  const std::size_t bytes = size_of_cache(source, request.image, request.resize).bytes;
  barrier.wait();  // all ranks have looked before one takes memory
  data::DecodedData decoded;
  decoded.bytes = images.size() * request.image.size();
  decoded.memory = memory.allocate_large(bytes);
  const CacheView view(*decoded.memory, images.size(), stored);
  const Range mine = data::share(images.size(), memory.local_rank(), memory.local_size());
  read_slice(source, images, mine, request, view);
  barrier.wait();
  decoded.train.image = decoded.validation.image = request.image;
  decoded.train.stored = decoded.validation.stored = ready ? source.dataset.get() : nullptr;
  Collector collector(*source.dataset, images, view, decoded);
  collector.collect(source.train, decoded.train);
  collector.collect(source.validation, decoded.validation);
  check_what_is_left(source, decoded);
  decoded.flaws = collector.warnings_of_flaws();
  decoded.seconds = watch.seconds();
  return decoded;
}

}  // namespace cputrain::datasets

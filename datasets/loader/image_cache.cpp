#include "datasets/loader/image_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "datasets/folders/empty_classes.h"
#include "datasets/loader/cache_view.h"
#include "datasets/loader/decoding_cache.h"
#include "datasets/loader/flaw_tally.h"
#include "datasets/loader/views.h"
#include "datasets/loader/work_arena.h"
#include "system/clock.h"

namespace cputrain::datasets {
namespace {

/// What the two parts show, every image once, ascending.
std::vector<std::uint32_t> images_of(const data::DataSource& source) {
  std::vector<std::uint32_t> samples = source.train;
  samples.insert(samples.end(), source.validation.begin(), source.validation.end());
  return datasets::images_of(*source.dataset, samples);
}

/// Reads those of `positions` that nobody has read. Images that lie ready in a file are only looked
/// at: a damaged one is found before the first step, and its pages are in memory then.
void read_missing(const data::DataSource& source, std::span<const std::uint32_t> images,
                  std::span<const std::size_t> positions, const data::DecodeRequest& request,
                  const CacheView& view) {
  WorkArena arena(request.threads);
  const auto read_one = [&](std::size_t i) {
    const std::size_t position = positions[i];
    if (!view.claim(position)) return;
    read_claimed(*source.dataset, images[position], position, request.image, request.resize,
                 source.exif, view);
  };
  arena.for_each(positions.size(), read_one, [&] {
    if (request.progress) request.progress(view.count_read(), images.size());
  });
}

std::size_t position_of(std::span<const std::uint32_t> images, std::uint32_t image) {
  return static_cast<std::size_t>(std::ranges::lower_bound(images, image) - images.begin());
}

std::vector<std::size_t> positions_of(std::span<const std::uint32_t> images,
                                      std::span<const std::uint32_t> some) {
  std::vector<std::size_t> positions;
  for (const std::uint32_t image : some) positions.push_back(position_of(images, image));
  return positions;
}

std::vector<std::size_t> positions_of(Range range) {
  std::vector<std::size_t> positions(range.size());
  std::iota(positions.begin(), positions.end(), range.begin);
  return positions;
}

/// Sorts the results in the shared memory into good and bad; the same on every rank. What is not
/// read yet counts as good.
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
      const std::size_t position = position_of(images_, shown.image);
      if (!set.filling) {
        const data::ReadResult result = view_.result(position);
        tell(position, result);
        if (result.status != data::ReadStatus::ok) continue;
      }
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
      flaws_.add(images_[position], view_.flaw(position));
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

/// What the parts have: good images, or all that are listed where they are still coming.
void collect(const data::DataSource& source, const data::DecodeRequest& request,
             std::span<const std::uint32_t> images, const CacheView& view,
             data::DecodedData& decoded) {
  const bool ready = source.dataset->ready_form().has_value();
  decoded.bytes = images.size() * request.image.size();
  for (data::ImageSet* set : {&decoded.train, &decoded.validation}) {
    set->image = request.image;
    set->stored = ready ? source.dataset.get() : nullptr;
    set->filling = decoded.filling.get();
  }
  Collector collector(*source.dataset, images, view, decoded);
  collector.collect(source.train, decoded.train);
  collector.collect(source.validation, decoded.validation);
  if (decoded.filling) return;
  check_what_is_left(source, decoded);
  decoded.flaws = collector.warnings_of_flaws();
}

/// This rank's part of what its node is to read.
std::vector<std::size_t> part_of(std::vector<std::size_t> positions,
                                 const comm::NodeMemory& memory) {
  const Range part = data::share(positions.size(), memory.local_rank(), memory.local_size());
  const auto begin = positions.begin();
  return {begin + static_cast<std::ptrdiff_t>(part.begin),
          begin + static_cast<std::ptrdiff_t>(part.end)};
}

}  // namespace

std::size_t cache_bytes(std::size_t samples, Shape image) {
  return CacheView::bytes(samples, image);
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
  std::vector<std::uint32_t> images = images_of(source);
  const bool ready = source.dataset->ready_form().has_value();
  const std::size_t bytes = size_of_cache(source, request.image, request.resize).bytes;
  barrier.wait();  // all ranks have looked before one takes memory
  data::DecodedData decoded;
  decoded.memory = memory.allocate_large(bytes);
  const CacheView view(*decoded.memory, images.size(), ready ? Shape{0, 0, 0} : request.image);
  const Range mine = data::share(images.size(), memory.local_rank(), memory.local_size());
  const std::vector<std::uint32_t> first = images_of(*source.dataset, request.first);
  bool meanwhile = request.meanwhile && !ready && first.size() < images.size();
  if (meanwhile) {
    read_missing(source, images, part_of(positions_of(images, first), memory), request, view);
    barrier.wait();
    meanwhile = !view.damaged();
    barrier.wait();  // all have seen it before one goes on
  }
  if (!meanwhile) {
    read_missing(source, images, positions_of(mine), request, view);
    barrier.wait();
  }
  if (meanwhile) decoded.filling = fill_meanwhile(source, request, images, mine, view);
  collect(source, request, images, view, decoded);
  decoded.seconds = watch.seconds();
  return decoded;
}

data::DecodedData finish_cache(const data::DataSource& source, const data::DecodedData& begun,
                               const data::DecodeRequest& request, comm::NodeMemory& memory,
                               comm::NodeBarrier& barrier) {
  const system::Stopwatch watch;
  const std::vector<std::uint32_t> images = images_of(source);
  const CacheView view(*begun.memory, images.size(), request.image);
  begun.filling->stop();
  barrier.wait();  // no image is claimed now
  const Range mine = data::share(images.size(), memory.local_rank(), memory.local_size());
  read_missing(source, images, positions_of(mine), request, view);
  barrier.wait();
  data::DecodedData decoded;
  decoded.memory = begun.memory;
  collect(source, request, images, view, decoded);
  decoded.seconds = watch.seconds();
  return decoded;
}

}  // namespace cputrain::datasets

#include "datasets/loader/image_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/casts.h"
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

/// What the two parts show, every image once, ascending; those of training first where they are
/// kept larger.
struct ImageList {
  std::vector<std::uint32_t> images;
  CachedForms forms;
};

ImageList listed_images(const data::DataSource& source, const data::ImageForm& form) {
  const data::Dataset& data = *source.dataset;
  if (form.larger == 1) {
    std::vector<std::uint32_t> samples = source.train;
    samples.insert(samples.end(), source.validation.begin(), source.validation.end());
    return {images_of(data, samples), {form}};
  }
  std::vector<std::uint32_t> images = images_of(data, source.train);
  const std::vector<std::uint32_t> others = images_of(data, source.validation);
  const std::size_t larger = images.size();
  std::vector<std::uint32_t> both;
  std::ranges::set_intersection(images, others, std::back_inserter(both));
  if (!both.empty()) {
    fail(ExitCode::usage,
         fmt::format("--augment crop: '{}' is in training and in validation (it would be kept in "
                     "two sizes); leave out crop, or --expand six-leaky",
                     data.name(both.front())));
  }
  images.insert(images.end(), others.begin(), others.end());
  return {std::move(images), {form, larger}};
}

data::ImageForm form_of(const data::DecodeRequest& request) {
  return {request.image, request.resize, request.larger};
}

/// Reads those of `positions` that nobody has read. What is not kept is only looked at: a damaged
/// image is found before the first step, and pages of a file are in memory then.
void read_missing(const CacheReader& reader, std::span<const std::size_t> positions,
                  const data::DecodeRequest& request) {
  WorkArena arena(request.threads);
  const auto read_one = [&](std::size_t i) {
    const std::size_t position = positions[i];
    if (!reader.view.claim(position)) return;
    std::vector<std::uint8_t> space(reader.view.keeps(position) ? 0 : reader.bytes_of(position));
    reader.read_claimed(position, space);
  };
  arena.for_each(positions.size(), read_one, [&] {
    if (request.progress) request.progress(reader.view.count_read(), reader.images.size());
  });
}

/// This rank's part of what its node is to read.
std::vector<std::size_t> part_of(const std::vector<std::size_t>& positions,
                                 const comm::NodeMemory& memory) {
  const Range part = data::share(positions.size(), memory.local_rank(), memory.local_size());
  const auto begin = positions.begin();
  return {begin + static_cast<std::ptrdiff_t>(part.begin),
          begin + static_cast<std::ptrdiff_t>(part.end)};
}

std::vector<std::size_t> all_positions(std::size_t images) {
  std::vector<std::size_t> positions(images);
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  return positions;
}

/// Sorts the results in the shared memory into good and bad; the same on every rank. Of a set that
/// is not judged, all count as good.
class Collector {
 public:
  Collector(const CacheReader& reader, data::DecodedData& decoded)
      : data_(reader.data),
        reader_(reader),
        view_(reader.view),
        decoded_(decoded),
        told_(reader.images.size()),
        flaws_(reader.data) {}

  void collect(std::span<const std::uint32_t> samples, data::ImageSet& set) {
    for (const std::uint32_t sample : samples) {
      const data::View shown = data_.view(sample);
      const std::size_t position = reader_.position_of(shown.image);
      if (set.judged) {
        const data::ReadResult result = view_.result(position);
        tell(position, result);
        if (result.status != data::ReadStatus::ok) continue;
      }
      if (!set.stored) set.pixels.push_back(place_of(position));
      set.labels.push_back(data_.label(sample));
      set.samples.push_back(sample);
      set.turns.push_back(shown.turn);
    }
    const auto turned = [](data::Turn turn) { return turn != data::Turn::none; };
    if (std::ranges::none_of(set.turns, turned)) set.turns.clear();
  }

  std::vector<std::string> warnings_of_flaws() const { return flaws_.warnings(); }

 private:
  const std::uint8_t* place_of(std::size_t position) const {
    return view_.keeps(position) ? view_.pixels(position).data() : nullptr;
  }

  /// Once for each image, however many samples show it.
  void tell(std::size_t position, const data::ReadResult& result) {
    if (told_[position]) return;
    told_[position] = true;
    decoded_.warnings += result.warned ? 1 : 0;
    if (result.status != data::ReadStatus::ok) {
      decoded_.bad.push_back({data_.name(reader_.images[position]), result});
    } else {
      flaws_.add(reader_.images[position], view_.flaw(position));
    }
  }

  const data::Dataset& data_;
  const CacheReader& reader_;
  const CacheView& view_;
  data::DecodedData& decoded_;
  std::vector<bool> told_;
  FlawTally flaws_;
};

std::string first_bad(const data::DecodedData& decoded) {
  const data::BadSample& bad = decoded.bad.front();
  return fmt::format("'{}': {}, {}", bad.name, word_of(bad.result.status), bad.result.detail);
}

/// Training cannot go on when damage took a whole part, or a whole class that must be learnt.
void check_what_is_left(const data::DataSource& source, data::DecodedData& decoded) {
  const auto check_part = [&](const char* part, std::size_t listed, std::size_t left) {
    if (listed == 0 || left > 0) return;
    fail(ExitCode::data,
         fmt::format("of {} none can be read (first: {}); look with "
                     "'cputrain data check'",
                     counted(listed, std::string(part) + " image"), first_bad(decoded)));
  };
  check_part("training", source.train.size(), decoded.train.size());
  check_part("validation", source.validation.size(), decoded.validation.size());
  const std::set<int> left(decoded.train.labels.begin(), decoded.train.labels.end());
  decoded.empty_classes = check_empty_classes(
      lost_classes(*source.dataset, source.train, left, decoded.bad), source.allow_empty_classes);
}

void check_form(const data::ReadyForm& form, const data::ImageForm& wanted, data::Exif exif) {
  if (wanted.larger > 1) {
    fail(ExitCode::usage,
         fmt::format("--augment crop cuts from images of {}x{}, and those of --data are ready at "
                     "{}x{} (a packed file holds one form); leave out crop, or train on the data "
                     "that was packed",
                     wanted.kept_shape().height, wanted.kept_shape().width, form.image.height,
                     form.image.width));
  }
  const bool turned_alike = form.exif.value_or(exif) == exif;
  if (form.image == wanted.shape && form.resize == wanted.resize && turned_alike) return;
  const auto text = [&](Shape shape, const data::Resizing& way, data::Exif turned) {
    return fmt::format("{}x{}, {}{}", shape.height, shape.width, to_text(way),
                       turned_alike                  ? ""
                       : turned == data::Exif::apply ? ", turned by EXIF"
                                                     : ", not turned by EXIF");
  };
  const std::string fit = form.resize.fit == data::Fit{} && wanted.resize.fit == data::Fit{}
                              ? ""
                              : " --fit " + to_text(form.resize.fit);
  const std::string flag = turned_alike ? "" : fmt::format(" --exif {}", word_of(*form.exif));
  fail(ExitCode::usage,
       fmt::format("the images of --data are ready at {}, not at {} (a packed file holds one "
                   "form); train with --image-size {} --resize {}{}{}, or pack the data again in "
                   "the other form",
                   text(form.image, form.resize, form.exif.value_or(exif)),
                   text(wanted.shape, wanted.resize, exif), form.image.height,
                   word_of(form.resize.way), fit, flag));
}

/// What the parts have: good images, or all that are listed where they are not `judged` yet.
void collect(const data::DataSource& source, const CacheReader& reader, bool judged,
             data::DecodedData& decoded) {
  const bool ready = source.dataset->ready_form().has_value();
  for (data::ImageSet* set : {&decoded.train, &decoded.validation}) {
    set->image = reader.forms.form.shape;
    set->stored = ready ? source.dataset.get() : nullptr;
    set->filling = decoded.filling.get();
    set->on_disk = !decoded.folder.empty();
    set->judged = judged;
  }
  decoded.train.larger = reader.forms.form.larger;
  Collector collector(reader, decoded);
  collector.collect(source.train, decoded.train);
  collector.collect(source.validation, decoded.validation);
  if (!judged) return;
  check_what_is_left(source, decoded);
  decoded.flaws = collector.warnings_of_flaws();
}

/// Images that the memory keeps: none of those that lie ready in a file.
std::size_t kept_images(const data::DataSource& source, const data::DecodeRequest& request,
                        std::size_t images) {
  return source.dataset->ready_form() ? 0 : std::min(request.keep.value_or(images), images);
}

CacheReader reader_of(const data::DataSource& source, const data::DecodeRequest& request,
                      const ImageList& listed, const system::SharedBlock& memory) {
  const std::size_t images = listed.images.size();
  return {*source.dataset,
          listed.images,
          listed.forms,
          source.exif,
          {memory, images, kept_images(source, request, images), listed.forms}};
}

/// All images are read, or `meanwhile` is not over: gives them to the caller. `mine` is this rank's
/// share of them.
data::DecodedData give_out(const data::DataSource& source, const data::DecodeRequest& request,
                           const CacheReader& reader, bool meanwhile, Range mine,
                           std::shared_ptr<system::SharedBlock> memory) {
  data::DecodedData decoded;
  decoded.memory = std::move(memory);
  decoded.folder = request.folder;
  const bool ready = source.dataset->ready_form().has_value();
  const std::size_t all = reader.images.size();
  const std::size_t kept = ready ? all : kept_images(source, request, all);
  decoded.bytes = reader.forms.before(kept);
  decoded.not_kept = all - kept;
  if (meanwhile || decoded.not_kept > 0) {
    const int threads = meanwhile ? std::max(request.threads, 1) : 0;
    decoded.filling = make_decoding_cache(reader, mine, threads);
  }
  collect(source, reader, !meanwhile, decoded);
  return decoded;
}

}  // namespace

std::size_t cache_bytes(std::size_t samples, Shape image) {
  return CacheView::bytes(samples, samples, {{image}});
}

data::CacheSize size_of_cache(const data::DataSource& source, const data::ImageForm& form) {
  const auto ready = source.dataset->ready_form();
  if (ready) check_form(*ready, form, source.exif);
  const ImageList listed = listed_images(source, form);
  const std::size_t images = listed.images.size();
  const std::size_t kept = ready ? 0 : images;  // ready images share only their results
  return {CacheView::bytes(images, kept, listed.forms), images, sizeof(SharedResult)};
}

data::DecodedData decode_into_cache(const data::DataSource& source,
                                    const data::DecodeRequest& request, comm::NodeMemory& memory) {
  const system::Stopwatch watch;
  size_of_cache(source, form_of(request));  // refuses another form
  const ImageList listed = listed_images(source, form_of(request));
  const std::vector<std::uint32_t>& images = listed.images;
  const std::size_t kept = kept_images(source, request, images.size());
  const std::size_t bytes = CacheView::bytes(images.size(), kept, listed.forms);
  memory.barrier();  // all ranks have looked before one takes memory
  std::shared_ptr<system::SharedBlock> block = request.folder.empty()
                                                   ? memory.allocate_large(bytes)
                                                   : memory.allocate_in(request.folder, bytes);
  const CacheReader reader = reader_of(source, request, listed, *block);
  const std::vector<std::uint32_t> first = images_of(*source.dataset, request.first);
  const system::Stopwatch decoding;
  double images_per_second = 0;
  bool meanwhile =
      request.meanwhile && !source.dataset->ready_form() && first.size() < images.size();
  if (meanwhile) {
    std::vector<std::size_t> positions;
    for (const std::uint32_t image : first) positions.push_back(reader.position_of(image));
    read_missing(reader, part_of(positions, memory), request);
    memory.barrier();
    images_per_second = to_double(first.size()) / decoding.seconds();
    meanwhile = !reader.view.damaged();
    memory.barrier();  // all have seen it before one goes on
  }
  const Range mine = data::share(images.size(), memory.local_rank(), memory.local_size());
  if (!meanwhile) {
    read_missing(reader, part_of(all_positions(images.size()), memory), request);
    memory.barrier();
    images_per_second = to_double(images.size()) / decoding.seconds();
  }
  data::DecodedData decoded = give_out(source, request, reader, meanwhile, mine, std::move(block));
  decoded.images_per_second = images_per_second;
  decoded.seconds = watch.seconds();
  return decoded;
}

data::DecodedData finish_cache(const data::DataSource& source, const data::DecodedData& begun,
                               const data::DecodeRequest& request, comm::NodeMemory& memory) {
  const system::Stopwatch watch;
  const ImageList listed = listed_images(source, form_of(request));
  const std::vector<std::uint32_t>& images = listed.images;
  const CacheReader reader = reader_of(source, request, listed, *begun.memory);
  begun.filling->stop();
  memory.barrier();  // no image is claimed now
  read_missing(reader, part_of(all_positions(images.size()), memory), request);
  memory.barrier();
  data::DecodedData decoded = give_out(source, request, reader, false, {}, begun.memory);
  decoded.images_per_second = begun.images_per_second;
  decoded.seconds = watch.seconds();
  return decoded;
}

}  // namespace cputrain::datasets

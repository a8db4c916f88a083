#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/folders/empty_classes.h"
#include "datasets/formats/packed.h"
#include "datasets/formats/packed_format.h"
#include "datasets/loader/flaw_tally.h"
#include "datasets/loader/work_arena.h"
#include "system/files.h"

namespace cputrain::datasets {
namespace {

constexpr std::size_t kAtOnce = 256;  ///< images in memory

/// Samples of all parts in the data's own order, so that numbers of samples stay what they were.
struct Listed {
  std::uint32_t sample, part;
};

std::vector<Listed> list_samples(const data::DataSource& source) {
  std::vector<Listed> all;
  for (const std::uint32_t sample : source.train) all.push_back({sample, 0});
  for (const std::uint32_t sample : source.validation) all.push_back({sample, 1});
  for (const std::uint32_t sample : source.test) all.push_back({sample, 2});
  std::ranges::sort(all, {}, &Listed::sample);
  return all;
}

/// What stands before the pixels, as it grows.
class Head {
 public:
  Head(const data::DataSource& source, const data::DecodeRequest& request,
       const std::vector<Listed>& listed)
      : resize_(request.resize), exif_(source.exif) {
    const data::Dataset& data = *source.dataset;
    if (const auto form = data.ready_form()) done_ = form->exif;
    header_.magic = kPackedMagic;
    header_.version = kPackedVersion;
    header_.height = static_cast<std::uint32_t>(request.image.height);
    header_.width = static_cast<std::uint32_t>(request.image.width);
    header_.channels = static_cast<std::uint32_t>(request.image.channels);
    header_.classes = data.classes().size();
    header_.source = data.fingerprint();
    for (const std::string& name : data.classes()) add_name(name);
    // Space for all, since only decoding shows which images are damaged.
    std::size_t head = kPackedHeaderBytes + listed.size() * kPackedEntryBytes + names_.size();
    for (const Listed& one : listed) head += data.name(one.sample).size() + 1;
    header_.pixels_at = (head + kPackedAlign - 1) / kPackedAlign * kPackedAlign;
  }

  std::size_t pixels_at() const { return header_.pixels_at; }

  /// An image has an EXIF orientation, so it matters what was done with it.
  void note_turned() { done_ = exif_; }

  void add(const data::Dataset& data, const Listed& one, std::span<const std::uint8_t> pixels) {
    const std::size_t at = entries_.size();
    entries_.resize(at + kPackedEntryBytes);
    put_little_endian<std::uint32_t>(entries_, at,
                                     static_cast<std::uint32_t>(data.label(one.sample)));
    put_little_endian<std::uint32_t>(entries_, at + 4, one.part);
    put_little_endian<std::uint32_t>(
        entries_, at + 8, static_cast<std::uint32_t>(crc32_z(0, pixels.data(), pixels.size())));
    add_name(data.name(one.sample));
    ++header_.images;
  }

  /// All bytes before the pixels.
  std::vector<std::uint8_t> finish() {
    header_.form = PackedForm{resize_, done_}.number();
    header_.name_bytes = names_.size();
    header_.file_bytes =
        header_.pixels_at + header_.images * header_.height * header_.width * header_.channels;
    std::vector<std::uint8_t> bytes(header_.pixels_at);
    const auto entries_at = bytes.begin() + kPackedHeaderBytes;
    std::ranges::copy(names_, std::ranges::copy(entries_, entries_at).out);
    write_header(bytes);
    const auto checked = std::span(bytes).subspan(kPackedChecked);
    header_.check = static_cast<std::uint32_t>(crc32_z(0, checked.data(), checked.size()));
    write_header(bytes);
    return bytes;
  }

  data::PackReport report() const { return {header_.images, header_.file_bytes, {}, {}, {}}; }

 private:
  /// Zero bytes end names, so a name's own (no file has one) is left out.
  void add_name(std::string name) {
    std::erase(name, '\0');
    names_.insert(names_.end(), name.begin(), name.end());
    names_.push_back(0);
  }

  void write_header(std::vector<std::uint8_t>& bytes) const {
    std::ranges::copy(header_.magic, bytes.begin());
    for_each_field(header_, [&](const auto& field, std::size_t at) {
      put_little_endian<std::remove_cvref_t<decltype(field)>>(bytes, at, field);
    });
  }

  PackedHeader header_{};
  data::Resizing resize_;
  data::Exif exif_;
  std::optional<data::Exif> done_{};
  std::vector<std::uint8_t> entries_, names_;
};

void check_request(const data::DataSource& source, const std::string& file,
                   const data::DecodeRequest& request) {
  if (!is_packed(file)) {
    fail(ExitCode::usage,
         fmt::format("'{0}' must end in .ctpack (--data recognises packed files by "
                     "it); try '{0}.ctpack'",
                     file));
  }
  const auto form = source.dataset->ready_form();
  if (form && form->exif.value_or(source.exif) != source.exif) {
    fail(ExitCode::usage,
         fmt::format("the images were packed with --exif {0} (they cannot be turned any more); "
                     "use --exif {0}, or pack the data that they came from",
                     word_of(*form->exif)));
  }
  if (form && (form->image != request.image || form->resize != request.resize)) {
    fail(ExitCode::usage,
         fmt::format("the images are packed at {}x{}, {}, already (they cannot be resized to "
                     "{}x{}, {}); pack the data that they came from",
                     form->image.height, form->image.width, to_text(form->resize),
                     request.image.height, request.image.width, to_text(request.resize)));
  }
}

/// Its head is known last and stands first, which a pipe or a device cannot have.
std::filesystem::path place_of(const std::string& file) {
  if (auto place = system::replaceable_file(file)) return *std::move(place);
  fail(ExitCode::usage,
       fmt::format("'{}' is no regular file (a packed file is written at several places in turn); "
                   "name a file, and copy it from there",
                   file));
}

}  // namespace

data::PackReport write_packed(const data::DataSource& source, const std::string& path,
                              const data::DecodeRequest& request) {
  check_request(source, path, request);
  const data::Dataset& data = *source.dataset;
  const std::vector<Listed> listed = list_samples(source);
  Head head(source, request, listed);
  system::AtomicFile file(place_of(path));
  std::size_t offset = head.pixels_at();
  const std::size_t bytes = request.image.size();
  std::vector<std::uint8_t> pixels(std::min(kAtOnce, listed.size()) * bytes);
  std::vector<data::ReadResult> results(kAtOnce);
  std::vector<data::BadSample> bad;
  FlawTally flaws(data);
  std::set<int> learnt;  // classes with a training image that could be read
  WorkArena arena(request.threads);
  for (std::size_t begin = 0; begin < listed.size(); begin += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, listed.size() - begin);
    arena.for_each(count, [&](std::size_t i) {
      results[i] = data.read(listed[begin + i].sample, request.image, request.resize,
                             std::span(pixels).subspan(i * bytes, bytes));
    });
    for (std::size_t i = 0; i < count; ++i) {
      const Listed& one = listed[begin + i];
      if (results[i].status != data::ReadStatus::ok) {
        bad.push_back({data.name(one.sample), results[i]});
        continue;
      }
      const auto image = std::span(pixels).subspan(i * bytes, bytes);
      head.add(data, one, image);
      if (results[i].turned) head.note_turned();
      if (data.view(one.sample).image == one.sample) {
        flaws.add(one.sample, data::flaw_of(results[i], image, source.exif));
      }
      if (one.part == 0) learnt.insert(data.label(one.sample));
      file.write_at(offset, std::as_bytes(image));
      offset += bytes;
    }
    if (request.progress) request.progress(begin + count, listed.size());
  }
  if (offset == head.pixels_at()) {
    fail(ExitCode::data, fmt::format("of {} none can be read (nothing to pack); look "
                                     "with 'cputrain data check'",
                                     counted(listed.size(), "image")));
  }
  const std::string warning = check_empty_classes(lost_classes(data, source.train, learnt, bad),
                                                  source.allow_empty_classes);
  const std::vector<std::uint8_t> first = head.finish();
  file.write_at(0, std::as_bytes(std::span(first)));
  file.commit();
  data::PackReport report = head.report();
  report.bad = std::move(bad);
  report.empty_classes = warning;
  report.flaws = flaws.warnings();
  return report;
}

}  // namespace cputrain::datasets

#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "system/files.h"

namespace cputrain::data {
namespace {

constexpr const char* kCoco = "coco";
constexpr const char* kWords[] = {"cifar10", "cifar100", "idx", "inat", kCoco, kSynthetic};

/// Nothing brighter is nearly black. 12 bits that lie in 16 come to 15, or to 16 where a reader
/// rounds.
constexpr std::uint8_t kDark = 16;

/// What images with a flaw are, and what to try; by Flaw.
constexpr std::pair<std::string_view, std::string_view> kFlaws[] = {
    {"have no flaw", ""},
    {"are of one colour alone", "look at the originals, or leave such files out"},
    {"are nearly black (no value is above 16 of 255)",
     "look at the originals, or leave such files out"},
    {"are of one colour, since their alpha channel is not read",
     "flatten them on white, so that shapes which alpha holds are seen"},
    {"are nearly black, since their values use the lower 12 of 16 bits or fewer",
     "multiply their values until they fill 16 bits (16 times for 12 bits)"},
    {"are not upright, since their EXIF orientation is ignored",
     "a new training reads them upright with --exif apply"}};

/// ".cr2", in lower case.
std::string ending_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return "without an ending";
  return small_letters(std::string(name.substr(dot)));
}

bool is_one_colour(std::span<const std::uint8_t> rgb) {
  return std::ranges::equal(rgb.subspan(3), rgb.first(rgb.size() - 3));
}

bool is_dark(std::span<const std::uint8_t> rgb) {
  return std::ranges::all_of(rgb, [](std::uint8_t value) { return value <= kDark; });
}

Flaw flaw_of_pixels(std::span<const std::uint8_t> rgb, StoredAs stored) {
  const bool one_colour = is_one_colour(rgb), dark = is_dark(rgb);
  if (one_colour && stored.alpha) return Flaw::in_alpha;
  if (dark && stored.bits > 8) return Flaw::low_bits;
  if (one_colour) return Flaw::one_colour;
  return dark ? Flaw::nearly_black : Flaw::none;
}

}  // namespace

DataSpec parse_data_spec(const std::string& text) {
  if (text == kSynthetic) return {kSynthetic, {}};
  const std::size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  if (colon == std::string::npos || std::ranges::find(kWords, word) == std::end(kWords)) {
    return {"", {text}};
  }
  const std::string rest = text.substr(colon + 1);
  if (word != kCoco) return {word, {rest}};
  const std::size_t comma = rest.find(',');  // a training file, and a validation file or none
  if (comma == std::string::npos) return {word, {rest}};
  return {word, {rest.substr(0, comma), rest.substr(comma + 1)}};
}

bool may_have_exif(const std::string& text) {
  const std::string word = parse_data_spec(text).word;
  return word != kSynthetic && !word.starts_with("cifar") && word != "idx";
}

std::string absolute_data_spec(const std::string& text) {
  DataSpec spec = parse_data_spec(text);
  if (spec.word == kSynthetic) return text;
  for (std::string& part : spec.parts) part = system::absolute_path(part);
  return (spec.word.empty() ? "" : spec.word + ":") + join(spec.parts, ",");
}

std::string unread_by_kind(const std::vector<UnreadFile>& files) {
  struct Kind {
    const UnreadReason* reason = nullptr;
    std::size_t count = 0;
    std::set<std::string> endings;
  };
  std::map<std::string_view, Kind> by_name;
  for (const UnreadFile& file : files) {
    Kind& kind = by_name[file.reason->one];
    kind.reason = file.reason;
    ++kind.count;
    if (file.reason->tells_endings) kind.endings.insert(ending_of(file.path));
  }
  std::vector<Kind> kinds;
  for (auto& [name, kind] : by_name) kinds.push_back(std::move(kind));
  std::ranges::stable_sort(kinds, std::ranges::greater{}, &Kind::count);
  std::vector<std::string> parts;
  for (const Kind& kind : kinds) {
    constexpr std::size_t kShown = 4;
    std::vector<std::string> endings(kind.endings.begin(), kind.endings.end());
    if (endings.size() > kShown) endings.resize(kShown), endings.emplace_back("...");
    parts.push_back(fmt::format(
        "{}{} {}", kind.count == 1 ? kind.reason->one : kind.reason->several,
        endings.empty() ? "" : " (" + join(endings, ", ") + ")", with_commas(kind.count)));
  }
  return join(parts, ", ");
}

std::string_view flaw_text(Flaw flaw) { return kFlaws[static_cast<std::size_t>(flaw)].first; }

std::string_view flaw_remedy(Flaw flaw) { return kFlaws[static_cast<std::size_t>(flaw)].second; }

Flaw flaw_of(const ReadResult& result, std::span<const std::uint8_t> rgb, Exif exif,
             StoredAs stored) {
  if (result.status != ReadStatus::ok || rgb.size() < 3) return Flaw::none;
  const Flaw flaw = flaw_of_pixels(rgb, stored);
  const bool not_upright = result.turned && exif == Exif::ignore;
  return flaw == Flaw::none && not_upright ? Flaw::unturned : flaw;
}

const std::uint8_t* ImageSet::ready(std::size_t i) const {
  if (stored) return nullptr;
  return filling ? filling->find(samples[i]) : pixels[i];
}

const std::uint8_t* ImageSet::pixels_of(std::size_t i, std::span<std::uint8_t> space) const {
  if (const std::uint8_t* there = ready(i)) return there;
  if (filling) return filling->decode(samples[i], space);
  const std::uint32_t shown = stored->view(samples[i]).image;
  const ReadResult result = stored->read(shown, kept(), stored->ready_form()->resize, space);
  if (result.status == ReadStatus::ok) return space.data();
  fail(ExitCode::data,
       "image '{}' of the data has changed since it was first read: {} (it is not the one that was "
       "asked for); put its file back as it was",
       stored->name(shown), result.detail);
}

}  // namespace cputrain::data

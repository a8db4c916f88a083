#include "training/weights/past_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "core/hash.h"
#include "core/text.h"
#include "data/classes/alike_names.h"
#include "data/dataset.h"
#include "data/pixel_sample.h"
#include "model/normalization.h"

namespace cputrain::training {
namespace {

bool contains(const std::vector<std::uint64_t>& hashes, std::uint64_t hash) {
  return std::ranges::find(hashes, hash) != hashes.end();
}

/// Adds the newest, at the end, and keeps the last ones.
void remember(std::vector<std::uint64_t>& earlier, std::uint64_t then, std::uint64_t now) {
  constexpr std::size_t kMost = 100;
  if (then != 0 && !contains(earlier, then)) earlier.push_back(then);
  std::erase(earlier, now);
  if (earlier.size() > kMost) earlier.erase(earlier.begin());
}

/// Made of the class and the name of a sample's file, wherever that lies.
std::uint64_t name_hash(const data::Dataset& data, std::uint32_t sample) {
  const std::uint32_t image = data.view(sample).image;
  const std::string name = data.name(image);
  return Fnv1a()
      .add(data::composed(data.classes()[static_cast<std::size_t>(data.label(image))]))
      .add(data::composed(name.substr(name.rfind('/') + 1)))
      .value();
}

/// How many samples have each of the names that a past training knows.
std::map<std::uint64_t, int> counts_of_names(const data::Dataset& data,
                                             const weights::TrainingData& past) {
  std::map<std::uint64_t, int> counts;
  for (const std::uint64_t name : past.image_names) counts[name] = 0;
  for (std::uint32_t i = 0; i < data.size(); ++i) {
    const auto known = counts.find(name_hash(data, i));
    if (known != counts.end()) ++known->second;
  }
  return counts;
}

/// One thing that is done to images, and the flags that decide it.
struct Fact {
  const char *learnt, *here, *remedy, *remedy_of_packed;
  std::string (*text)(const weights::Preprocessing&);  ///< empty where it is not known
};

constexpr Fact kFacts[] = {
    {"images of", "they are", "--image-size says how large",
     "data pack --image-size says how large",
     [](const weights::Preprocessing& p) { return p.image ? shape_text(*p.image) : ""; }},
    {"pixels as", "they are", "--normalize says how", "--normalize says how",
     [](const weights::Preprocessing& p) {
       return p.pixels ? model::normalization_text(*p.pixels) : "";
     }},
    {"images resized by", "it is", "--resize and --fit say how",
     "the packed file's form; data pack --resize and --fit make another",
     [](const weights::Preprocessing& p) { return p.resize ? data::to_text(*p.resize) : ""; }},
    {"photographs read with --exif", "it is --exif",
     "one that a camera turned lies otherwise; --exif says how",
     "the packed file's form; data pack --exif makes another",
     [](const weights::Preprocessing& p) { return p.exif ? std::string(word_of(*p.exif)) : ""; }}};

/// A hash of the place of a data set, for TrainingData::place; 0 where it is no file or folder. No
/// file may have the name of a range of archives, or of a folder in one.
std::uint64_t place_of_data(const std::string& spec) {
  const data::DataSpec data = data::parse_data_spec(spec);
  if (data.word == data::kSynthetic) return 0;
  std::vector<std::string> places;
  for (const std::string& path : data.parts) {
    std::error_code error;
    places.push_back(std::filesystem::weakly_canonical(path, error).string());
    if (error) return 0;
  }
  return places.empty() ? 0 : Fnv1a().add(join(places, ",")).value();
}

}  // namespace

std::string learnt_image(const weights::PastTraining& past, const data::DataSource& source,
                         std::span<const std::uint32_t> samples) {
  const data::Dataset& data = *source.dataset;
  const weights::TrainingData& then = past.data;
  // The same images in another form: a name that one of them has alone means it.
  const bool same_images = then.origin == data.origin() && then.earlier.empty();
  const auto counts = same_images ? counts_of_names(data, then) : std::map<std::uint64_t, int>();
  std::multimap<std::uint64_t, std::uint64_t> contents;
  for (std::size_t i = 0; i < then.image_names.size(); ++i) {
    contents.emplace(then.image_names[i], then.image_contents[i]);
  }
  if (contents.empty()) return "";
  for (const std::uint32_t sample : samples) {
    const std::uint64_t name = name_hash(data, sample);
    const auto [begin, end] = contents.equal_range(name);
    if (begin == end) continue;
    const std::optional<std::uint64_t> content = data.content(sample);
    const bool same =
        content && std::any_of(begin, end, [&](const auto& one) { return one.second == *content; });
    if (same || (same_images && counts.at(name) == 1)) return data.name(sample);
  }
  return "";
}

void remember_images(weights::TrainingData& data, const data::DataSource& source,
                     std::uint64_t seed) {
  constexpr std::size_t kMost = 256;  // of several trainings
  if (data.place == 0) return;        // made-up images
  const auto add = [](std::vector<std::uint64_t>& hashes, std::uint64_t hash) {
    hashes.push_back(hash);
    if (hashes.size() > kMost) hashes.erase(hashes.begin());
  };
  for (const std::uint32_t sample : data::pixel_samples(source, seed)) {
    if (!std::ranges::binary_search(source.train, sample)) continue;
    const std::optional<std::uint64_t> content = source.dataset->content(sample);
    if (!content) continue;
    add(data.image_names, name_hash(*source.dataset, sample));
    add(data.image_contents, *content);
  }
}

bool is_divided_alike(const weights::PastTraining& past, const data::DataRequest& here) {
  return past.validation_split > 0 && past.validation_split == here.validation_split &&
         past.seed == here.seed;
}

Learnt learnt_from(const weights::PastTraining& past, const data::DataSource& source,
                   const data::DataRequest& here) {
  const std::uint64_t fingerprint = source.dataset->fingerprint();
  if (fingerprint == past.data.fingerprint) {
    return is_divided_alike(past, here) && !source.validation.empty() ? Learnt::not_from_kept
                                                                      : Learnt::from_all;
  }
  if (contains(past.data.earlier, fingerprint)) return Learnt::earlier;
  const std::uint64_t place = place_of_data(here.spec);
  const bool was_here = place == past.data.place || contains(past.data.earlier_places, place);
  return place != 0 && was_here ? Learnt::from_some : Learnt::not_known_to;
}

weights::TrainingData data_to_keep(const data::DataSource& source, const data::DataRequest& request,
                                   const std::optional<weights::PastTraining>& past) {
  weights::TrainingData data{.fingerprint = source.dataset->fingerprint(),
                             .expand = request.expand,
                             .place = place_of_data(request.spec),
                             .origin = source.dataset->origin(),
                             .photographs = data::may_have_exif(request.spec)};
  if (!past) return data;
  data.earlier = past->data.earlier;
  data.earlier_places = past->data.earlier_places;
  data.image_names = past->data.image_names;
  data.image_contents = past->data.image_contents;
  remember(data.earlier, past->data.fingerprint, data.fingerprint);
  remember(data.earlier_places, past->data.place, data.place);
  return data;
}

std::vector<std::string> preprocessing_differences(const std::string& weights,
                                                   const weights::Preprocessing& then,
                                                   const weights::Preprocessing& here) {
  std::vector<std::string> lines;
  for (const Fact& fact : kFacts) {
    const std::string theirs = fact.text(then), ours = fact.text(here);
    if (theirs.empty() || ours.empty() || theirs == ours) continue;
    lines.push_back(fmt::format("--weights {} learnt from {} {}; here {} {} ({})", weights,
                                fact.learnt, theirs, fact.here, ours,
                                here.packed ? fact.remedy_of_packed : fact.remedy));
  }
  return lines;
}

}  // namespace cputrain::training

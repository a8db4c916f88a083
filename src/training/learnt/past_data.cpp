#include "training/learnt/past_data.h"

#include <algorithm>
#include <filesystem>

#include "core/hash.h"
#include "core/text.h"
#include "data/data_spec.h"

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

}  // namespace

bool is_divided_alike(const loop::PastTraining& past, const data::DataRequest& here) {
  return past.validation_split > 0 && past.validation_split == here.validation_split &&
         past.seed == here.seed;
}

Learnt learnt_from(const loop::PastTraining& past, const data::DataSource& source,
                   const data::DataRequest& here) {
  const std::uint64_t fingerprint = source.dataset->fingerprint();
  if (fingerprint == past.data.fingerprint) {
    const bool rounded_alike = past.data.rounding == here.rounding || !source.by_rounding;
    const bool alike = is_divided_alike(past, here) && rounded_alike;
    return alike && !source.validation.empty() ? Learnt::not_from_kept : Learnt::from_all;
  }
  if (contains(past.data.earlier, fingerprint)) return Learnt::earlier;
  const std::uint64_t place = place_of_data(here.spec);
  const bool was_here = place == past.data.place || contains(past.data.earlier_places, place);
  return place != 0 && was_here ? Learnt::from_some : Learnt::not_known_to;
}

std::uint64_t place_of_data(const std::string& spec) {
  std::vector<std::string> places;
  for (const std::string& path : data::parse_data_spec(spec).parts) {
    std::error_code error;
    places.push_back(std::filesystem::canonical(path, error).string());
    if (error) return 0;
  }
  return places.empty() ? 0 : Fnv1a().add(join(places, ",")).value();
}

loop::TrainingData data_to_keep(const data::DataSource& source, const data::DataRequest& request) {
  return {.fingerprint = source.dataset->fingerprint(),
          .expand = request.expand,
          .place = place_of_data(request.spec),
          .rounding = request.rounding};
}

loop::TrainingData data_to_keep(const data::DataSource& source, const data::DataRequest& request,
                                const loop::PastTraining& past) {
  loop::TrainingData data = data_to_keep(source, request);
  data.earlier = past.data.earlier;
  data.earlier_places = past.data.earlier_places;
  remember(data.earlier, past.data.fingerprint, data.fingerprint);
  remember(data.earlier_places, past.data.place, data.place);
  return data;
}

}  // namespace cputrain::training

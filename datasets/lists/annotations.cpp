#include "datasets/lists/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "core/error.h"
#include "core/text.h"
#include "datasets/lists/annotation_tables.h"

namespace cputrain::datasets {
namespace {

/// Relative, and every part a plain name.
void check_path(std::string_view name) {
  const auto refuse = [&](const char* why) {
    throw WrongAnnotations{fmt::format("names the file '{}', {}", printable(name), why)};
  };
  if (name.empty()) refuse("whose length is not possible");
  if (name.find('\0') != std::string_view::npos) refuse("with a zero byte in it");
  if (name.front() == '/') refuse("which leaves the folder");
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == "..") refuse("which leaves the folder");
    if (part.empty() || part == ".") refuse("which is no plain path");
    begin = end + 1;
  }
}

std::unordered_map<std::int64_t, std::string> names_of(const AnnotationTables& tables, LabelBy by) {
  std::unordered_map<std::int64_t, std::string> names;
  for (const auto& [id, category] : tables.categories) {
    const std::string& name = by == LabelBy::category ? category.name : category.super;
    if (name.empty()) throw WrongAnnotations{fmt::format("gives category {} no name", id)};
    if (!names.emplace(id, name).second)
      throw WrongAnnotations{fmt::format("has category {} twice", id)};
  }
  return names;
}

/// Super categories stand with each of their categories.
void list_categories(const std::unordered_map<std::int64_t, std::string>& names, LabelBy by,
                     Annotations& result) {
  for (const auto& [id, name] : names) result.categories.push_back(name);
  std::ranges::sort(result.categories);
  auto& all = result.categories;
  for (std::size_t i = 1; i < all.size() && by == LabelBy::category; ++i) {
    const bool again = !result.doubled.empty() && result.doubled.back() == all[i];
    if (all[i] == all[i - 1] && !again) result.doubled.push_back(all[i]);
  }
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

/// Finds images by their ids.
class ImageIds {
  auto id_of() const {
    return [this](std::uint32_t image) { return ids_[image]; };
  }

 public:
  /// Keeps a reference.
  explicit ImageIds(const std::vector<std::int64_t>& ids) : ids_(ids), by_id_(ids.size()) {
    std::iota(by_id_.begin(), by_id_.end(), 0u);
    std::ranges::stable_sort(by_id_, {}, id_of());
    const auto again = std::ranges::adjacent_find(by_id_, {}, id_of());
    if (again != by_id_.end())
      throw WrongAnnotations{fmt::format("has image {} twice", ids_[*again])};
  }

  std::optional<std::size_t> find(std::int64_t id) const {
    const auto image = std::ranges::lower_bound(by_id_, id, {}, id_of());
    if (image == by_id_.end() || ids_[*image] != id) return std::nullopt;
    return *image;
  }

 private:
  const std::vector<std::int64_t>& ids_;
  std::vector<std::uint32_t> by_id_;  ///< places in ids_
};

Annotations join_tables(const AnnotationTables& tables, LabelBy by) {
  const auto names = names_of(tables, by);
  Annotations result;
  list_categories(names, by, result);
  for (std::size_t i = 0; i < tables.files.size(); ++i) check_path(tables.files[i]);
  const ImageIds images(tables.images);
  std::vector<const std::string*> labels(tables.images.size());
  for (const auto& [image, category] : tables.annotations) {
    const auto place = images.find(image);
    const auto name = names.find(category);
    if (!place)
      throw WrongAnnotations{fmt::format("annotates image {}, which is not there", image)};
    if (name == names.end())
      throw WrongAnnotations{fmt::format("uses category {}, which is not there", category)};
    const std::string*& label = labels[*place];
    if (label && *label != name->second) {
      throw WrongAnnotations{fmt::format("says that image {} is '{}' and '{}'", image,
                                         printable(*label), printable(name->second))};
    }
    label = &name->second;
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i]) {
      result.files.add(tables.files[i], *labels[i]);
    } else {
      result.unlabelled.emplace_back(tables.files[i]);
    }
  }
  return result;
}

}  // namespace

Annotations parse_annotations(const TextPieces& text, LabelBy by) {
  return join_tables(read_tables(text), by);
}

Annotations read_annotations(const std::string& path, LabelBy by) {
  try {
    return parse_annotations(pieces_of_file(path, "it says what the images show"), by);
  } catch (const WrongAnnotations& wrong) {
    fail(ExitCode::data, fmt::format("'{}' {} (it must list images, categories and annotations as "
                                     "COCO and iNaturalist do); correct it or fetch it again",
                                     path, wrong.problem));
  }
}

}  // namespace cputrain::datasets

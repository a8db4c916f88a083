#include "datasets/folders/image_files.h"

#include <algorithm>
#include <utility>

#include "core/casts.h"

namespace cputrain::datasets {

void ImageFiles::add(std::string_view path, std::string_view label) {
  labels_.push_back(number_of(label));
  paths_.add(path);
}

void ImageFiles::add(const ImageFiles& others, const std::string& before) {
  for (std::size_t i = 0; i < others.size(); ++i) {
    add(before + std::string(others.path(i)), others.label(i));
  }
}

std::vector<std::string> ImageFiles::classes() const {
  std::vector<std::string> classes = names_;
  std::ranges::sort(classes);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

std::optional<std::size_t> ImageFiles::first_beside(const std::vector<std::string>& classes) const {
  std::vector<bool> known;
  for (const std::string& name : names_) {
    known.push_back(std::ranges::binary_search(classes, name));
  }
  const auto file =
      std::ranges::find_if(labels_, [&](std::uint32_t label) { return !known[label]; });
  if (file == labels_.end()) return std::nullopt;
  return to_size(file - labels_.begin());
}

void ImageFiles::rename(const std::map<std::string, std::string>& labels) {
  for (std::string& name : names_) {
    if (const auto other = labels.find(name); other != labels.end()) name = other->second;
  }
}

void ImageFiles::number_by(std::vector<std::string> classes) {
  numbers_.clear();
  for (const std::string& name : classes) {
    numbers_.emplace(name, static_cast<std::uint32_t>(numbers_.size()));
  }
  std::vector<std::uint32_t> places;
  for (const std::string& name : names_) places.push_back(numbers_.at(name));
  for (std::uint32_t& label : labels_) label = places[label];
  names_ = std::move(classes);
}

std::uint32_t ImageFiles::number_of(std::string_view label) {
  if (!labels_.empty() && names_[labels_.back()] == label) return labels_.back();  // mostly
  if (const auto known = numbers_.find(label); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(label);
  numbers_.emplace(label, number);
  return number;
}

}  // namespace cputrain::datasets

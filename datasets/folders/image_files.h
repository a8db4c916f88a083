#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What folders and lists name, of which there may be millions.
namespace cputrain::datasets {

/// Texts in memory one behind the other: each takes 8 bytes beside its own.
class PackedTexts {
 public:
  void add(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }

  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t index) const {
    const std::uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(begin, ends_[index] - begin);
  }

 private:
  std::string bytes_;
  std::vector<std::uint64_t> ends_;
};

/// Labelled image files in an order. Each takes 12 bytes beside those of its path.
class ImageFiles {
 public:
  /// The path is below the root, with '/' between names, or absolute; the label is a class name.
  void add(std::string_view path, std::string_view label);
  /// All of another's in their order, with a text before each path.
  void add(const ImageFiles&, const std::string& before = "");

  std::size_t size() const { return labels_.size(); }
  bool empty() const { return labels_.empty(); }
  std::string_view path(std::size_t index) const { return paths_[index]; }
  const std::string& label(std::size_t index) const { return names_[labels_[index]]; }
  /// The label's place in names().
  std::uint32_t label_number(std::size_t index) const { return labels_[index]; }
  const std::vector<std::string>& names() const { return names_; }

  /// The names of all labels, each once, sorted.
  std::vector<std::string> classes() const;
  /// The first file whose label is none of these, which are sorted; nothing where all are.
  std::optional<std::size_t> first_beside(const std::vector<std::string>& classes) const;
  /// Files of a label that is a key get its value instead.
  void rename(const std::map<std::string, std::string>& labels);
  /// Makes these the names. They hold every label.
  void number_by(std::vector<std::string> classes);

 private:
  std::uint32_t number_of(std::string_view label);

  PackedTexts paths_;
  std::vector<std::uint32_t> labels_;  ///< places in names_
  std::vector<std::string> names_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;  ///< of labels as they are added
};

}  // namespace cputrain::datasets

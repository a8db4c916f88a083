#include "datasets/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "datasets/limits.h"
#include "datasets/mapped_file.h"

namespace cputrain {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxBytes = std::size_t{2} << 30;
constexpr std::size_t kMaxNameBytes = 4096;

struct Category {
  std::string name, super;
};

/// The members of the file that matter, as they stand there.
struct Tables {
  std::vector<std::pair<std::int64_t, std::string>> images;
  std::vector<std::pair<std::int64_t, Category>> categories;
  std::vector<std::pair<std::int64_t, std::int64_t>> annotations;  ///< image, category
};

/// Says what is wrong; the caller adds the path.
struct Wrong {
  std::string problem;
};

/// An entry of one of the three lists while it is read.
struct Entry {
  std::optional<std::int64_t> id, image, category;
  std::optional<std::string> file, name, super;
};

/// nlohmann's parser calls this for every token, so that only what matters is kept, however large
/// the file is, and no deep nesting is followed.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(Tables& tables) : tables_(tables) {}

  bool whole() const { return whole_; }

  bool start_object(std::size_t) override { return open(true); }
  bool end_object() override {
    if (depth_ == kEntryDepth && in_list_) finish_entry();
    return close();
  }
  bool start_array(std::size_t) override {
    if (depth_ == 1) in_list_ = !section_.empty();
    return open(false);
  }
  bool end_array() override {
    if (depth_ == 2) in_list_ = false;
    return close();
  }
  bool key(std::string& name) override {
    key_ = name;
    if (depth_ == 1) enter_section(name);
    return true;
  }
  bool string(std::string& text) override {
    if (!at_field()) return scalar();
    if (section_ == "images" && key_ == "file_name") set(entry_.file, text);
    if (section_ == "categories" && key_ == "name") set(entry_.name, text);
    if (section_ == "categories" && key_ == "supercategory") set(entry_.super, text);
    return refuse_id("a text");
  }
  bool number_integer(std::int64_t value) override { return number(value); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return refuse_id("too large");
    return number(static_cast<std::int64_t>(value));
  }
  bool number_float(double, const std::string&) override { return refuse_id("no whole number"); }
  bool boolean(bool) override { return refuse_id("no whole number"); }
  bool null() override { return refuse_id("null"); }
  bool binary(binary_t&) override { return scalar(); }
  bool parse_error(std::size_t at, const std::string&, const Json::exception& error) override {
    throw Wrong{fmt::format("is no JSON at byte {}: {}", at, error.what())};
  }

 private:
  static constexpr int kEntryDepth = 3;  ///< object, list, entry

  bool open(bool object) {
    if (depth_ == 0 && !object) throw Wrong{"is no JSON object"};
    if (depth_ == 1 && object && !section_.empty()) scalar();
    if (depth_ == 2 && in_list_ && !object) throw Wrong{wrong_entry()};
    if (++depth_ > kMaxDepth)
      throw Wrong{fmt::format("is nested deeper than {} levels", kMaxDepth)};
    if (depth_ == kEntryDepth && in_list_) entry_ = {};
    return true;
  }

  bool close() {
    --depth_;
    if (depth_ == 0) whole_ = true;
    return true;
  }

  /// A value where a list or an entry should be.
  bool scalar() const {
    if (depth_ == 0) throw Wrong{"is no JSON object"};
    if (depth_ == 1 && !section_.empty()) throw Wrong{fmt::format("'{}' is no list", section_)};
    if (depth_ == 2 && in_list_) throw Wrong{wrong_entry()};
    return true;
  }

  std::string wrong_entry() const { return fmt::format("'{}' holds what is no object", section_); }

  void enter_section(const std::string& name) {
    section_.clear();
    for (auto& [known, seen] : sections_) {
      if (name != known) continue;
      if (std::exchange(seen, true)) throw Wrong{fmt::format("has '{}' twice", name)};
      section_ = name;
    }
  }

  bool at_field() const { return depth_ == kEntryDepth && in_list_; }

  bool number(std::int64_t value) {
    if (!at_field()) return scalar();
    if (section_ != "annotations" && key_ == "id") set(entry_.id, value);
    if (section_ == "annotations" && key_ == "image_id") set(entry_.image, value);
    if (section_ == "annotations" && key_ == "category_id") set(entry_.category, value);
    return true;
  }

  /// A value of the wrong kind where a number must be.
  bool refuse_id(const char* kind) const {
    if (!at_field()) return scalar();
    const bool id =
        section_ == "annotations" ? key_ == "image_id" || key_ == "category_id" : key_ == "id";
    if (id) throw Wrong{fmt::format("'{}' of an entry of '{}' is {}", key_, section_, kind)};
    return true;
  }

  template <class T>
  void set(std::optional<T>& field, const T& value) const {
    if (field) throw Wrong{fmt::format("an entry of '{}' has '{}' twice", section_, key_)};
    field = value;
  }

  template <class T>
  T& needed(std::optional<T>& field, const char* key) const {
    if (!field) throw Wrong{fmt::format("an entry of '{}' has no '{}'", section_, key)};
    return *field;
  }

  void finish_entry() {
    if (section_ == "images") {
      tables_.images.emplace_back(needed(entry_.id, "id"), needed(entry_.file, "file_name"));
    } else if (section_ == "categories") {
      tables_.categories.emplace_back(needed(entry_.id, "id"), Category{needed(entry_.name, "name"),
                                                                        entry_.super.value_or("")});
    } else if (section_ == "annotations") {
      tables_.annotations.emplace_back(needed(entry_.image, "image_id"),
                                       needed(entry_.category, "category_id"));
    }
    if (tables_.images.size() > kMaxFiles || tables_.categories.size() > kMaxClasses) {
      throw Wrong{"names more pictures or categories than can be used"};
    }
  }

  Tables& tables_;
  int depth_ = 0;
  bool in_list_ = false, whole_ = false;
  std::string section_, key_;
  Entry entry_;
  std::vector<std::pair<std::string, bool>> sections_{
      {"images", false}, {"categories", false}, {"annotations", false}};
};

/// For a message: without control characters, and not endless.
std::string printable(const std::string& text) {
  std::string result = text.substr(0, 200);
  std::ranges::replace_if(
      result, [](unsigned char c) { return c < 32 || c == 127; }, '?');
  return result;
}

/// Relative, and every part a plain name.
void check_path(const std::string& name) {
  const auto refuse = [&](const char* why) {
    throw Wrong{fmt::format("names the file '{}', {}", printable(name), why)};
  };
  if (name.empty() || name.size() > kMaxNameBytes) refuse("whose length is not possible");
  if (name.find('\0') != std::string::npos) refuse("with a zero byte in it");
  if (name.front() == '/') refuse("which leaves the folder");
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (part == "..") refuse("which leaves the folder");
    if (part.empty() || part == ".") refuse("which is no plain path");
    begin = end + 1;
  }
}

std::unordered_map<std::int64_t, std::string> names_of(const Tables& tables, LabelBy by) {
  std::unordered_map<std::int64_t, std::string> names;
  for (const auto& [id, category] : tables.categories) {
    const std::string& name = by == LabelBy::category ? category.name : category.super;
    if (name.empty()) throw Wrong{fmt::format("gives category {} no name", id)};
    if (!names.emplace(id, name).second) throw Wrong{fmt::format("has category {} twice", id)};
  }
  return names;
}

Annotations join_tables(Tables&& tables, LabelBy by) {
  const auto names = names_of(tables, by);
  std::unordered_map<std::int64_t, const std::string*> labels;
  labels.reserve(tables.images.size());
  for (const auto& [id, file] : tables.images) {
    check_path(file);
    if (!labels.emplace(id, nullptr).second) throw Wrong{fmt::format("has image {} twice", id)};
  }
  for (const auto& [image, category] : tables.annotations) {
    const auto label = labels.find(image);
    const auto name = names.find(category);
    if (label == labels.end())
      throw Wrong{fmt::format("annotates image {}, which is not there", image)};
    if (name == names.end())
      throw Wrong{fmt::format("uses category {}, which is not there", category)};
    if (label->second && *label->second != name->second) {
      throw Wrong{fmt::format("says that image {} is '{}' and '{}'", image,
                              printable(*label->second), printable(name->second))};
    }
    label->second = &name->second;
  }
  Annotations result;
  for (auto& [id, file] : tables.images) {
    if (const std::string* label = labels.at(id)) {
      result.files.push_back({std::move(file), *label});
    } else {
      ++result.unlabelled;
    }
  }
  return result;
}

}  // namespace

Annotations read_annotations(const std::string& path, LabelBy by) {
  const MappedFile file(path, "it says what the pictures show");
  try {
    if (file.bytes().size() > kMaxBytes) throw Wrong{"has more than 2 GiB"};
    Tables tables;
    Reader reader(tables);
    const auto* text = reinterpret_cast<const char*>(file.bytes().data());
    if (!Json::sax_parse(text, text + file.bytes().size(), &reader) || !reader.whole()) {
      throw Wrong{"is no whole JSON object"};
    }
    return join_tables(std::move(tables), by);
  } catch (const Wrong& wrong) {
    fail(ExitCode::data, fmt::format("'{}' {} (it must list images, categories and annotations as "
                                     "COCO and iNaturalist do); correct it or fetch it again",
                                     path, wrong.problem));
  }
}

}  // namespace cputrain

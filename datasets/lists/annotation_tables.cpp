#include "datasets/lists/annotation_tables.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "core/text.h"
#include "datasets/decode/limits.h"

namespace cputrain::datasets {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 32;
/// Limits on what is kept of an entry: a path, and a name as long as class names may be.
constexpr std::size_t kMaxPathBytes = 4096, kMaxNameBytes = 1000;
/// A text of a key or a value that is not kept: masks of instances are long.
constexpr std::size_t kMaxTextBytes = std::size_t{4} << 20;
/// A number, a word, or blanks between two signs.
constexpr std::size_t kMaxPlainBytes = std::size_t{64} << 10;

/// The parser puts a whole token, and blanks before it, into memory, several times their size.
class TokenLimits {
 public:
  void check(std::string_view piece) {
    for (const char c : piece) {
      const std::size_t most = quoted_ ? kMaxTextBytes : kMaxPlainBytes;
      if (place_ - begin_ > most) {
        throw WrongAnnotations{fmt::format("holds a {} of more than {} bytes at byte {}",
                                           quoted_ ? "text" : "number or run of blanks",
                                           with_commas(most), begin_)};
      }
      ++place_;
      if (escaped_) {
        escaped_ = false;
      } else if (quoted_ && c == '\\') {
        escaped_ = true;  // what follows, whatever it is
      } else if (c == '"') {
        quoted_ = !quoted_;
        begin_ = place_;
      } else if (!quoted_ && std::string_view("{}[],:").find(c) != std::string_view::npos) {
        begin_ = place_;
      }
    }
  }

 private:
  bool quoted_ = false, escaped_ = false;
  std::size_t place_ = 0, begin_ = 0;  ///< in the file; of the token
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
  explicit Reader(AnnotationTables& tables) : tables_(tables) {}

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
    if (section_ == "images" && key_ == "file_name") keep(entry_.file, text, kMaxPathBytes);
    if (section_ == "categories" && key_ == "name") keep(entry_.name, text, kMaxNameBytes);
    if (section_ == "categories" && key_ == "supercategory")
      keep(entry_.super, text, kMaxNameBytes);
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
    throw WrongAnnotations{fmt::format("is no JSON at byte {}: {}", at, error.what())};
  }

 private:
  static constexpr int kEntryDepth = 3;  ///< object, list, entry

  bool open(bool object) {
    if (depth_ == 0 && !object) throw WrongAnnotations{"is no JSON object"};
    if (depth_ == 1 && object && !section_.empty()) scalar();
    if (depth_ == 2 && in_list_ && !object) throw WrongAnnotations{wrong_entry()};
    if (++depth_ > kMaxDepth)
      throw WrongAnnotations{fmt::format("is nested deeper than {} levels", kMaxDepth)};
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
    if (depth_ == 0) throw WrongAnnotations{"is no JSON object"};
    if (depth_ == 1 && !section_.empty())
      throw WrongAnnotations{fmt::format("'{}' is no list", section_)};
    if (depth_ == 2 && in_list_) throw WrongAnnotations{wrong_entry()};
    return true;
  }

  std::string wrong_entry() const { return fmt::format("'{}' holds what is no object", section_); }

  void enter_section(const std::string& name) {
    section_.clear();
    for (auto& [known, seen] : sections_) {
      if (name != known) continue;
      if (std::exchange(seen, true)) throw WrongAnnotations{fmt::format("has '{}' twice", name)};
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
    if (id)
      throw WrongAnnotations{fmt::format("'{}' of an entry of '{}' is {}", key_, section_, kind)};
    return true;
  }

  void keep(std::optional<std::string>& field, const std::string& text, std::size_t most) const {
    if (text.size() > most) {
      throw WrongAnnotations{fmt::format("an entry of '{}' has a '{}' of more than {} bytes",
                                         section_, key_, with_commas(most))};
    }
    set(field, text);
  }

  template <class T>
  void set(std::optional<T>& field, const T& value) const {
    if (field)
      throw WrongAnnotations{fmt::format("an entry of '{}' has '{}' twice", section_, key_)};
    field = value;
  }

  template <class T>
  T& needed(std::optional<T>& field, const char* key) const {
    if (!field) throw WrongAnnotations{fmt::format("an entry of '{}' has no '{}'", section_, key)};
    return *field;
  }

  void finish_entry() {
    if (section_ == "images") {
      tables_.images.push_back(needed(entry_.id, "id"));
      tables_.files.add(needed(entry_.file, "file_name"));
    } else if (section_ == "categories") {
      tables_.categories.emplace_back(
          needed(entry_.id, "id"),
          AnnotationCategory{needed(entry_.name, "name"), entry_.super.value_or("")});
    } else if (section_ == "annotations") {
      tables_.annotations.emplace_back(needed(entry_.image, "image_id"),
                                       needed(entry_.category, "category_id"));
    }
    if (tables_.images.size() > kMaxFiles || tables_.categories.size() > kMaxClasses) {
      throw WrongAnnotations{"names more images or categories than can be used"};
    }
  }

  AnnotationTables& tables_;
  int depth_ = 0;
  bool in_list_ = false, whole_ = false;
  std::string section_, key_;
  Entry entry_;
  std::vector<std::pair<std::string, bool>> sections_{
      {"images", false}, {"categories", false}, {"annotations", false}};
};

}  // namespace

AnnotationTables read_tables(const TextPieces& pieces) {
  AnnotationTables tables;
  Reader reader(tables);
  TokenLimits limits;
  const TextPieces checked = [&] {
    const std::string_view piece = pieces();
    limits.check(piece);
    return piece;
  };
  if (!Json::sax_parse(PieceIterator(checked), PieceIterator(), &reader) || !reader.whole()) {
    throw WrongAnnotations{"is no whole JSON object"};
  }
  return tables;
}

}  // namespace cputrain::datasets

#include "datasets/lists/list_table.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/folders/folder_names.h"

namespace cputrain::datasets {
namespace {

[[noreturn]] void refuse(const std::string& path, std::size_t line, const std::string& what) {
  fail(ExitCode::data, fmt::format("'{}' line {}: {}", path, line, what));
}

[[noreturn]] void refuse_size(const std::string& path, std::size_t line, const std::string& what) {
  refuse(path, line,
         what +
             " (a list names an image and its class per line); check that it is a list, and that "
             "quotes have an end");
}

[[noreturn]] void refuse_row(const std::string& path, std::size_t line) {
  refuse_size(path, line, fmt::format("a row of more than {} bytes", with_commas(kMaxRowBytes)));
}

/// Blanks of ASCII, and the no-break space of tables copied from elsewhere.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kNoBreak = "\xC2\xA0", kBlanks = " \t\r\n\v\f";
  for (std::size_t before = text.size() + 1; before != text.size();) {
    before = text.size();
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
    if (text.starts_with(kNoBreak)) text.remove_prefix(kNoBreak.size());
    if (text.ends_with(kNoBreak)) text.remove_suffix(kNoBreak.size());
  }
  return text;
}

/// The lines of a list with their ends: LF, CR LF or, as old Macs wrote, CR.
class Lines {
 public:
  explicit Lines(const TextPieces& pieces) : pieces_(pieces) {}

  /// Empty at the end, and cut where it is longer than a row may be. A line within a piece stays
  /// there; the parts of others are joined.
  std::string_view next() {
    ++number_;
    joined_.clear();
    while (fill()) {
      const bool after_cr = joined_.ends_with('\r');
      const std::string_view part = take(after_cr ? piece_.starts_with('\n') : line_size());
      const bool whole =
          after_cr || part.ends_with('\n') || (part.ends_with('\r') && !piece_.empty());
      if (whole && joined_.empty()) return part;
      joined_ += part;
      if (whole || joined_.size() > kMaxRowBytes) break;
    }
    return joined_;
  }

  std::size_t number() const { return number_; }

 private:
  bool fill() {
    if (piece_.empty()) piece_ = pieces_();
    return !piece_.empty();
  }

  std::size_t line_size() const {
    const std::size_t end = std::min(piece_.find_first_of("\r\n"), piece_.size());
    return std::min(end + (piece_.substr(end).starts_with("\r\n") ? 2 : 1), piece_.size());
  }

  std::string_view take(std::size_t size) {
    const std::string_view part = piece_.substr(0, size);
    piece_.remove_prefix(size);
    return part;
  }

  const TextPieces& pieces_;
  std::string_view piece_;
  std::string joined_;
  std::size_t number_ = 0;
};

/// Excel calls UTF-16 "Unicode text". `begin` is the line's place in the file.
void check_encoding(std::string_view line, std::size_t begin, std::size_t number,
                    const std::string& path) {
  const bool marked = line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF");
  const std::size_t zero = line.find('\0');
  if ((marked && begin == 0) || (zero < 4 && begin + zero < 4)) {
    fail(ExitCode::data,
         fmt::format("list file '{0}' is UTF-16 or UTF-32 (lists are read as UTF-8); convert it: "
                     "iconv -f UTF-16 -t UTF-8 '{0}' > list.csv",
                     path));
  }
  if (zero != std::string_view::npos) {
    refuse(
        path, number,
        "holds a zero byte (no name has one, so the file is damaged or no list); write it again");
  }
}

/// Comments are what stands above the first row; behind it, and with the name of an image, a line
/// with '#' is a row like any other.
bool is_skipped(std::string_view line, bool above_rows) {
  const std::string_view content = trimmed(line);
  if (content.empty()) return true;
  const std::string_view first = trimmed(content.substr(0, content.find_first_of("\t,;")));
  return above_rows && content.starts_with('#') && !(is_image_file_name(first) && first[1] != ' ');
}

/// As the first row has it.
char separator_of(std::string_view line, const std::string& path) {
  const bool tabs = line.find('\t') != std::string_view::npos;
  if (tabs || !lower_case(path).ends_with(".csv")) return '\t';
  return line.find(',') != std::string_view::npos ? ',' : ';';
}

/// libcsv with the fields that it finds. Exceptions must not cross its C frames.
class Parser {
 public:
  using Take = std::function<void(const ListRow&)>;

  Parser(const std::string& path, char separator, const Take& take) : path_(path), take_(take) {
    // A quote inside a word is an error in CSV and a character as any other between tabs.
    const unsigned char strict = separator == '\t' ? 0 : CSV_STRICT;
    if (csv_init(&parser_, strict | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
    csv_set_delim(&parser_, static_cast<unsigned char>(separator));
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() { csv_free(&parser_); }

  /// Between two rows, not within a field that goes on.
  bool between_rows() const { return !within_; }

  void parse(std::string_view line, std::size_t number) {
    if (!within_) {
      row_.line = number;
      bytes_ = 0;
    }
    within_ = true;
    bytes_ += line.size();
    if (bytes_ > kMaxRowBytes) refuse_row(path_, row_.line);
    const std::size_t done = csv_parse(&parser_, line.data(), line.size(), on_field, on_row, this);
    check(done == line.size(), number);
  }

  void finish(std::size_t number) {
    check(csv_fini(&parser_, on_field, on_row, this) == 0, number);
  }

 private:
  static void on_field(void* bytes, std::size_t size, void* self) {
    static_cast<Parser*>(self)->guarded([=](Parser& parser) {
      const std::string_view field(static_cast<const char*>(bytes), size);
      parser.add(trimmed(field));
    });
  }

  static void on_row(int, void* self) {
    static_cast<Parser*>(self)->guarded([](Parser& parser) { parser.end_row(); });
  }

  void add(std::string_view field) {
    if (field.size() > kMaxCellBytes) {
      refuse_size(path_, row_.line,
                  fmt::format("a field of more than {} bytes", with_commas(kMaxCellBytes)));
    }
    if (row_.fields.size() == kMaxColumns) {
      refuse_size(path_, row_.line, fmt::format("more than {} fields", with_commas(kMaxColumns)));
    }
    row_.fields.emplace_back(field);
  }

  void end_row() {
    within_ = false;
    const std::size_t count = row_.fields.size();
    if (first_line_ == 0) {
      first_line_ = row_.line;
      columns_ = count;
    }
    if (count != columns_) {
      refuse(path_, row_.line,
             fmt::format("{} field{} where line {} has {} (a name with a separator in it needs "
                         "quotes around it); correct the line",
                         count, count == 1 ? "" : "s", first_line_, columns_));
    }
    take_(row_);
    row_.fields.clear();
  }

  template <class Work>
  void guarded(Work work) noexcept {
    try {
      if (!problem_) work(*this);
    } catch (...) {
      problem_ = std::current_exception();
    }
  }

  void check(bool parsed, std::size_t number) {
    if (problem_) std::rethrow_exception(problem_);
    if (parsed) return;
    const std::size_t line = within_ && row_.line > 0 ? row_.line : number;
    refuse(
        path_, line,
        "a quote that is out of place or has no end (a field in quotes holds quotes doubled, and "
        "one with quotes in it needs quotes around it); correct the line");
  }

  const std::string& path_;
  const Take& take_;
  csv_parser parser_{};
  ListRow row_;
  std::size_t bytes_ = 0;  ///< the row's, with quotes and separators
  std::size_t first_line_ = 0, columns_ = 0;
  bool within_ = false;
  std::exception_ptr problem_;
};

}  // namespace

std::string plain_header(std::string_view name) {
  std::string letters = lower_case(name);
  std::erase_if(letters, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return letters;
}

void read_table(const TextPieces& text, const std::string& path,
                const std::function<void(const ListRow&)>& take) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // UTF-8 as Windows editors mark it
  std::optional<Parser> parser;
  Lines lines(text);
  std::size_t begin = 0;
  for (std::string_view line = lines.next(); !line.empty(); line = lines.next()) {
    check_encoding(line, begin, lines.number(), path);
    if (line.size() > kMaxRowBytes) refuse_row(path, lines.number());
    const bool marked = begin == 0 && line.starts_with(kMark);
    begin += line.size();
    if (marked) line.remove_prefix(kMark.size());
    if ((!parser || parser->between_rows()) && is_skipped(line, !parser)) continue;
    if (!parser) parser.emplace(path, separator_of(line, path), take);
    parser->parse(line, lines.number());
  }
  if (parser) parser->finish(lines.number() - 1);
}

}  // namespace cputrain::datasets

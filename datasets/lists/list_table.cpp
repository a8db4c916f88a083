#include "datasets/lists/list_table.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/folders/file_dataset.h"
#include "datasets/folders/folder_names.h"

namespace cputrain::datasets {
namespace {

[[noreturn]] void refuse(const std::string& path, std::size_t line, const std::string& what) {
  fail(ExitCode::data, fmt::format("'{}' line {}: {}", path, line, what));
}

/// Excel calls it "Unicode text".
void check_encoding(std::string_view text, const std::string& path) {
  const bool marked = text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
  const std::size_t zero = text.find('\0');
  if (marked || zero < 4) {
    fail(ExitCode::data,
         fmt::format("list file '{0}' is UTF-16 or UTF-32 (lists are read as UTF-8); convert it: "
                     "iconv -f UTF-16 -t UTF-8 '{0}' > list.csv",
                     path));
  }
  if (zero != std::string_view::npos) {
    const auto line = std::ranges::count(text.substr(0, zero), '\n') + 1;
    refuse(
        path, static_cast<std::size_t>(line),
        "holds a zero byte (no name has one, so the file is damaged or no list); write it again");
  }
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

/// The next line with its end: LF, CR LF or, as old Macs wrote, CR.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
  std::size_t after = std::min(end + 1, text.size());
  if (text.substr(end).starts_with("\r\n")) ++after;
  const std::string_view line = text.substr(0, after);
  text.remove_prefix(after);
  return line;
}

/// Comments are what stands above the first row; behind it, and with the name of an image, a line
/// with '#' is a row like any other.
bool is_skipped(std::string_view line, bool above_rows) {
  const std::string_view content = trimmed(line);
  if (content.empty()) return true;
  const std::string_view first = trimmed(content.substr(0, content.find_first_of("\t,;")));
  return above_rows && content.starts_with('#') && !(is_image_file_name(first) && first[1] != ' ');
}

char separator_of(std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (is_skipped(line, true)) continue;
    if (line.find('\t') != std::string_view::npos || !lower_case(path).ends_with(".csv")) break;
    return line.find(',') != std::string_view::npos ? ',' : ';';
  }
  return '\t';
}

/// libcsv with the fields that it finds. Exceptions must not cross its C frames.
class Parser {
 public:
  using Take = std::function<void(ListRow&&)>;

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
    if (bytes_ > kMaxRowBytes) {
      refuse_size(fmt::format("a row of more than {} bytes", with_commas(kMaxRowBytes)));
    }
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
      refuse_size(fmt::format("a field of more than {} bytes", with_commas(kMaxCellBytes)));
    }
    if (row_.fields.size() == kMaxColumns) {
      refuse_size(fmt::format("more than {} fields", with_commas(kMaxColumns)));
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
    take_(std::exchange(row_, {}));
  }

  [[noreturn]] void refuse_size(const std::string& what) const {
    refuse(path_, row_.line,
           what +
               " (a list names an image and its class per line); check that it is a list, and "
               "that quotes have an end");
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
  std::size_t bytes_ = 0;  ///< of the row, with quotes and separators
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

void read_table(std::string_view text, const std::string& path,
                const std::function<void(ListRow&&)>& take) {
  check_encoding(text, path);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // UTF-8 mark of Windows editors
  Parser parser(path, separator_of(text, path), take);
  std::size_t number = 0;
  bool above_rows = true;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    ++number;
    if (parser.between_rows() && is_skipped(line, above_rows)) continue;
    above_rows = false;
    parser.parse(line, number);
  }
  parser.finish(number);
}

}  // namespace cputrain::datasets

#include "scaling/report/reference_table.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>

#include "core/error.h"
#include "core/text.h"
#include "scaling/report/scaling_table.h"
#include "system/bounded_file.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {
namespace {

constexpr std::size_t kMostBytes = 1 << 20, kMostFigures = 1000;
constexpr int kMostCount = 1 << 24;
constexpr std::size_t kMostImages = 1'000'000'000'000;
constexpr double kMostSeconds = 1e12;

/// Ends the reading of a line, which parse_reference() then names.
[[noreturn]] void refuse_line(const std::string& what) { throw std::invalid_argument(what); }

template <class T>
T number_of(const std::string& text, T least, T most, const char* column) {
  const auto value = number_in<T>(text);
  if (!value || !(*value >= least && *value <= most)) {  // NaN is neither
    refuse_line(fmt::format("{} must be a number from {} to {}, not \"{}\"", column, least, most,
                            printable(text)));
  }
  return *value;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  const auto last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/// The field whose opening quote is at `at`, without its quotes. Leaves `at` behind the closing
/// one.
std::string quoted_field(const std::string& line, std::size_t& at) {
  std::string field;
  while (++at < line.size()) {
    if (line[at] == '"' && line.substr(at + 1, 1) != "\"") {
      ++at;
      return field;
    }
    at += line[at] == '"';  // a quote in a field is doubled
    field += line[at];
  }
  refuse_line("a quote that this line does not close");
}

/// Fields as RFC 4180 has them, on one line each, with blanks around them left out.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; at <= line.size(); ++at) {
    const std::size_t first = line.find_first_not_of(" \t", at);
    const bool quoted = first != std::string::npos && line[first] == '"';
    if (quoted) {
      at = first;
      fields.push_back(quoted_field(line, at));
    }
    const std::size_t end = std::min(line.find(',', at), line.size());
    const std::string rest = trimmed(line.substr(at, end - at));
    if (!quoted) fields.push_back(rest);
    if (quoted && !rest.empty()) refuse_line("text between a closing quote and the next comma");
    at = end;
  }
  return fields;
}

/// Column numbers of cpus, batch and seconds_per_epoch.
std::array<std::size_t, 3> wanted_columns(const std::vector<std::string>& head) {
  std::array<std::size_t, 3> columns{};
  for (std::size_t i = 0; const char* name : {"cpus", "batch", "seconds_per_epoch"}) {
    const auto found = std::ranges::find(head, name);
    if (found == head.end()) refuse_line(fmt::format("there is no column {}", name));
    if (std::ranges::count(head, name) > 1) refuse_line(fmt::format("two columns {}", name));
    columns[i++] = static_cast<std::size_t>(found - head.begin());
  }
  return columns;
}

void add_line(ReferenceTable& table, const std::vector<std::string>& fields,
              const std::array<std::size_t, 3>& columns, std::size_t width) {
  if (fields.size() != width) {
    refuse_line(fmt::format("{} fields where the first line has {}", fields.size(), width));
  }
  const int cpus = number_of(fields[columns[0]], 1, kMostCount, "cpus");
  const int batch = number_of(fields[columns[1]], 1, kMostCount, "batch");
  const std::string& time = fields[columns[2]];
  std::optional<double> seconds;
  if (!time.empty() && time != "n/a" && time != "N/A") {
    seconds = number_of(time, 1e-9, kMostSeconds, "seconds_per_epoch");
  }
  if (!table.seconds.emplace(std::pair{static_cast<std::size_t>(batch), cpus}, seconds).second) {
    refuse_line(fmt::format("batch {} on {} CPUs for a second time", batch, cpus));
  }
  if (table.seconds.size() > kMostFigures)
    refuse_line(fmt::format("more than {} rows", kMostFigures));
}

/// "# model=dogcat, image_size=256": takes what it knows, the rest is for people.
void read_remark(ReferenceTable& table, const std::string& line) {
  for (const std::string& part : split(line.substr(1), ',')) {
    const auto equals = part.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = trimmed(part.substr(0, equals));
    const std::string value = trimmed(part.substr(equals + 1));
    if (key == "model") table.model = printable(value);
    if (key == "image_size") {
      table.image_size = number_of(value, 1, kMostCount, "image_size");
    }
    if (key == "images") {
      table.images = number_of<std::size_t>(value, 1, kMostImages, "images");
    }
  }
}

}  // namespace

std::string ReferenceTable::other_than(const cells::CellTable& ours) const {
  std::vector<std::string> differ;
  const auto compare = [&](const char* what, bool both, const auto& theirs, const auto& own) {
    if (both && theirs != own) {
      differ.push_back(fmt::format("{} ({}, ours is {})", what, theirs, own));
    }
  };
  compare("model", !model.empty() && !ours.model.empty(), model, ours.model);
  compare("image size", image_size > 0 && ours.image_size > 0, image_size, ours.image_size);
  compare("images per epoch", images > 0 && ours.images_per_epoch > 0, images,
          ours.images_per_epoch);
  return join(differ, ", ");
}

std::optional<double> ReferenceTable::ratio(const cells::CellTable& ours,
                                            const cells::Cell& cell) const {
  const bool alike =
      !training::is_device(cell.backend) && !cell.batch_per_rank && cell.seconds_per_epoch;
  const auto published = at(cell.batch, cell.cpus);
  if (!alike || !published || !other_than(ours).empty()) return std::nullopt;
  return *cell.seconds_per_epoch / *published;
}

std::optional<double> ReferenceTable::at(std::size_t batch, int cpu) const {
  const auto found = seconds.find({batch, cpu});
  return found == seconds.end() ? std::nullopt : found->second;
}

ReferenceTable parse_reference(const std::string& text, const std::string& name) {
  ReferenceTable table{.name = name, .cpus = {}, .batches = {}, .seconds = {}};
  std::array<std::size_t, 3> columns{};
  std::size_t number = 0, width = 0;
  const bool marked = text.starts_with("\xef\xbb\xbf");  // as UTF-8, by spreadsheets
  try {
    for (const std::string& line : split(std::string_view(text).substr(marked ? 3 : 0), '\n')) {
      ++number;
      if (line.starts_with('#')) {
        read_remark(table, line);
        continue;
      }
      const std::vector<std::string> fields = fields_of(line);
      if (fields.size() == 1 && fields[0].empty()) continue;
      if (width == 0) {
        width = fields.size();
        columns = wanted_columns(fields);
      } else {
        add_line(table, fields, columns, width);
      }
    }
    if (table.seconds.empty()) refuse_line("there are no figures");
  } catch (const std::invalid_argument& mistake) {
    fail(ExitCode::data,
         "{}, line {}: {} (a published table has the columns cpus, batch and seconds_per_epoch); "
         "see --reference in --help",
         name, number, mistake.what());
  }
  std::set<int> cpus;
  std::set<std::size_t> batches;
  for (const auto& [where, seconds] : table.seconds) {
    batches.insert(where.first);
    cpus.insert(where.second);
  }
  table.cpus.assign(cpus.begin(), cpus.end());
  table.batches.assign(batches.begin(), batches.end());
  return table;
}

ReferenceTable read_reference(const std::filesystem::path& path) {
  std::string text, mistake;
  try {
    text = system::read_bounded(path, kMostBytes);
    if (text.empty()) mistake = "is empty";
  } catch (const std::runtime_error& error) {
    mistake = error.what();
  }
  if (!mistake.empty()) {
    fail(ExitCode::data,
         "--reference {}: {} (a published table is compared with ours); give a CSV file with the "
         "columns cpus, batch and seconds_per_epoch",
         path.string(), mistake);
  }
  return parse_reference(text, path.filename().string());
}

std::vector<std::pair<std::size_t, std::size_t>> identical_rows(const ReferenceTable& table) {
  std::map<std::size_t, std::vector<std::pair<int, double>>> rows;  // CPUs and time, by batch
  for (const auto& [where, seconds] : table.seconds) {
    if (seconds) rows[where.first].emplace_back(where.second, *seconds);
  }
  std::erase_if(rows, [](const auto& row) { return row.second.size() < 2; });
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (auto a = rows.begin(); a != rows.end(); ++a) {
    for (auto b = std::next(a); b != rows.end(); ++b) {
      if (a->second == b->second) pairs.emplace_back(a->first, b->first);
    }
  }
  return pairs;
}

}  // namespace cputrain::report

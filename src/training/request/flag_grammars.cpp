#include "training/request/flag_grammars.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "core/names.h"
#include "core/precision.h"
#include "core/text.h"
#include "logging/reporters.h"

namespace cputrain::training {
namespace {

/// A positive number at the beginning of a text, and what follows it.
struct NumberAndUnit {
  double number;
  std::string_view unit;
  bool whole;
};

std::optional<NumberAndUnit> split_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return std::nullopt;
  return NumberAndUnit{number, {end, text.data() + text.size()}, number == std::floor(number)};
}

/// The shorter text that is the number itself.
std::string bound_text(double bound) {
  const std::string text = fmt::format("{:g}", bound);
  return std::stod(text) == bound ? text : fmt::format("{}", bound);
}

/// Words between commas.
std::vector<std::string> parse_list(const std::string& flag, const std::string& text) {
  std::vector<std::string> words = split(text, ',');
  if (std::ranges::find(words, "") == words.end()) return words;
  fail(ExitCode::usage,
       fmt::format("--{} {}: must be words with one comma between each two", flag, text));
}

}  // namespace

std::int64_t parse_whole(const std::string& flag, const std::string& text, std::int64_t min,
                         std::int64_t max) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < min || value > max) {
    fail(ExitCode::usage,
         fmt::format("--{} {}: must be a whole number from {} to {}", flag, text, min, max));
  }
  return value;
}

std::vector<std::int64_t> parse_wholes(const std::string& flag, const std::string& text,
                                       std::int64_t min, std::int64_t max) {
  constexpr std::size_t kMost = 1000;
  std::vector<std::int64_t> values;
  for (const std::string& part : split(text, ',')) {
    std::int64_t value = 0;
    const char* end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data(), end, value);
    const bool read = error == std::errc{} && stop == end && value >= min && value <= max;
    if (!read || values.size() == kMost || std::ranges::find(values, value) != values.end()) {
      fail(ExitCode::usage,
           fmt::format("--{} {}: must be different whole numbers from {} to {}, with one comma "
                       "between each two",
                       flag, text, min, max));
    }
    values.push_back(value);
  }
  return values;
}

double parse_real(const std::string& flag, const std::string& text, double min, double max) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value) || value < min || value > max) {
    fail(ExitCode::usage, fmt::format("--{} {}: must be a number from {} to {}", flag, text,
                                      bound_text(min), bound_text(max)));
  }
  return value;
}

std::vector<data::BatchGrowth> parse_growth(const std::string& text) {
  std::vector<data::BatchGrowth> growth;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    int epochs = 0, factor = 0, used = 0;
    const bool read = std::sscanf(part.c_str(), "%7d:%7d%n", &epochs, &factor, &used) == 2 &&
                      static_cast<std::size_t>(used) == part.size();
    const int least = growth.empty() ? 1 : growth.back().epochs + 1;
    if (!read || epochs < least || epochs > 1'000'000 || factor < 1 || factor > 65536) {
      fail(ExitCode::usage,
           "--batch-growth " + text +
               ": must be EPOCHS:FACTOR[,...], whole numbers from 1, epochs ascending: 30:2,60:4 "
               "has twice the batch after 30 epochs and four times after 60");
    }
    growth.push_back({epochs, factor});
    begin = end + 1;
  }
  return growth;
}

std::string growth_text(const std::vector<data::BatchGrowth>& growth) {
  std::vector<std::string> parts;
  for (const data::BatchGrowth& g : growth)
    parts.push_back(fmt::format("{}:{}", g.epochs, g.factor));
  return fmt::format("{}", fmt::join(parts, ","));
}

checkpoint::Marks parse_marks(const std::string& text) {
  checkpoint::Marks marks;
  if (text == "0") return marks;
  constexpr double kMostSteps = 1e12, kMostSeconds = 1e9, kMostEpochs = 1e6;
  const auto wrong = [&text] {
    fail(ExitCode::usage, "--checkpoint-every " + text +
                              ": must be 0 (never) or a list of N (steps), Ns (seconds), Nm "
                              "(minutes), Nh (hours) and Ne (epochs), each once: 10m,1e");
  };
  for (const std::string& part : split(text, ',')) {
    const auto read = split_number(part);
    if (!read) wrong();
    const auto& [number, unit, whole] = *read;
    const double seconds = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
    if (unit.empty() && whole && number <= kMostSteps && !marks.steps) {
      marks.steps = static_cast<std::uint64_t>(number);
    } else if (unit == "e" && whole && number <= kMostEpochs && !marks.epochs) {
      marks.epochs = static_cast<int>(number);
    } else if (seconds > 0 && number * seconds <= kMostSeconds && !marks.seconds) {
      marks.seconds = number * seconds;
    } else {
      wrong();
    }
  }
  if (marks.none()) wrong();
  return marks;
}

EarlyStopping parse_early_stopping(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto patience = split_number(text.substr(0, colon));
  const std::string delta = colon == std::string::npos ? "0" : text.substr(colon + 1);
  const auto least = delta == "0" ? NumberAndUnit{0, "", true} : split_number(delta);
  if (!patience || !patience->whole || !patience->unit.empty() || patience->number > 1e6 ||
      !least || !least->unit.empty()) {
    fail(ExitCode::usage,
         "--early-stopping " + text +
             ": must be PATIENCE[:MIN_DELTA], a whole number of epochs from 1 and by how much the "
             "loss of validation must fall (the accuracy rise) to count: 5 or 5:0.001");
  }
  return {static_cast<int>(patience->number), least->number};
}

loop::StepRange parse_steps(const std::string& text) {
  loop::StepRange range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  const bool colon = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  const auto last = colon ? std::from_chars(first.ptr + 1, end, range.last) : first;
  if (!colon || last.ec != std::errc() || last.ptr != end || range.first < 1 ||
      range.last < range.first) {
    fail(ExitCode::usage,
         "--timeline-steps " + text + ": must be FIRST:LAST, both counted from 1, such as 20:25");
  }
  return range;
}

std::vector<std::string> parse_freeze(const std::string& text) {
  std::vector<std::string> words = parse_list("freeze", text);
  if (words.size() == 1 || std::ranges::find(words, "none") == words.end()) return words;
  fail(ExitCode::usage, fmt::format("--freeze {}: none stands alone (beside it, other words would "
                                    "freeze layers); leave out none, or the others",
                                    text));
}

std::vector<std::string> parse_log_formats(const std::string& text) {
  const std::vector<std::string> known = logging::log_format_words();
  std::vector<std::string> formats = parse_list("log-format", text);
  for (const std::string& format : formats) {
    if (std::ranges::count(known, format) > 0) continue;
    if (format != "dawnbench") refuse_word("log-format", format, known);
    refuse_word("log-format", format, known,
                "; dawnbench was removed; use metrics.jsonl, which each run has: seconds and "
                "val_accuracy by epoch");
  }
  return formats;
}

bool is_device(const std::string& backend) {
  const auto named = [&](std::string_view word) { return backend.find(word) != std::string::npos; };
  constexpr std::array<std::string_view, 3> kOfOthers{"gpu", "nccl", "rocm"};  // in other tables
  return std::ranges::any_of(kDeviceBackends, named) || std::ranges::any_of(kOfOthers, named);
}

std::string precision_in_figures(const std::string& backend, std::string_view precision) {
  if (precision != word_of(Precision::f32)) return std::string(precision);
  return is_device(backend) ? "tf32" : "";
}

std::string backend_in_figures(const std::string& backend, std::string_view precision) {
  const std::string word = precision_in_figures(backend, precision);
  return backend + (backend.empty() || word.empty() ? "" : " ") + word;
}

}  // namespace cputrain::training

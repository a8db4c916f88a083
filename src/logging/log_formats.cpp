#include "logging/log_formats.h"

#include <fmt/format.h>

#include "core/text.h"

namespace cputrain::logging {
namespace {

constexpr LogFormat kFormats[] = {
    {"mlperf", "mlperf.log", nullptr,
     [](const FormatRequest& r) {
       return mlperf_reporter(r.folder / "mlperf.log", r.facts, r.place, r.queue);
     }},
    {"dawnbench", "dawnbench.tsv", "dawnbench.json",
     [](const FormatRequest& r) {
       return dawnbench_reporter(r.folder, r.facts, r.place, r.queue);
     }},
    {"tf_cnn_benchmarks", nullptr, nullptr,
     [](const FormatRequest& r) { return benchmark_lines_reporter(stdout, r.facts, r.log_every); }},
};

}  // namespace

std::span<const LogFormat> log_formats() { return kFormats; }

std::vector<std::string> log_format_words() {
  std::vector<std::string> words;
  for (const LogFormat& format : kFormats) words.emplace_back(format.word);
  return words;
}

std::string log_format_texts() {
  std::vector<std::string> texts;
  for (const LogFormat& format : kFormats) {
    texts.push_back(fmt::format(
        "{} ({}{}{})", format.word, format.lines ? format.lines : "lines on the terminal",
        format.summary ? " and " : "", format.summary ? format.summary : ""));
  }
  return join(texts, ", ");
}

std::vector<std::string> log_format_files() {
  std::vector<std::string> files = growing_format_files();
  for (const LogFormat& format : kFormats) {
    if (format.summary) files.emplace_back(format.summary);
  }
  return files;
}

std::vector<std::string> growing_format_files() {
  std::vector<std::string> files;
  for (const LogFormat& format : kFormats) {
    if (format.lines) files.emplace_back(format.lines);
  }
  return files;
}

}  // namespace cputrain::logging

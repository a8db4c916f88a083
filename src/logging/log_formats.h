#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "logging/reporters.h"

namespace cputrain::logging {

/// What a log in another program's format is made of.
struct FormatRequest {
  std::filesystem::path folder;  ///< of the run
  const RunFacts& facts;
  const LogPlace& place;
  std::size_t log_every = 0;
  system::WriteQueue* queue = nullptr;
};

/// A log in another program's format. The word is that of --log-format.
struct LogFormat {
  std::string_view word;
  const char* lines = nullptr;    ///< file of the run's folder that grows; null: on the terminal
  const char* summary = nullptr;  ///< file that is written at the end, if there is one
  std::unique_ptr<Reporter> (*make)(const FormatRequest&) = nullptr;

  bool on_terminal() const { return !lines; }
};

std::span<const LogFormat> log_formats();
std::vector<std::string> log_format_words();
/// "mlperf (mlperf.log), ...": for help.
std::string log_format_texts();
/// Files of all formats, and those of them that grow.
std::vector<std::string> log_format_files();
std::vector<std::string> growing_format_files();

}  // namespace cputrain::logging

#include "training/run/evaluation_log.h"

#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "core/json_text.h"
#include "system/bounded_file.h"
#include "system/files.h"

namespace cputrain::training {
namespace {

namespace fs = std::filesystem;

/// Whether what is there ends amid a line, which a line after it would be lost with.
bool is_cut_off(const fs::path& path) {
  try {
    const system::RegularFile file(path);
    std::byte last{'\n'};
    if (file.size() > 0) file.read_at(file.size() - 1, std::span(&last, 1));
    return last != std::byte{'\n'};
  } catch (const std::runtime_error&) {
    return false;  // no file yet, or none that is gone on with
  }
}

/// As it is called in the run's folder, which may move.
std::string weights_name(const fs::path& run, const std::string& weights) {
  std::error_code error;
  const fs::path name = fs::relative(weights, run, error);
  return error || name.empty() ? weights : name.string();
}

}  // namespace

void log_evaluation(const fs::path& file, const EvaluationFacts& facts) {
  const nlohmann::ordered_json line{{"date", facts.date},
                                    {"weights", weights_name(file.parent_path(), facts.weights)},
                                    {"data", facts.data},
                                    {"part", facts.part},
                                    {"images", static_cast<std::uint64_t>(facts.images)},
                                    {"loss", facts.loss},
                                    {"accuracy", known(facts.accuracy)},
                                    {"tta", facts.looks},
                                    {"doubt", facts.doubt},
                                    {"build", facts.build},
                                    {"command", facts.command}};
  const std::string begin = is_cut_off(file) ? "\n" : "";
  system::LineFile(file, system::Begin::append).write_line(begin + json_text(line));
}

}  // namespace cputrain::training

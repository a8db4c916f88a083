#include "training/request/flag_row.h"

#include <fmt/format.h>

#include "core/text.h"
#include "training/request/choose_training.h"

namespace cputrain::training {

FlagRow& FlagRow::recorded() {
  holds = [get = get](const TrainingSpec& spec) { return get(spec.flags); };
  return *this;
}

std::string FlagRow::spelling(const TrainingFlags& flags) const {
  const nlohmann::ordered_json value = get(flags);
  if (value.is_string()) return value;
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

std::string FlagRows::join_words(const std::vector<std::string>& words) { return join(words, "|"); }

}  // namespace cputrain::training

#include "cli/flags/flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::cli {

std::int64_t Flags::parse_whole(const std::string& name, const std::string& text, std::int64_t min,
                                std::int64_t max) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < min || value > max) {
    fail(ExitCode::usage,
         fmt::format("--{} {}: must be a whole number from {} to {}", name, text, min, max));
  }
  return value;
}

std::vector<std::int64_t> Flags::parse_wholes(const std::string& name, const std::string& text,
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
                       name, text, min, max));
    }
    values.push_back(value);
  }
  return values;
}

double Flags::parse_real(const std::string& name, const std::string& text, double min, double max) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value) || value < min || value > max) {
    fail(ExitCode::usage,
         fmt::format("--{} {}: must be a number from {:g} to {:g}", name, text, min, max));
  }
  return value;
}

void Flags::add(const std::string& name, const std::string& meta, const std::string& help,
                std::function<void(const std::string&)> set) {
  names_.insert(name);
  with_value_.insert(name);
  app_.add_option_function<std::string>(
          "--" + name,
          [this, name, set = std::move(set)](const std::string& value) {
            set(value);
            given_.emplace_back(name, value);
          },
          help)
      ->type_name(meta)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group(group_);
}

void Flags::list(const std::string& name, std::vector<std::string>& target, const std::string& meta,
                 const std::string& help) {
  add(name, meta, help, [name, &target](const std::string& text) {
    target = split(text, ',');
    if (std::ranges::find(target, "") == target.end()) return;
    fail(ExitCode::usage,
         fmt::format("--{} {}: must be words with one comma between each two", name, text));
  });
}

void Flags::choice(const std::string& name, const std::vector<std::string>& choices,
                   const std::string& help, std::function<void(const std::string&)> set) {
  add(name, join(choices, "|"), help,
      [name, choices, set = std::move(set)](const std::string& text) {
        if (std::ranges::find(choices, text) == choices.end()) {
          fail(ExitCode::usage, fmt::format("--{} {}: must be one of {}{}", name, text,
                                            join(choices, ", "), did_you_mean(text, choices)));
        }
        set(text);
      });
}

void Flags::yes(const std::string& name, bool& target, const std::string& help) {
  names_.insert(name);
  app_.add_flag_callback(
          "--" + name,
          [this, name, &target] {
            target = true;
            given_.emplace_back(name, "true");
          },
          help)
      ->group(group_);
}

void Flags::no(const std::string& name, bool& target, const std::string& help) {
  names_.insert("no-" + name);
  app_.add_flag_callback(
          "--no-" + name,
          [this, name, &target] {
            target = false;
            given_.emplace_back("no-" + name, "true");
          },
          help)
      ->group(group_);
}

void Flags::yes_or_no(const std::string& name, std::optional<bool>& target,
                      const std::string& help) {
  const auto option = [&](const std::string& flag, bool value, const std::string& text) {
    names_.insert(flag);
    app_.add_flag_callback(
            "--" + flag,
            [this, flag, value, &target] {
              target = value;
              given_.emplace_back(flag, "true");
            },
            text)
        ->group(group_);
  };
  option(name, true, help);
  option("no-" + name, false, "the opposite");
  exclusive(name, "no-" + name);
}

void Flags::exclusive(const std::string& a, const std::string& b) {
  rivals_[a] = b;
  rivals_[b] = a;
}

std::string Flags::resolved(const std::string& word) const {
  const auto found = aliases_.find(word);
  return found == aliases_.end() ? word : found->second;
}

std::string Flags::rival(const std::string& name) const {
  const auto found = rivals_.find(name);
  return found == rivals_.end() ? "" : found->second;
}

}  // namespace cputrain::cli

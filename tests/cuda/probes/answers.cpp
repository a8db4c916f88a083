#include "cuda/probes/answers.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace cputrain::cuda::probes {
namespace {

constexpr std::size_t kFields = 6;

const char* text_of(Verdict verdict) {
  if (verdict == Verdict::none) return "";
  return verdict == Verdict::as_assumed ? "as assumed" : "differs";
}

Verdict verdict_named(const std::string& text) {
  if (text.empty()) return Verdict::none;
  return verdict_of(text == text_of(Verdict::as_assumed));
}

/// Tabs separate fields and lines answers, so no field has either.
std::string in_one_field(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

nlohmann::ordered_json or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

}  // namespace

Verdict verdict_of(bool same) { return same ? Verdict::as_assumed : Verdict::differs; }

Verdict verdict_of(double value, std::optional<double> assumed, double share) {
  if (!assumed) return Verdict::none;
  return verdict_of(std::abs(value - *assumed) <= share * *assumed);
}

std::string words(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string sent(const Answer& a) {
  const std::string value = a.value ? words("%.9g", *a.value) : "";
  std::string line;
  for (const std::string& field :
       {a.name, a.question, value, a.unit, std::string(text_of(a.verdict)), a.text}) {
    line += (line.empty() ? "" : "\t") + in_one_field(field);
  }
  return line;
}

Answer received(const std::string& line, const std::string& group) {
  const std::vector<std::string> fields = fields_of(line);
  if (fields.size() != kFields || fields[0].empty()) return {.name = group, .text = "says " + line};
  Answer a{.name = fields[0], .question = fields[1], .unit = fields[3], .text = fields[5]};
  if (!fields[2].empty()) a.value = std::strtod(fields[2].c_str(), nullptr);
  a.verdict = verdict_named(fields[4]);
  return a;
}

std::string printed(const Answer& a) {
  const std::string verdict = text_of(a.verdict);
  return a.name + ": " + a.text + (verdict.empty() ? "" : " (" + verdict + ")");
}

std::string json_of(const std::vector<Answer>& answers) {
  auto all = nlohmann::ordered_json::array();
  for (const Answer& a : answers) {
    nlohmann::ordered_json one = {{"name", a.name}, {"question", or_null(a.question)}};
    // JSON has no word for NaN and infinity.
    one["value"] = a.value && std::isfinite(*a.value) ? nlohmann::ordered_json(*a.value) : nullptr;
    one["unit"] = or_null(a.unit);
    one["verdict"] = or_null(text_of(a.verdict));
    one["text"] = a.text;
    all.push_back(std::move(one));
  }
  return all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace cputrain::cuda::probes

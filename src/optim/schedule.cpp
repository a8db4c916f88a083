#include "optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "core/error.h"
#include "core/number_in.h"
#include "core/overloaded.h"
#include "core/text.h"

namespace cputrain::optim {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& what) {
  fail(ExitCode::usage,
       fmt::format("--schedule {}: {}; forms are {}", text, what, schedule_forms()));
}

/// The figures after the schedule's name, each within limits.
class Figures {
 public:
  Figures(std::string_view text, std::vector<std::string> words, std::size_t least,
          std::size_t most)
      : text_(text), words_(std::move(words)) {
    if (words_.size() < least || words_.size() > most) {
      refuse(text_, least == most ? fmt::format("needs {} figure{}", least, least == 1 ? "" : "s")
                                  : fmt::format("takes {} to {} figures", least, most));
    }
  }

  double at(std::size_t i, const char* what, double min, double max, double standard = 0) const {
    if (i >= words_.size()) return standard;
    const auto value = number_in<double>(words_[i]);
    if (!value || !(*value >= min && *value <= max)) {
      refuse(text_,
             fmt::format("{} {} must be a number from {:g} to {:g}", what, words_[i], min, max));
    }
    return *value;
  }

 private:
  std::string_view text_;
  std::vector<std::string> words_;
};

constexpr double kMostEpochs = 1e6, kLeastEpochs = 1e-6;

/// A text, and what stands behind its first colon, if there is one.
struct Value {
  std::string_view text;
  std::optional<std::string_view> rest;

  Figures figures(std::size_t least, std::size_t most) const {
    return {text, rest ? split(*rest, ':') : std::vector<std::string>{}, least, most};
  }
};

PiecewiseRate parse_pieces(std::string_view text, std::string_view rest) {
  PiecewiseRate schedule;
  for (const std::string& part : split(rest, ',')) {
    const Figures figures(text, split(part, ':'), 2, 2);
    const PiecewiseRate::Piece piece{figures.at(0, "epoch", 0, kMostEpochs),
                                     figures.at(1, "factor", 0, 1e6)};
    if (!schedule.pieces.empty() && piece.epoch <= schedule.pieces.back().epoch) {
      refuse(text, "epochs must ascend");
    }
    schedule.pieces.push_back(piece);
  }
  return schedule;
}

Plateau parse_plateau(const Value& value) {
  const Figures f = value.figures(0, 2);
  const double patience = f.at(0, "patience", 1, kMostEpochs, 10);
  if (patience != std::floor(patience)) refuse(value.text, "patience must be a whole number");
  return {static_cast<int>(patience), f.at(1, "factor", 0, 1, 0.1)};
}

struct Form {
  std::string_view form;
  Schedule (*parse)(const Value&);

  std::string_view word() const { return form.substr(0, form.find_first_of(":[")); }
};

/// In the order of Schedule's alternatives.
constexpr Form kForms[] = {
    {"constant", [](const Value& v) -> Schedule { return v.figures(0, 0), ConstantRate{}; }},
    {"step:EPOCHS:FACTOR",
     [](const Value& v) -> Schedule {
       const Figures f = v.figures(2, 2);
       return StepDecay{f.at(0, "epochs", kLeastEpochs, kMostEpochs), f.at(1, "factor", 0, 1e3)};
     }},
    {"piecewise:EPOCH:FACTOR[,...]",
     [](const Value& v) -> Schedule { return parse_pieces(v.text, v.rest.value_or("")); }},
    {"cosine[:FLOOR]",
     [](const Value& v) -> Schedule { return CosineDecay{v.figures(0, 1).at(0, "floor", 0, 1)}; }},
    {"poly[:POWER[:FLOOR]]",
     [](const Value& v) -> Schedule {
       const Figures f = v.figures(0, 2);
       return PolynomialDecay{f.at(0, "power", 0, 100, 1), f.at(1, "floor", 0, 1)};
     }},
    {"plateau[:PATIENCE[:FACTOR]]", [](const Value& v) -> Schedule { return parse_plateau(v); }},
    {"decay:X",
     [](const Value& v) -> Schedule {
       return InverseTimeDecay{v.figures(1, 1).at(0, "decay", 0, 1e3)};
     }},
};
static_assert(std::size(kForms) == std::variant_size_v<Schedule>);

double piecewise_factor(const PiecewiseRate& schedule, double epochs) {
  double factor = 1;
  for (const auto& piece : schedule.pieces) {
    if (epochs >= piece.epoch) factor = piece.factor;
  }
  return factor;
}

}  // namespace

double schedule_factor(const Schedule& schedule, const TrainingProgress& progress) {
  // Epochs are sums of fractions: 29.999999999 is thirty.
  const double epochs = progress.epochs + 1e-9;
  const double left = 1 - std::clamp(progress.fraction, 0.0, 1.0);
  return std::visit(
      Overloaded{
          [](const ConstantRate&) { return 1.0; },
          [&](const StepDecay& s) { return std::pow(s.factor, std::floor(epochs / s.epochs)); },
          [&](const PiecewiseRate& s) { return piecewise_factor(s, epochs); },
          [&](const CosineDecay& s) {
            return s.floor + (1 - s.floor) * 0.5 * (1 - std::cos(std::numbers::pi * left));
          },
          [&](const PolynomialDecay& s) {
            return s.floor + (1 - s.floor) * std::pow(left, s.power);
          },
          [](const Plateau&) { return 1.0; },
          [&](const InverseTimeDecay& s) {
            return 1 / (1 + s.decay * static_cast<double>(progress.steps));
          }},
      schedule);
}

std::string schedule_forms() {
  std::vector<std::string> forms;
  for (const Form& form : kForms) forms.emplace_back(form.form);
  return join(forms, ", ");
}

std::vector<std::string> schedule_words() {
  std::vector<std::string> words;
  for (const Form& form : kForms) {
    const std::string_view word = form.word();
    words.push_back(std::string(word) +
                    (form.form.substr(word.size()).starts_with(':') ? ":" : ""));
  }
  return words;
}

Schedule parse_schedule(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto form = std::ranges::find(kForms, text.substr(0, colon), &Form::word);
  if (form == std::end(kForms)) {
    refuse(text, fmt::format("{} is not known", text.substr(0, colon)));
  }
  return form->parse(
      {text, colon == text.npos ? std::nullopt : std::optional(text.substr(colon + 1))});
}

std::string schedule_text(const Schedule& schedule) {
  const std::string figures = std::visit(
      Overloaded{[](const ConstantRate&) -> std::string { return ""; },
                 [](const StepDecay& s) { return fmt::format(":{}:{}", s.epochs, s.factor); },
                 [](const PiecewiseRate& s) {
                   std::string pieces;
                   for (const auto& piece : s.pieces) {
                     pieces += fmt::format("{}{}:{}", pieces.empty() ? ':' : ',', piece.epoch,
                                           piece.factor);
                   }
                   return pieces;
                 },
                 [](const CosineDecay& s) { return fmt::format(":{}", s.floor); },
                 [](const PolynomialDecay& s) { return fmt::format(":{}:{}", s.power, s.floor); },
                 [](const Plateau& s) { return fmt::format(":{}:{}", s.patience, s.factor); },
                 [](const InverseTimeDecay& s) { return fmt::format(":{}", s.decay); }},
      schedule);
  return std::string(kForms[schedule.index()].word()) + figures;
}

}  // namespace cputrain::optim

#include "optim/learning_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numbers>
#include <utility>

#include "core/error.h"
#include "core/overloaded.h"
#include "core/text.h"

namespace cputrain::optim {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& what) {
  fail(ExitCode::usage, "--schedule {}: {}; forms are {}", text, what, schedule_forms());
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

  std::string_view text() const { return text_; }

  double at(std::size_t i, const char* what, double min, double max, double standard = 0) const {
    if (i >= words_.size()) return standard;
    const auto value = number_in<double>(words_[i]);
    if (!(value >= min && value <= max)) {
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

/// What stands behind the first colon of a text, if there is one.
std::optional<std::string_view> behind_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon == text.npos ? std::nullopt : std::optional(text.substr(colon + 1));
}

PiecewiseRate parse_pieces(std::string_view text) {
  PiecewiseRate schedule;
  for (const std::string& part : split(behind_name(text).value_or(""), ',')) {
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

Plateau parse_plateau(const Figures& f) {
  const double patience = f.at(0, "patience", 1, kMostEpochs, 10);
  if (patience != std::floor(patience)) refuse(f.text(), "patience must be a whole number");
  return {static_cast<int>(patience), f.at(1, "factor", 0, 1, 0.1)};
}

struct Form {
  std::string_view form;
  std::size_t least, most;  ///< figures
  Schedule (*parse)(const Figures&);

  std::string_view word() const { return form.substr(0, form.find_first_of(":[")); }
};

/// Pieces are counted where they are read.
constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

/// In the order of Schedule's alternatives.
constexpr Form kForms[] = {
    {"constant", 0, 0, [](const Figures&) -> Schedule { return ConstantRate{}; }},
    {"step:EPOCHS:FACTOR", 2, 2,
     [](const Figures& f) -> Schedule {
       return StepDecay{f.at(0, "epochs", kLeastEpochs, kMostEpochs), f.at(1, "factor", 0, 1e3)};
     }},
    {"piecewise:EPOCH:FACTOR[,...]", 0, kAnyNumber,
     [](const Figures& f) -> Schedule { return parse_pieces(f.text()); }},
    {"cosine[:FLOOR]", 0, 1,
     [](const Figures& f) -> Schedule { return CosineDecay{f.at(0, "floor", 0, 1)}; }},
    {"poly[:POWER[:FLOOR]]", 0, 2,
     [](const Figures& f) -> Schedule {
       return PolynomialDecay{f.at(0, "power", 0, 100, 1), f.at(1, "floor", 0, 1)};
     }},
    {"plateau[:PATIENCE[:FACTOR]]", 0, 2,
     [](const Figures& f) -> Schedule { return parse_plateau(f); }},
    {"decay:X", 1, 1,
     [](const Figures& f) -> Schedule { return InverseTimeDecay{f.at(0, "decay", 0, 1e3)}; }},
};
static_assert(std::size(kForms) == std::variant_size_v<Schedule>);

double piecewise_factor(const PiecewiseRate& schedule, double epochs) {
  double factor = 1;
  for (const auto& piece : schedule.pieces) {
    if (epochs >= piece.epoch) factor = piece.factor;
  }
  return factor;
}

/// What the full rate is multiplied by; 1 for a plateau, which its keeper works out. `done` epochs
/// and `steps` are behind it; `fraction`: 0 where warm-up ends, 1 at the end of the training.
double schedule_factor(const Schedule& schedule, double done, double fraction,
                       std::uint64_t steps) {
  // Epochs are sums of fractions: 29.999999999 is thirty.
  const double epochs = done + 1e-9;
  const double left = 1 - std::clamp(fraction, 0.0, 1.0);
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
            return 1 / (1 + s.decay * static_cast<double>(steps));
          }},
      schedule);
}

}  // namespace

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
  const std::string_view name = text.substr(0, text.find(':'));
  const auto form = std::ranges::find(kForms, name, &Form::word);
  if (form == std::end(kForms)) refuse(text, fmt::format("{} is not known", name));
  const auto rest = behind_name(text);
  return form->parse(
      {text, rest ? split(*rest, ':') : std::vector<std::string>{}, form->least, form->most});
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

double scale_factor(RateScale scale, double n) {
  switch (scale) {
    case RateScale::none:
      return 1;
    case RateScale::linear:
      return n;
    case RateScale::sqrt:
      return std::sqrt(n);
    case RateScale::pow23:
      return std::pow(n, 2.0 / 3.0);
  }
  return 1;
}

double full_rate(const LearningRateOptions& options) {
  return options.base * scale_factor(options.scale, options.n.value_or(1));
}

LearningRate::LearningRate(const LearningRateOptions& options, double training_epochs)
    : options_(options), training_epochs_(training_epochs), target_(full_rate(options)) {}

double LearningRate::warmup(double epochs) const {
  const double part = std::min(epochs / options_.warmup_epochs, 1.0);
  if (!options_.n) return target_ * part;
  const double n = std::max(*options_.n, 1.0);  // a batch below the base's has nothing to rise from
  return target_ / n * (part * (n - 1) + 1);
}

double LearningRate::at(const StepTime& time) const {
  const double done = time.epochs_done();
  if (done < options_.warmup_epochs) {
    return plateau_.factor * warmup(done + 1 / static_cast<double>(time.steps));
  }
  const double scheduled = training_epochs_ - options_.warmup_epochs;
  const double fraction = scheduled > 0 ? (done - options_.warmup_epochs) / scheduled : 1;
  return plateau_.factor * target_ * schedule_factor(options_.schedule, done, fraction, time.total);
}

void LearningRate::epoch_ended(const Score& score) {
  const auto* plateau = std::get_if<Plateau>(&options_.schedule);
  if (!plateau) return;
  constexpr double kLeast = 1e-4;  // Keras' min_delta
  if (is_better(score, plateau_.best_loss, plateau_.best_accuracy, kLeast)) {
    plateau_.best_loss = score.loss;
    plateau_.best_accuracy = followed_accuracy(score);
    plateau_.waited = 0;
  } else if (++plateau_.waited >= plateau->patience) {
    plateau_.factor *= plateau->factor;
    plateau_.waited = 0;
  }
}

}  // namespace cputrain::optim

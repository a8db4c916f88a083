#include "optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>

#include "core/error.h"
#include "core/overloaded.h"

namespace cputrain::optim {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& what) {
  fail(ExitCode::usage, fmt::format("--schedule {}: {}; forms are {}", text, what, kScheduleForms));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The figures after the schedule's name, each within limits.
class Figures {
 public:
  Figures(std::string_view text, std::vector<std::string_view> words, std::size_t least,
          std::size_t most)
      : text_(text), words_(std::move(words)) {
    if (words_.size() < least || words_.size() > most) {
      refuse(text_, least == most ? fmt::format("needs {} figure{}", least, least == 1 ? "" : "s")
                                  : fmt::format("takes {} to {} figures", least, most));
    }
  }

  double at(std::size_t i, const char* what, double min, double max, double standard = 0) const {
    if (i >= words_.size()) return standard;
    double value = 0;
    const char* end = words_[i].data() + words_[i].size();
    const auto [stop, error] = std::from_chars(words_[i].data(), end, value);
    if (error != std::errc{} || stop != end || !(value >= min && value <= max)) {
      refuse(text_,
             fmt::format("{} {} must be a number from {:g} to {:g}", what, words_[i], min, max));
    }
    return value;
  }

 private:
  std::string_view text_;
  std::vector<std::string_view> words_;
};

constexpr double kMostEpochs = 1e6, kLeastEpochs = 1e-6;

PiecewiseRate parse_pieces(std::string_view text, std::string_view rest) {
  PiecewiseRate schedule;
  for (const std::string_view part : split(rest, ',')) {
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

Schedule parse_schedule(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
  if (name == "piecewise") return parse_pieces(text, rest);
  const auto figures = [&](std::size_t least, std::size_t most) {
    return Figures(text, colon < text.size() ? split(rest, ':') : std::vector<std::string_view>{},
                   least, most);
  };
  if (name == "constant") return figures(0, 0), ConstantRate{};
  if (name == "step") {
    const Figures f = figures(2, 2);
    return StepDecay{f.at(0, "epochs", kLeastEpochs, kMostEpochs), f.at(1, "factor", 0, 1e3)};
  }
  if (name == "cosine") return CosineDecay{figures(0, 1).at(0, "floor", 0, 1)};
  if (name == "poly") {
    const Figures f = figures(0, 2);
    return PolynomialDecay{f.at(0, "power", 0, 100, 1), f.at(1, "floor", 0, 1)};
  }
  if (name == "plateau") {
    const Figures f = figures(0, 2);
    const double patience = f.at(0, "patience", 1, kMostEpochs, 10);
    if (patience != std::floor(patience)) refuse(text, "patience must be a whole number");
    return Plateau{static_cast<int>(patience), f.at(1, "factor", 0, 1, 0.1)};
  }
  if (name == "decay") return InverseTimeDecay{figures(1, 1).at(0, "decay", 0, 1e3)};
  refuse(text, fmt::format("{} is not known", name));
}

std::string schedule_text(const Schedule& schedule) {
  return std::visit(
      Overloaded{
          [](const ConstantRate&) -> std::string { return "constant"; },
          [](const StepDecay& s) { return fmt::format("step:{}:{}", s.epochs, s.factor); },
          [](const PiecewiseRate& s) {
            std::vector<std::string> pieces;
            for (const auto& piece : s.pieces) {
              pieces.push_back(fmt::format("{}:{}", piece.epoch, piece.factor));
            }
            return fmt::format("piecewise:{}", fmt::join(pieces, ","));
          },
          [](const CosineDecay& s) { return fmt::format("cosine:{}", s.floor); },
          [](const PolynomialDecay& s) { return fmt::format("poly:{}:{}", s.power, s.floor); },
          [](const Plateau& s) { return fmt::format("plateau:{}:{}", s.patience, s.factor); },
          [](const InverseTimeDecay& s) { return fmt::format("decay:{}", s.decay); }},
      schedule);
}

}  // namespace cputrain::optim

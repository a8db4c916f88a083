#include "scaling/tune/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json_text.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "core/version.h"
#include "scaling/report/grid_tables.h"
#include "system/lost_time.h"

namespace cputrain::tune {
namespace {

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

std::string speed_text(const Rung& rung) {
  return rate_of_images(rung.images_per_second) + " images/s";
}

/// Why the climb went no further.
std::string end_text(const Ladder& ladder) {
  switch (ladder.climb.end) {
    case ClimbEnd::flat:
      return fmt::format("the next {} sizes are quicker by less than {}, or not surely", kPatience,
                         percent(kLeastGain));
    case ClimbEnd::memory:
      return ladder.no_room;
    case ClimbEnd::top:
      break;
  }
  return ladder.rungs.size() == 1 ? "no other size was tried"
                                  : fmt::format("{} was the largest tried", ladder.largest());
}

/// Where the best size was measured and is not advised: "8 is +1.2 % (-0.5 to 3.1) over that".
std::string unsure_text(const Ladder& ladder) {
  const std::optional<Gain> gain = ladder.gain_over_usual();
  if (!gain) return "they were not compared: " + ladder.no_room;
  return fmt::format("{} is {} over that", ladder.best().value, gain_text(*gain));
}

std::string not_quicker_text(const Ladder& ladder) {
  return fmt::format("no size is surely quicker by {} or more than {}", percent(kLeastGain),
                     ladder.usual);
}

void say_lost(const Ladder& ladder, Suggestion& to) {
  const std::string text = most_lost_text(ladder);
  if (text.empty()) return;
  to.lines.push_back(fmt::format(
      "Figures of --{} were disturbed, {}. {}", ladder.flag, text,
      ladder.crowded ? "Fewer --threads or ranks take no turns." : "Try again at a quieter time."));
}

std::string micro_batch_text(const Ladder& ladder) {
  const std::string begin = "Micro-batch (how many images a rank computes at once): ",
                    end = end_text(ladder);
  if (ladder.climb.best == ladder.usual) {
    return fmt::format("{}the usual {} stays, {} ({}). Leave --micro-batch out.", begin,
                       ladder.usual, speed_text(ladder.best()), end);
  }
  if (const auto advised = ladder.advised()) {
    return fmt::format("{}{}, with {} images/s over the usual {} ({}).", begin, *advised,
                       gain_text(*ladder.gain_over_usual()), ladder.usual, end);
  }
  return fmt::format(
      "{}the usual {} stays, as no other is surely quicker by {} or more ({}). Leave --micro-batch "
      "out.",
      begin, ladder.usual, percent(kLeastGain), unsure_text(ladder));
}

std::string batch_text(const Ladder& ladder) {
  const std::string pays = fmt::format("{} is the largest that pays, {} ({})", ladder.climb.best,
                                       speed_text(ladder.best()), end_text(ladder));
  if (const auto advised = ladder.advised()) {
    const std::optional<Gain> gain = ladder.gain_over_usual();
    return fmt::format(
        "Batch: {}{}. The usual batch is {}: another one trains otherwise and wants another "
        "learning rate.",
        pays, gain ? fmt::format("; {} over {}", gain_text(*gain), ladder.usual) : "",
        ladder.usual);
  }
  if (ladder.climb.best <= ladder.usual) {
    return fmt::format("Batch: {}. The usual batch, {}, stays.", pays, ladder.usual);
  }
  return fmt::format("Batch: {}, the usual batch, which stays: leave --batch out ({}).",
                     not_quicker_text(ladder), unsure_text(ladder));
}

void suggest_size(const std::optional<Ladder>& ladder, const std::string& why_none,
                  std::string (*text)(const Ladder&), Suggestion& to) {
  if (!ladder) {
    if (!why_none.empty()) to.lines.push_back(why_none);
    return;
  }
  to.lines.push_back(text(*ladder));
  say_lost(*ladder, to);
  if (const auto advised = ladder->advised()) {
    to.flags.insert(to.flags.end(), {"--" + ladder->flag, std::to_string(*advised)});
  }
}

void suggest_rate(const Findings& findings, Suggestion& to) {
  if (!findings.rate) {
    if (!findings.no_rate.empty()) to.lines.push_back(findings.no_rate);
    return;
  }
  const RateFindings& rate = *findings.rate;
  for (std::string& line : advice_lines(rate)) to.lines.push_back(std::move(line));
  if (!rate.advice) return;
  const double own = rate.advice->rate / rate.scale;
  to.flags.insert(to.flags.end(), {"--lr", rate_text(own)});
  if (!rate.backbone) return;
  to.flags.insert(to.flags.end(), {"--backbone-lr", rate_text(own * *rate.backbone)});
}

using Json = nlohmann::ordered_json;
using report::DocumentTable;
using report::Entry;
using report::figure_entry;
using report::Section;

Entry bytes_entry(std::optional<std::size_t> bytes) {
  if (!bytes) return figure_entry(std::nullopt);
  return figure_entry(static_cast<double>(*bytes), [](double b) { return bytes_text(b); });
}

Entry speed_entry(const Rung& rung) {
  if (rung.images_per_second == 0) return figure_entry(std::nullopt);
  return figure_entry(rung.images_per_second, rate_of_images);
}

Entry gain_entry(const Rung& rung) {
  if (!rung.gain) return figure_entry(std::nullopt);
  Entry entry{.text = fmt::format("{} over {}", gain_text(*rung.gain), *rung.against)};
  entry.value = rung.gain->median;
  return entry;
}

/// Every gain that pays is a faster size; not every faster one pays.
Entry verdict_entry(const Rung& rung) {
  if (!rung.gain) return {.text = report::kNotKnown};
  const report::Verdict verdict = verdict_of(*rung.gain);
  const bool little = verdict == report::Verdict::faster && !pays(*rung.gain);
  return {.text = report::verdict_text(verdict) +
                  (little ? fmt::format(", by less than {:.0f} %", 100 * kLeastGain) : "")};
}

DocumentTable ladder_table(const Ladder& ladder) {
  using R = const Rung&;
  using T = DocumentTable&;
  const auto measured = [](R r) {
    return r.measured ? std::optional(r.measured->peak) : std::nullopt;
  };
  DocumentTable table = report::table_of<Rung>(
      "Speed and memory by " + ladder.flag, ladder.flag, ladder.rungs,
      [](R r) { return std::to_string(r.value); },
      {{"images/s", [](R r, T) { return speed_entry(r); }},
       {"gain", [](R r, T) { return gain_entry(r); }},
       {"verdict", [](R r, T) { return verdict_entry(r); }},
       {"memory of a rank, planned", [](R r, T) { return bytes_entry(r.planned.peak); }},
       {"measured", [&](R r, T) { return bytes_entry(measured(r)); }, false},
       {"of a node, planned", [](R r, T) { return bytes_entry(r.planned.part); }}});
  table.sortable = false;
  return table;
}

Section ladder_section(const std::optional<Ladder>& ladder, const std::string& title) {
  if (!ladder) return {};
  Section section{.id = ladder->flag, .title = title};
  section.plots = {"tune-" + ladder->flag};
  section.tables.push_back(ladder_table(*ladder));
  section.remarks.push_back(
      "gain: the median, over rounds in which both sizes took turns, of how much quicker one was, "
      "with an interval for it; images/s: the median of the first size's rounds, and from there on "
      "those of the size that it was compared with, times 1 + gain.");
  section.remarks.push_back(
      "Planned memory has the copy for checkpoints in it, measured memory has the program's own "
      "libraries. Decoded images are in neither.");
  if (!ladder->no_room.empty()) section.remarks.push_back(ladder->no_room + ".");
  return section;
}

DocumentTable curve_table(const RateFindings& rate) {
  using S = const SmoothLoss&;
  using T = DocumentTable&;
  const auto step = [&](S s) { return static_cast<std::size_t>(&s - rate.smoothed.data()); };
  const auto figure = [](double value) {
    return figure_entry(value, [](double v) { return fmt::format("{:.4g}", v); });
  };
  DocumentTable table = report::table_of<SmoothLoss>(
      "Loss by learning rate; slope: per tenfold rate", "learning rate", rate.smoothed,
      [&](S s) { return fmt::format("{:.3g}", rate.curve.range.at(static_cast<int>(step(s)))); },
      {{"loss", [&](S s, T) { return figure(rate.curve.losses[step(s)]); }},
       {"smoothed", [&](S s, T) { return figure(s.loss); }},
       {"slope", [&](S s, T) { return figure(s.slope); }},
       {"its standard error", [&](S s, T) { return figure(s.slope_error); }}});
  table.sortable = false;
  return table;
}

std::string test_text(const RateFindings& rate) {
  const RateCurve& curve = rate.curve;
  std::string text = fmt::format("{} from {} to {}, batch {}, {} images",
                                 counted(curve.range.steps, "step"), rate_text(curve.range.low),
                                 rate_text(curve.range.high), rate.batch, with_commas(rate.images));
  if (curve.end == TestEnd::range) return text + "; the loss did not diverge.";
  return text + fmt::format("; ended at {}, where the loss {}.", rate_text(curve.diverged_at),
                            curve.end == TestEnd::diverged
                                ? fmt::format("was {} times its best", kDiverged)
                                : std::string("was NaN or infinite"));
}

Section rate_section(const std::optional<RateFindings>& rate, bool whole) {
  if (!rate) return {};
  Section section{.id = "rate", .title = "Learning rate", .paragraphs = {test_text(*rate)}};
  section.plots = {"tune-rate"};
  if (whole) section.tables.push_back(curve_table(*rate));
  return section;
}

Json memory_json(const system::HeldMemory& memory) {
  return {{"rank_bytes", memory.peak}, {"node_bytes", memory.part}};
}

Json gain_json(const std::optional<Gain>& found, int over) {
  if (!found) return nullptr;
  const Gain& gain = *found;
  return {{"over", over},
          {"median", gain.median},
          {"interval", {gain.interval.low, gain.interval.high}},
          {"confidence", gain.confidence},
          {"rounds", gain.rounds},
          {"verdict", report::verdict_text(verdict_of(gain))},
          {"pays", pays(gain)}};
}

Json ladder_json(const Ladder& ladder) {
  Json rungs = Json::array();
  for (const Rung& rung : ladder.rungs) {
    if (rung.images_per_second == 0) continue;
    rungs.push_back({{"value", rung.value},
                     {"images_per_second", rung.images_per_second},
                     {"in_rounds", json_of(spread_of(rung.rounds))},
                     {"rounds", rung.rounds.size()},
                     {kCpuWait, known(rung.lost.cpu_wait)},
                     {kStolen, known(rung.lost.stolen)},
                     {"gain", gain_json(rung.gain, rung.against.value_or(0))},
                     {"memory_planned", memory_json(rung.planned)},
                     {"memory_measured", rung.measured ? memory_json(*rung.measured) : Json()}});
  }
  Json json{{"flag", ladder.flag},
            {"best", ladder.climb.best},
            {"end", word_of(ladder.climb.end)},
            {"least_gain", kLeastGain},
            {"usual", ladder.usual},
            {"gain_over_usual", gain_json(ladder.gain_over_usual(), ladder.usual)},
            {"advised", ladder.advised() ? Json(*ladder.advised()) : Json()},
            {"rungs", std::move(rungs)}};
  if (!ladder.no_room.empty()) json["no_room"] = ladder.no_room;
  return json;
}

Json advice_json(const RateFindings& rate) {
  if (!rate.advice) return nullptr;
  const RateAdvice& advice = *rate.advice;
  return {{"rate", advice.rate},
          {"lr", advice.rate / rate.scale},
          {"as_steep", {advice.from, advice.to}},
          {"range", {advice.low, advice.high}},
          {"capped", advice.capped},
          {"slope", advice.steepest.slope},
          {"slope_error", advice.steepest.slope_error}};
}

Json rate_json(const RateFindings& rate) {
  const RateCurve& curve = rate.curve;
  Json steps = Json::array();
  for (std::size_t i = 0; i < curve.losses.size(); ++i) {
    const SmoothLoss& smooth = rate.smoothed[i];
    steps.push_back({{"rate", curve.range.at(static_cast<int>(i))},
                     {"loss", curve.losses[i]},
                     {"smoothed", smooth.loss},
                     {"slope", smooth.slope},
                     {"slope_error", smooth.slope_error}});
  }
  return {{"low", curve.range.low},
          {"high", curve.range.high},
          {"steps", curve.range.steps},
          {"batch", rate.batch},
          {"images", rate.images},
          {"lr_scale", rate.scale},
          {"end", word_of(curve.end)},
          {"diverged_at", curve.diverged_at > 0 ? Json(curve.diverged_at) : Json()},
          {"advice", advice_json(rate)},
          {"curve", std::move(steps)}};
}

}  // namespace

std::string most_lost_text(const Ladder& ladder) {
  const auto part = [](const Rung& rung) {
    return std::max(rung.lost.cpu_wait.value_or(0), rung.lost.stolen.value_or(0));
  };
  const Rung& most = *std::ranges::max_element(ladder.rungs, {}, part);
  const std::string text = lost_text(most.lost);
  if (text.empty()) return "";
  const bool waited = most.lost.cpu_wait.value_or(0) >= system::kWaitWorthSaying;
  return fmt::format("most at {}: {}{}", most.value, text,
                     waited ? fmt::format(" ({})", system::cpu_wait_reason(ladder.crowded)) : "");
}

std::string whole_steps_text(double kept_features) {
  const std::string kept =
      kept_features < 1
          ? fmt::format("{:.0f} % of what its frozen layers make of images", 100 * kept_features)
          : std::string("what its frozen layers make of every image");
  return fmt::format(
      "Speeds are of steps that compute all layers. A training keeps {}, so they count in its "
      "first epoch{}.",
      kept, kept_features < 1 ? ", and later for the other images" : " alone");
}

report::Verdict verdict_of(const Gain& gain) {
  if (gain.interval.low > 0) return report::Verdict::faster;
  if (gain.interval.high < 0) return report::Verdict::slower;
  return report::Verdict::no_difference_shown;
}

Suggestion suggestion_of(const Findings& findings) {
  Suggestion suggestion;
  if (findings.kept_features && (findings.micro_batch || findings.batch)) {
    suggestion.lines.push_back(whole_steps_text(*findings.kept_features));
  }
  suggest_size(findings.micro_batch, findings.no_micro_batch, micro_batch_text, suggestion);
  suggest_size(findings.batch, findings.no_batch, batch_text, suggestion);
  suggest_rate(findings, suggestion);
  return suggestion;
}

report::Document findings_document(const Findings& findings, bool whole) {
  report::Document document{
      fmt::format("Tuning {} at {}x{}", findings.model, findings.image_size, findings.image_size)};
  const Suggestion suggestion = suggestion_of(findings);
  document.headline = suggestion.lines;
  if (!suggestion.flags.empty()) {
    document.headline.push_back("Flags to copy: " + command_line(suggestion.flags));
  }
  document.summary.push_back(
      fmt::format("{}; {}, {}; {} x {} on {}; data {}", findings.backend, findings.precision,
                  findings.optimizer, counted(findings.ranks, "rank"),
                  counted(findings.threads, "thread"), findings.cpu, findings.data));
  document.add(ladder_section(findings.micro_batch, "Micro-batch"));
  document.add(ladder_section(findings.batch, "Batch"));
  document.add(rate_section(findings.rate, whole));
  return document;
}

std::string findings_page(const Findings& findings) {
  const Json drawn{
      {"series", Json::array()}, {"cells", Json::array()}, {"tune", findings_json(findings)}};
  return report::html(findings_document(findings, true), json_text(drawn));
}

Json findings_json(const Findings& findings) {
  const Suggestion suggestion = suggestion_of(findings);
  Json ladders = Json::array();
  for (const auto* ladder : {&findings.micro_batch, &findings.batch}) {
    if (*ladder) ladders.push_back(ladder_json(**ladder));
  }
  return {{"cputrain", kVersion},
          {"command", "tune"},
          {"model", findings.model},
          {"image_size", findings.image_size},
          {"data", findings.data},
          {"backend", findings.backend},
          {"precision", findings.precision},
          {"optimizer", findings.optimizer},
          {"cpu", findings.cpu},
          {"ranks", findings.ranks},
          {"threads", findings.threads},
          {"suggestion", {{"lines", suggestion.lines}, {"flags", suggestion.flags}}},
          {"kept_features", known(findings.kept_features)},
          {"ladders", std::move(ladders)},
          {"rate", findings.rate ? rate_json(*findings.rate) : Json()}};
}

}  // namespace cputrain::tune

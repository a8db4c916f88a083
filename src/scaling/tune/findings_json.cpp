#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "core/statistics/spread.h"
#include "core/version.h"
#include "scaling/tune/findings.h"

namespace cputrain::tune {
namespace {

using Json = nlohmann::ordered_json;

Json memory_json(const MemoryBytes& memory) {
  return {{"rank_bytes", memory.rank}, {"node_bytes", memory.node}};
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
                     {"cpu_wait", known(rung.lost.cpu_wait)},
                     {"stolen", known(rung.lost.stolen)},
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

Json findings_json(const Findings& findings) {
  const TuneFacts& facts = findings.facts;
  const Suggestion suggestion = suggestion_of(findings);
  Json ladders = Json::array();
  for (const auto* ladder : {&findings.micro_batch, &findings.batch}) {
    if (*ladder) ladders.push_back(ladder_json(**ladder));
  }
  return {{"cputrain", kVersion},
          {"command", "tune"},
          {"model", facts.model},
          {"image_size", facts.image_size},
          {"data", facts.data},
          {"backend", facts.backend},
          {"precision", facts.precision},
          {"optimizer", facts.optimizer},
          {"cpu", facts.cpu},
          {"ranks", facts.ranks},
          {"threads", facts.threads},
          {"suggestion", {{"lines", suggestion.lines}, {"flags", suggestion.flags}}},
          {"kept_features", known(findings.kept_features)},
          {"ladders", std::move(ladders)},
          {"rate", findings.rate ? rate_json(*findings.rate) : Json()}};
}

}  // namespace cputrain::tune

#include "logging/timeline_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/json_text.h"

namespace cputrain::logging {
namespace {

using Json = nlohmann::ordered_json;

/// Of what timeline_text() wrote, in which spans are [name, step, begin, seconds].
double first_begin(const std::vector<Json>& ranks) {
  double first = std::numeric_limits<double>::infinity();
  for (const Json& rank : ranks) {
    for (const Json& span : rank["spans"]) {
      first = std::min(first, span[2].get<double>() - rank["offset"].get<double>());
    }
  }
  return first;
}

Json metadata(const char* name, std::size_t rank, Json arguments) {
  return {{"name", name}, {"ph", "M"}, {"pid", rank}, {"tid", 0}, {"args", std::move(arguments)}};
}

/// Both ends on whole nanoseconds: Perfetto leaves out spans that begin a trace of rounding before
/// the end of the one before, and after months the clock's numbers are nanoseconds apart.
Json event_of(const Json& span, std::size_t rank, double offset, double first) {
  constexpr double kNano = 1e9, kNanosOfMicro = 1e3;
  const double begin = span[2];
  const double end = begin + span[3].get<double>();  // exactly where the next one begins
  const auto nanoseconds = [&](double time) { return std::round((time - offset - first) * kNano); };
  return {{"name", span[0]},
          {"cat", "step"},
          {"ph", "X"},
          {"ts", nanoseconds(begin) / kNanosOfMicro},
          {"dur", (nanoseconds(end) - nanoseconds(begin)) / kNanosOfMicro},
          {"pid", rank},
          {"tid", 0},
          {"args", {{"step", span[1]}}}};
}

}  // namespace

std::string timeline_text(const loop::Timeline& timeline, double offset) {
  Json spans = Json::array();
  for (const loop::Timeline::Span& span : timeline.spans()) {
    spans.push_back({span.name, span.step, span.begin, span.seconds});
  }
  return Json{{"offset", offset}, {"lost", timeline.lost()}, {"spans", std::move(spans)}}.dump();
}

std::string timeline_json(const std::vector<std::string>& texts,
                          const std::vector<std::string>& hosts) {
  std::vector<Json> ranks;
  for (const std::string& text : texts) ranks.push_back(Json::parse(text));
  const double first = first_begin(ranks);
  Json events = Json::array(), offsets = Json::array();
  std::size_t lost = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string host = rank < hosts.size() ? hosts[rank] : "";
    events.push_back(
        metadata("process_name", rank, {{"name", "rank " + std::to_string(rank) + " " + host}}));
    events.push_back(metadata("process_sort_index", rank, {{"sort_index", rank}}));
    events.push_back(metadata("thread_name", rank, {{"name", "training loop"}}));
    const double offset = ranks[rank]["offset"];
    for (const Json& span : ranks[rank]["spans"]) {
      events.push_back(event_of(span, rank, offset, first));
    }
    offsets.push_back(offset * 1e6);
    lost += ranks[rank]["lost"].get<std::size_t>();
  }
  return json_text(Json{
             {"traceEvents", std::move(events)},
             {"displayTimeUnit", "ms"},
             {"otherData", {{"clock_offset_us", std::move(offsets)}, {"spans_left_out", lost}}}}) +
         "\n";
}

}  // namespace cputrain::logging

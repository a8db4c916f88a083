#include "training/run/timeline_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "system/files.h"
#include "training/run/run_folder.h"

namespace cputrain::training {
namespace {

using Json = nlohmann::ordered_json;

/// From what timeline_text() wrote, in which spans are [name, step, begin, seconds].
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

/// One rank's part of a timeline as text that another rank's timeline_json() reads; `offset` is
/// what its clock shows more than rank 0's, in seconds.
std::string timeline_text(const loop::Timeline& timeline, double offset) {
  Json spans = Json::array();
  for (const loop::Timeline::Span& span : timeline.spans()) {
    spans.push_back({span.name, span.step, span.begin, span.seconds});
  }
  return Json{{"offset", offset}, {"lost", timeline.lost()}, {"spans", std::move(spans)}}.dump();
}

/// What this rank's clock shows more than rank 0's, in seconds: processes of one machine read the
/// same clock; of others the median of what they show when all leave a barrier, some of its time
/// wrong.
double clock_offset(const Session& session) {
  constexpr int kRounds = 9;
  std::vector<double> offsets;
  for (int i = 0; i < kRounds; ++i) {
    session.communicator->barrier();
    const double now = loop::Timeline::now();
    offsets.push_back(now - comm::gather_values(*session.communicator, now).front());
  }
  std::ranges::sort(offsets);
  const bool same_machine = session.nodes.node == session.nodes.by_rank().front();
  return same_machine ? 0 : offsets[kRounds / 2];
}

void check_timeline(const TrainingSpec& spec) {
  const std::filesystem::path path = std::filesystem::absolute(spec.flags.timeline.file);
  const bool own = is_of_run(path);
  if (!own && (spec.flags.overwrite || !system::is_file(path))) return;
  fail(ExitCode::usage, "--timeline {}: {}; take another name{}", spec.flags.timeline.file,
       own ? "a run keeps a file of its own there" : "is there already",
       own ? "" : ", or --overwrite");
}

}  // namespace

void check_timeline_steps(const Training& training) {
  const TrainingSpec& spec = training.plan().spec;
  const auto& [file, steps] = spec.flags.timeline;
  const std::uint64_t all = all_steps(training.batches().train, spec.epochs, spec.flags.steps);
  if (file.empty() || steps.first <= all || spec.flags.settled_steps) return;
  fail(ExitCode::usage,
       "--timeline {}:{}:{}: the training has {} (nothing would be in the file); name steps from 1 "
       "to {}",
       file, steps.first, steps.last, counted(all, "step"), all);
}

loop::Timeline make_timeline(const Session& session, const TrainingSpec& spec) {
  const int ranks = session.communicator->size();
  if (spec.flags.timeline.file.empty()) return loop::Timeline(loop::StepRange{}, ranks);
  if (session.leads()) {
    check_timeline(spec);
    const auto replaced = system::replaceable_file(spec.flags.timeline.file);
    if (replaced) system::write_own_file(*replaced, timeline_json({}, {}));
  }
  return loop::Timeline(spec.flags.timeline.steps, ranks);
}

void write_timeline(const Session& session, const TrainingSpec& spec,
                    const loop::Timeline& timeline) {
  if (!timeline.wanted()) return;
  const auto texts = session.communicator->gather(timeline_text(timeline, clock_offset(session)));
  if (!session.leads()) return;
  system::write_given_file(spec.flags.timeline.file, timeline_json(texts, session.plan.hosts()));
  say(session, "Timeline: " + spec.flags.timeline.file +
                   " (open it in https://ui.perfetto.dev or chrome://tracing)");
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

}  // namespace cputrain::training

#include "emulated/streams.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "emulated/fault.h"
#include "emulated/memory.h"
#include "emulated/run_state.h"
#include "emulated/warp.h"

namespace cputrain::emulated {

Devices& devices() {
  static Devices& one = *[] {
    auto* made = new Devices;  // never ends: other objects of the program may end later
    made->queue.seed(settings().seed);
    seed_threads(settings().seed);
    write_counts_at_exit();
    return made;
  }();
  return one;
}

void Devices::check() const {
  if (!failed.empty()) throw Fault(failed);
}

void Devices::check_may_wait(const char* what) const {
  for (const auto& weak : captures) {
    const auto capture = weak.lock();
    if (!capture || capture->thread != std::this_thread::get_id()) continue;
    capture->broken = std::string(what) + " while a stream is being captured";
    fail(ExitCode::internal, capture->broken + " (CUDA forbids it); do it before or after");
  }
}

namespace {

/// How long a rank waits for others of the same process before that counts as a mistake.
constexpr auto kPatience = std::chrono::seconds(60);

template <class Run>
auto run_unlocked(Devices& d, const Run& run_work) {
  const Unlocked unlocked;
  try {
    return run_work();
  } catch (const Error& e) {
    d.failed = e.what();
    d.changed.notify_all();
    throw;
  }
}

}  // namespace

void Devices::run_until(const WorkPointer& target) {
  if (!target || target->done) return;
  const auto come_there = [&] {
    return run_unlocked(*this, [&] { return queue.run_until(target); });
  };
  while (!come_there()) {
    // Threads of other ranks have to come to a meeting.
    if (changed.wait_for(mutex, kPatience) == std::cv_status::no_timeout) continue;
    failed = "nobody comes to a sum over ranks that others wait for";
    throw Fault(failed);
  }
  changed.notify_all();
}

void Devices::run_all() {
  if (queue.is_empty()) return;  // each array that goes asks, and to unlock all memory is dear
  run_unlocked(*this, [&] { queue.run_all(); });
  changed.notify_all();
}

void Devices::put(cuda::Stream stream, std::function<void()> work) {
  if (!stream) fail(ExitCode::internal, "work for no stream (the legacy default stream)");
  if (stream->capture) {
    stream->capture->work.push_back({std::move(work), stream->captured});
    stream->captured = {stream->capture->work.size() - 1};
  } else {
    stream->last = queue.put(std::move(work), {stream->last});
  }
}

void Devices::put_together(cuda::Stream stream, PutTogether put) {
  if (stream->capture) {
    stream->capture->work.push_back(
        {.run = {}, .after = stream->captured, .together = std::move(put)});
    stream->captured = {stream->capture->work.size() - 1};
  } else {
    stream->last = put({stream->last});
    changed.notify_all();
  }
}

bool Devices::is_pinned(const void* p, std::size_t bytes) const {
  return std::any_of(pinned.begin(), pinned.end(), [&](const auto& block) {
    const auto* begin = static_cast<const std::byte*>(p);
    return begin >= block.first && begin + bytes <= block.first + block.second;
  });
}

void put_kernel(cuda::Stream stream, KernelLaunch launch, const void* arguments,
                std::size_t bytes) {
  Devices& d = devices();
  const std::lock_guard lock(d.mutex);
  d.check();
  const auto* begin = static_cast<const std::byte*>(arguments);
  launch.arguments.assign(begin, begin + bytes);
  check_limits(launch);
  d.put(stream, [&d, launch = std::move(launch)] {
    Counts::Launches& of_kernel = d.counts.kernels[launch.name];
    ++of_kernel.launches;
    of_kernel.blocks += launch.grid.count();
    if (!settings().runs_kernels) return;
    begin_traffic(settings().counts_bytes);
    run_kernel(launch);
    if (!settings().counts_bytes) return;
    d.counts.traffic.push_back({launch.name, launch.grid.count(), end_traffic()});
  });
}

}  // namespace cputrain::emulated

namespace cputrain::cuda {

using emulated::devices;

int current_device();  // device.cpp

OwnedStream::OwnedStream() : stream_(new StreamHandle) {
  devices();  // counts are written from now on
  stream_->device = current_device();
}

OwnedStream::~OwnedStream() { delete stream_; }

void OwnedStream::synchronize() const {
  auto& d = devices();
  const auto lock = held(d);
  d.check_may_wait("waiting for a stream");
  if (stream_->capture) fail(ExitCode::internal, "waiting for a stream that is being captured");
  ++d.counts.stream_waits;
  d.run_until(stream_->last);
}

Event::Event(Kind kind) : event_(new EventHandle) { event_->timed = kind == timed; }
Event::~Event() { delete event_; }

void Event::record(Stream stream) {
  auto& d = devices();
  const auto lock = held(d);
  *event_ = {stream->capture ? nullptr : stream->last, stream->capture, stream->captured,
             std::chrono::steady_clock::now(), event_->timed};
  if (stream->capture) return;
  ++(event_->timed ? d.counts.timed_events : d.counts.untimed_events);
}

void Event::hold_up(Stream stream) const {
  auto& d = devices();
  const auto lock = held(d);
  if (!event_->capture) {
    if (stream->capture && event_->reached) {
      stream->capture->broken = "a captured stream waits for an event from outside";
      fail(ExitCode::internal, stream->capture->broken + " (CUDA forbids it)");
    }
    if (!stream->capture) stream->last = d.queue.put({}, {stream->last, event_->reached});
    return;
  }
  if (!stream->capture) {  // it takes part from now on
    stream->capture = event_->capture;
    stream->capture->streams.push_back(stream);
    stream->captured = event_->captured;
    return;
  }
  if (stream->capture != event_->capture) {
    fail(ExitCode::internal, "a captured stream waits for an event of another capture");
  }
  stream->captured.insert(stream->captured.end(), event_->captured.begin(), event_->captured.end());
}

void Event::record_in_graph(Stream stream) {
  const auto lock = held(devices());
  if (!stream->capture) {
    fail(ExitCode::internal, "an external event outside of a capture (CUDA refuses it)");
  }
  stream->capture->work.push_back({{}, stream->captured, event_});
  stream->captured = {stream->capture->work.size() - 1};
}

bool is_capturing(Stream stream) {
  const std::lock_guard lock(devices().mutex);
  return stream->capture != nullptr;
}

namespace {

/// When the place was reached: when it was noted, where the stream held nothing before it.
std::chrono::steady_clock::time_point time_of(const EventHandle& event) {
  if (!event.timed) fail(ExitCode::internal, "the time of an event that is not timed");
  if (event.capture || (event.reached && !event.reached->done)) {
    fail(ExitCode::internal, "the time of an event that has not been reached");
  }
  return event.reached ? std::max(event.reached->ended, event.recorded) : event.recorded;
}

}  // namespace

/// By this machine's clock: says something of the emulator, and nothing of a GPU.
double Event::seconds_since(const Event& earlier) const {
  const auto lock = held(devices());
  return std::chrono::duration<double>(time_of(*event_) - time_of(*earlier.event_)).count();
}

void Event::synchronize() const {
  auto& d = devices();
  const auto lock = held(d);
  d.check_may_wait("waiting for an event");
  if (event_->capture) fail(ExitCode::internal, "waiting for an event of a capture");
  ++d.counts.event_waits;
  d.run_until(event_->reached);
}

bool Event::was_reached() const {
  const auto lock = held(devices());
  if (event_->capture) fail(ExitCode::internal, "asking for an event of a capture");
  return !event_->reached || event_->reached->done;
}

void Graph::begin_capture(Stream stream) {
  auto& d = devices();
  const auto lock = held(d);
  if (stream->capture) fail(ExitCode::internal, "the stream is being captured already");
  stream->capture = std::make_shared<emulated::Capture>();
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->origin = stream;
  stream->capture->streams = {stream};
  std::erase_if(d.captures, [](const auto& weak) { return weak.expired(); });
  d.captures.push_back(stream->capture);
}

namespace {

/// Whether all that was captured is before the end of the stream that began.
bool all_joined(const emulated::Capture& capture) {
  std::vector<bool> before_end(capture.work.size());
  std::vector<std::size_t> left = capture.origin->captured;
  while (!left.empty()) {
    const std::size_t i = left.back();
    left.pop_back();
    if (before_end[i]) continue;
    before_end[i] = true;
    left.insert(left.end(), capture.work[i].after.begin(), capture.work[i].after.end());
  }
  return std::all_of(before_end.begin(), before_end.end(), [](bool is) { return is; });
}

}  // namespace

GraphHandle* Graph::end_capture(Stream stream) {
  auto& d = devices();
  const std::lock_guard lock(d.mutex);
  const auto capture = std::move(stream->capture);
  if (!capture || capture->origin != stream) {
    fail(ExitCode::internal, "the end of a capture that did not begin on this stream");
  }
  capture->thread = {};
  const bool joined = all_joined(*capture);
  for (Stream s : capture->streams) {
    s->capture.reset();
    s->captured.clear();
  }
  std::vector<emulated::CapturedWork> work = std::exchange(capture->work, {});  // events stay
  d.check();
  if (!capture->broken.empty()) {
    fail(ExitCode::internal, "nothing was captured: " + capture->broken);
  }
  if (!joined) fail(ExitCode::internal, "nothing was captured: a stream has not come back");
  return new GraphHandle{std::move(work), nullptr};
}

void Graph::abandon_capture(Stream stream) noexcept {
  const std::lock_guard lock(devices().mutex);
  const auto capture = std::move(stream->capture);
  if (!capture) return;
  capture->work.clear();
  for (Stream s : capture->streams) {
    s->capture.reset();
    s->captured.clear();
  }
}

Graph::~Graph() { delete graph_; }

void Graph::launch(Stream stream) const {
  auto& d = devices();
  const auto lock = held(d);
  if (stream->capture) fail(ExitCode::internal, "a graph cannot be put into a captured stream");
  ++d.counts.graphs;
  std::vector<emulated::WorkPointer> put;
  for (const emulated::CapturedWork& work : graph_->work) {
    std::vector<emulated::WorkPointer> after;
    for (const std::size_t i : work.after) after.push_back(put[i]);
    if (after.empty()) after = {stream->last, graph_->last_launch};
    put.push_back(work.together ? work.together(after) : d.queue.put(work.run, after));
    if (!work.recorded) continue;
    *work.recorded = {
        put.back(), nullptr, {}, std::chrono::steady_clock::now(), work.recorded->timed};
    ++d.counts.untimed_events;
  }
  if (put.empty()) return;
  stream->last = d.queue.put({}, put);
  graph_->last_launch = stream->last;
  d.changed.notify_all();
}

}  // namespace cputrain::cuda

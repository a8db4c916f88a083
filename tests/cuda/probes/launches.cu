// Launches: what they cost, what may be captured, how many blocks are resident.
#include <algorithm>

#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

// What launches cost, one by one, with timed events between them, and in a graph: E10.

constexpr int kLaunches = 200;

__global__ void nothing_kernel() {}

struct Stamps {
  unsigned long long start, end;
};

/// All blocks wait for so long; the first one says from when to when.
__global__ void stamped_kernel(Stamps* stamps, unsigned long long duration) {
  const unsigned long long start = nanoseconds();
  spin(duration);
  if (blockIdx.x == 0 && threadIdx.x == 0) *stamps = {start, nanoseconds()};
}

class TestGraph {
 public:
  template <class Work>
  TestGraph(const TestStream& stream, const Work& work) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    work();
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t status = cudaGraphInstantiate(&graph_, graph, 0);
    static_cast<void>(cudaGraphDestroy(graph));
    check(status, "cudaGraphInstantiate");
  }
  ~TestGraph() { static_cast<void>(cudaGraphExecDestroy(graph_)); }
  TestGraph(const TestGraph&) = delete;
  TestGraph& operator=(const TestGraph&) = delete;

  void launch(const TestStream& stream) const {
    check(cudaGraphLaunch(graph_, stream), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

struct Cost {
  double host = 0, all = 0;  ///< microseconds of a launch: of the call; with the work itself
};

/// The least of a few tries, the first being a warm-up.
template <class Work>
Cost cost_of(const TestStream& stream, const Work& work) {
  Cost least;
  for (int i = 0; i < 6; ++i) {
    stream.wait("launches");
    const Clock::time_point start = Clock::now();
    work();
    const double host = 1e6 * seconds_since(start) / kLaunches;
    stream.wait("launches");
    const double all = 1e6 * seconds_since(start) / kLaunches;
    if (i == 1 || (i > 1 && all < least.all)) least = {host, all};
  }
  return least;
}

void say_cost(const char* name, const Cost& cost, const char* what) {
  say({.name = name,
       .question = "E10",
       .value = cost.all,
       .unit = "us",
       .text = words("%s: %.2f us each, of which the host takes %.2f", what, cost.all, cost.host)});
}

void ask_costs(const TestStream& stream) {
  const auto launches = [&] {
    for (int i = 0; i < kLaunches; ++i) nothing_kernel<<<1, 32, 0, stream>>>();
  };
  say_cost("launch", cost_of(stream, launches), "launches of nothing");
  TestEvent before, after;
  const auto timed = [&] {
    for (int i = 0; i < kLaunches; ++i) {
      before.record(stream);
      nothing_kernel<<<1, 32, 0, stream>>>();
      after.record(stream);
    }
  };
  say_cost("launch-between-timed-events", cost_of(stream, timed), "launches between timed events");
  const TestGraph graph(stream, launches);
  say_cost("launch-in-graph", cost_of(stream, [&] { graph.launch(stream); }),
           "launches of nothing in a graph");
}

/// Microseconds between the end of a kernel that fills the device and the start of the next.
double gap(const std::vector<Stamps>& stamps) {
  double sum = 0;
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    sum += static_cast<double>(stamps[i].start) - static_cast<double>(stamps[i - 1].end);
  }
  return 1e-3 * sum / static_cast<double>(stamps.size() - 1);
}

void ask_gaps(const TestStream& stream) {
  constexpr int kKernels = 50;
  const TestArray<Stamps> stamps(kKernels);
  const unsigned blocks = 2 * multiprocessors();
  TestEvent before, after;
  const auto kernels = [&](bool timed) {
    for (int i = 0; i < kKernels; ++i) {
      if (timed) before.record(stream);
      stamped_kernel<<<blocks, 256, 0, stream>>>(stamps.data() + i, 20'000);
      if (timed) after.record(stream);
    }
  };
  const auto measured = [&](const auto& work) {
    work();
    stream.wait("kernels of 20 us");
    work();
    stream.wait("kernels of 20 us");
    return gap(stamps.read());
  };
  const double plain = measured([&] { kernels(false); });
  const double timed = measured([&] { kernels(true); });
  const TestGraph graph(stream, [&] { kernels(false); });
  const double in_graph = measured([&] { graph.launch(stream); });
  say({.name = "gap-between-kernels",
       .question = "E10",
       .value = plain,
       .unit = "us",
       .text = words("%.2f us between kernels of a stream, %.2f with timed events, %.2f in a graph",
                     plain, timed, in_graph)});
}

}  // namespace

void ask_launches() {
  const TestStream stream;
  ask_costs(stream);
  ask_gaps(stream);
}

namespace {

// What may be done while a stream is captured, and while its graph runs: E7, E8, E9.

/// Launched nowhere but inside a capture: with lazy loading the runtime has not seen it before.
__global__ void late_kernel(int* out) {
  extern __shared__ int place[];
  place[0] = 42;
  *out = place[0];
}

__global__ void slow_kernel(unsigned long long duration) { spin(duration); }

class Capture {
 public:
  explicit Capture(const TestStream& stream) : stream_(stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  }
  ~Capture() {
    if (graph_) static_cast<void>(cudaGraphDestroy(graph_));
    if (instance_) static_cast<void>(cudaGraphExecDestroy(instance_));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void end() { check(cudaStreamEndCapture(stream_, &graph_), "cudaStreamEndCapture"); }
  void launch() {
    if (!instance_) check(cudaGraphInstantiate(&instance_, graph_, 0), "cudaGraphInstantiate");
    check(cudaGraphLaunch(instance_, stream_), "cudaGraphLaunch");
  }

 private:
  const TestStream& stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t instance_ = nullptr;
};

// Nanoseconds.
constexpr unsigned long long kLong = 20'000'000, kShort = 8'000'000;

}  // namespace

void ask_first_in_capture() {
  constexpr int kShared = 64 << 10;
  const TestStream stream;
  const TestArray<int> out(1);
  Capture capture(stream);
  const cudaError_t attribute =
      cudaFuncSetAttribute(late_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  late_kernel<<<1, 1, kShared, stream>>>(out.data());
  const cudaError_t launched = cudaGetLastError();
  std::string then = "the graph ran";
  int value = 0;
  try {
    capture.end();
    capture.launch();
    stream.wait("the graph");
    value = out.read()[0];
  } catch (const std::runtime_error& e) {
    then = e.what();
  }
  say({.name = "first-launch-in-capture",
       .question = "E7",
       .verdict = verdict_of(attribute == cudaSuccess && launched == cudaSuccess && value == 42),
       .text =
           words("attribute: %s, launch: %s, then %s and wrote %d (want 42)",
                 cudaGetErrorName(attribute), cudaGetErrorName(launched), then.c_str(), value)});
}

void ask_event_in_graph() {
  const TestStream stream;
  const TestEvent middle(cudaEventDisableTiming);
  slow_kernel<<<1, 1, 0, stream>>>(1000);
  stream.wait("a kernel");
  Capture capture(stream);
  slow_kernel<<<1, 1, 0, stream>>>(kShort);
  check(cudaEventRecordWithFlags(middle, stream, cudaEventRecordExternal),
        "an external event in a capture");
  slow_kernel<<<1, 1, 0, stream>>>(kLong);
  capture.end();
  double at_event = 0, at_end = 0;
  // The first launch also brings the graph to the device. Before the second the event has been
  // reached: who waits then must wait for this launch.
  for (int i = 0; i < 2; ++i) {
    const Clock::time_point start = Clock::now();
    capture.launch();
    middle.wait();
    at_event = 1e3 * seconds_since(start);
    stream.wait("the graph");
    at_end = 1e3 * seconds_since(start);
  }
  say({.name = "event-in-graph",
       .question = "E8",
       .value = at_event,
       .unit = "ms",
       .verdict = verdict_of(at_event > 7 && at_event < 15 && at_end > 25),
       .text =
           words("in a second launch of a graph the host got past an event after %.2f ms, past its "
                 "end after %.2f ms; 8 ms of work lie before the event, and 20 ms behind it",
                 at_event, at_end)});
}

void ask_captured_event() {
  const TestStream stream;
  TestEvent captured(cudaEventDisableTiming);
  Capture capture(stream);
  captured.record(stream);
  slow_kernel<<<1, 1, 0, stream>>>(1000);
  capture.end();
  capture.launch();
  const cudaError_t waited = cudaEventSynchronize(captured);
  const cudaError_t asked = cudaEventQuery(captured);
  static_cast<void>(cudaGetLastError());
  say({.name = "captured-event",
       .question = "E9",
       .verdict = verdict_of(waited != cudaSuccess),
       .text = words("after the capture: to wait for an event of it gives %s, to ask for it %s",
                     cudaGetErrorName(waited), cudaGetErrorName(asked))});
}

namespace {

// How many blocks with 72 KB of shared memory a multiprocessor really holds at once, as the driver
// sets its carve-out and as a kernel may wish it: E6.

constexpr int kThreads = 128, kShared = 72 << 10, kBlocksEach = 6, kMostMultiprocessors = 1024;

struct Count {
  unsigned now, most;
};

/// Two instances, since a kernel keeps its attributes.
template <bool kAllShared>
__global__ void __launch_bounds__(kThreads) residents_kernel(Count* counts) {
  extern __shared__ char unused[];
  if (threadIdx.x != 0) return;
  unused[0] = 0;
  unsigned here;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
  Count& count = counts[here % kMostMultiprocessors];
  atomicMax(&count.most, atomicAdd(&count.now, 1) + 1);
  spin(300'000);
  atomicSub(&count.now, 1);
}

struct Residents {
  unsigned least = 0, most = 0;
  int promised = 0;  ///< by the occupancy call
};

template <bool kAllShared>
Residents residents() {
  const auto kernel = residents_kernel<kAllShared>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
        "the attribute for 72 KB of shared memory");
  if (kAllShared) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100),
          "the attribute for the carve-out");
  }
  Residents found;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found.promised, kernel, kThreads, kShared),
        "the occupancy call");
  const TestStream stream;
  const TestArray<Count> counts(kMostMultiprocessors);
  kernel<<<kBlocksEach * multiprocessors(), kThreads, kShared, stream>>>(counts.data());
  stream.wait("blocks of 72 KB");
  for (const Count& count : counts.read()) {
    if (count.most == 0) continue;  // no multiprocessor has this number
    found.least = found.least == 0 ? count.most : std::min(found.least, count.most);
    found.most = std::max(found.most, count.most);
  }
  return found;
}

void say_residents(const char* name, const Residents& r) {
  say({.name = name,
       .question = "E6",
       .value = r.least,
       .unit = "blocks",
       .verdict = verdict_of(r.least >= 2),
       .text =
           words("multiprocessors held %u to %u blocks at once; the occupancy call says %d, the "
                 "plans of products 2",
                 r.least, r.most, r.promised)});
}

}  // namespace

void ask_residents() {
  say_residents("residents-72-kb", residents<false>());
  say_residents("residents-72-kb-carve-out-100", residents<true>());
}

}  // namespace cputrain::cuda::probes

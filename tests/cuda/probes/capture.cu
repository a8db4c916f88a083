// What may be done while a stream is captured, and while its graph runs: E7, E8, E9.
#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

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

}  // namespace cputrain::cuda::probes

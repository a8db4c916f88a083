// What launches cost, one by one, with timed events between them, and in a graph: E10.
#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

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

}  // namespace cputrain::cuda::probes

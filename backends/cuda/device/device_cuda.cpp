// device.h on the CUDA runtime, one call per function. Tests run an emulated device in its place,
// so nothing is decided here but the words for the runtime's errors.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <string_view>
#include <utility>

#include "backends/cuda/device/device.h"
#include "backends/cuda/device/shared_memory_grants.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

/// Throws the runtime's error for a call.
void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // the next call starts clean
  fail(ExitCode::internal,
       fmt::format("CUDA refuses {}: {} ({}; the GPU did not do what was asked); see nvidia-smi "
                   "and the system's log",
                   call, cudaGetErrorString(status), cudaGetErrorName(status)));
}

cudaStream_t stream_of(Stream stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(EventHandle* event) { return reinterpret_cast<cudaEvent_t>(event); }
cudaGraphExec_t graph_of(GraphHandle* graph) { return reinterpret_cast<cudaGraphExec_t>(graph); }

/// "13.0" of 13000.
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Why the driver cannot run this build, which of the two it is, and what it takes. Numbers:
/// "CUDA Compatibility", NVIDIA, "Minor Version Compatibility".
std::string unusable_driver() {
  constexpr int kOldestDriver = CUDART_VERSION >= 13000 ? 580 : 525;
  int version = 0;
  const bool there = cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
  return fmt::format(
      "{} (this build's CUDA {} needs driver {} or newer)",
      there ? "an NVIDIA driver for CUDA " + version_text(version) + " alone" : "no NVIDIA driver",
      version_text(CUDART_VERSION), kOldestDriver);
}

/// GPUs, and the parts of one that MIG makes, differ in their UUIDs.
std::string identity_of(const cudaDeviceProp& properties) {
  std::string text;
  for (const char byte : properties.uuid.bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

}  // namespace

std::string why_no_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count > 0 ? "" : "no CUDA device";
  static_cast<void>(cudaGetLastError());
  if (status == cudaErrorInsufficientDriver) return unusable_driver();
  return status == cudaErrorNoDevice ? "no CUDA device" : cudaGetErrorString(status);
}

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

DeviceProperties device_properties(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return {.name = properties.name,
          .identity = identity_of(properties),
          .major = properties.major,
          .minor = properties.minor,
          .multiprocessors = properties.multiProcessorCount,
          .memory = properties.totalGlobalMem,
          .shared_memory = properties.sharedMemPerBlockOptin,
          .runtime = fmt::format("CUDA {}, driver for {}", version_text(CUDART_VERSION),
                                 version_text(driver)),
          .emulated = false};
}

void use_device(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

std::size_t free_memory() {
  std::size_t free = 0, all = 0;
  check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  return free;
}

DeviceBlock::DeviceBlock(std::size_t bytes, const char* name) : size_(bytes) {
  if (bytes == 0) return;
  void* data = nullptr;
  check(cudaMalloc(&data, bytes), fmt::format("{} bytes for {}", bytes, name));
  data_.reset(data);
}

// What cannot be freed is gone with the process; a destructor must not throw.
void DeviceBlock::Free::operator()(void* data) const noexcept { static_cast<void>(cudaFree(data)); }

PinnedBlock::PinnedBlock(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* data = nullptr;
  check(cudaHostAlloc(&data, bytes, cudaHostAllocDefault),
        fmt::format("{} bytes of pinned memory", bytes));
  data_.reset(static_cast<std::byte*>(data));
}

void PinnedBlock::Free::operator()(std::byte* data) const noexcept {
  static_cast<void>(cudaFreeHost(data));
}

OwnedStream::OwnedStream() : stream_(nullptr) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  stream_ = reinterpret_cast<Stream>(stream);
}

OwnedStream::~OwnedStream() { static_cast<void>(cudaStreamDestroy(stream_of(stream_))); }

void OwnedStream::synchronize() const {
  check(cudaStreamSynchronize(stream_of(stream_)), "what was put into a stream");
}

Event::Event(Kind kind) : event_(nullptr) {
  constexpr unsigned kUntimed = cudaEventDisableTiming | cudaEventBlockingSync;
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, kind == timed ? cudaEventDefault : kUntimed),
        "cudaEventCreate");
  event_ = reinterpret_cast<EventHandle*>(event);
}

Event::~Event() { static_cast<void>(cudaEventDestroy(event_of(event_))); }

void Event::record(Stream stream) {
  check(cudaEventRecord(event_of(event_), stream_of(stream)), "cudaEventRecord");
}

void Event::record_in_graph(Stream stream) {
  check(cudaEventRecordWithFlags(event_of(event_), stream_of(stream), cudaEventRecordExternal),
        "cudaEventRecordWithFlags");
}

void Event::hold_up(Stream stream) const {
  check(cudaStreamWaitEvent(stream_of(stream), event_of(event_), 0), "cudaStreamWaitEvent");
}

void Event::synchronize() const {
  check(cudaEventSynchronize(event_of(event_)), "what an event waits for");
}

bool Event::was_reached() const {
  const cudaError_t status = cudaEventQuery(event_of(event_));
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  return true;
}

double Event::seconds_since(const Event& earlier) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, event_of(earlier.event_), event_of(event_)),
        "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status{};
  check(cudaStreamIsCapturing(stream_of(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void Graph::begin_capture(Stream stream) {
  check(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
}

GraphHandle* Graph::end_capture(Stream stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream_of(stream), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t instance = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&instance, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));  // the instance has all of it
  check(status, "cudaGraphInstantiate");
  return reinterpret_cast<GraphHandle*>(instance);
}

void Graph::abandon_capture(Stream stream) noexcept {
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(stream_of(stream), &graph));
  if (graph) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());
}

Graph::~Graph() {
  if (graph_) static_cast<void>(cudaGraphExecDestroy(graph_of(graph_)));
}

void Graph::launch(Stream stream) const {
  check(cudaGraphLaunch(graph_of(graph_), stream_of(stream)), "cudaGraphLaunch");
}

void copy_async(void* dst, const void* src, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream_of(stream)), "cudaMemcpyAsync");
}

void clear_async(void* dst, std::size_t bytes, Stream stream) {
  check(cudaMemsetAsync(dst, 0, bytes, stream_of(stream)), "cudaMemsetAsync");
}

void reserve_shared_memory(const char* name, const void* kernel, std::size_t bytes) {
  static SharedMemoryGrants grants;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  grants.ask_once(device, kernel, bytes, [&] {
    const auto set = [&](cudaFuncAttribute attribute, int value, const char* what) {
      check(cudaFuncSetAttribute(kernel, attribute, value),
            fmt::format("{} bytes of shared memory for {} ({})", bytes, name, what));
    };
    set(cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes), "of a block");
    set(cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared,
        "of a multiprocessor");
  });
}

void name_range(const char* name) {
  static thread_local bool named = false;
  if (std::exchange(named, true)) nvtxRangePop();
  nvtxRangePushA(name);
}

void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace cputrain::cuda

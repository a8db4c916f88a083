#pragma once

#include <cstddef>
#include <memory>
#include <string>

/// What the backend asks of the CUDA runtime, some forty calls and no more: device_cuda.cpp makes
/// them and holds no logic, because tests run an emulated device behind the same header, which
/// defers work and runs it in any order that streams and events allow.
///
/// Work on a stream is asynchronous: it has happened once the stream was waited for. What fails
/// throws Error(internal), with the runtime's own words.
namespace cputrain::cuda {

struct StreamHandle;
using Stream = StreamHandle*;  ///< cudaStream_t
struct EventHandle;
struct GraphHandle;

struct DeviceProperties {
  std::string name;          ///< "NVIDIA H100 80GB HBM3"
  std::string identity;      ///< the same for two processes that share the device, no others
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  std::size_t memory = 0;         ///< bytes
  std::size_t shared_memory = 0;  ///< bytes that a block may have
  std::string runtime;            ///< "CUDA 13.0, driver for 13.1"
  bool emulated = false;          ///< computes on the CPU, for tests: no time of it means anything
};

/// Empty where there is a device, else why there is none: "no NVIDIA driver (...)", "an NVIDIA
/// driver for CUDA 12.4 alone (...)", "no CUDA device".
std::string why_no_device();
/// Devices that this process may use; 0 where there is none.
int device_count();
DeviceProperties device_properties(int device);
/// Everything that the calling thread does from now on is done on this device.
void use_device(int device);
/// Bytes that are free on the calling thread's device, for all processes together.
std::size_t free_memory();

/// Memory of the calling thread's device, on a 256-byte boundary, with undefined contents.
class DeviceBlock {
 public:
  DeviceBlock() = default;  ///< empty
  /// `name` is for reports of the emulated device.
  DeviceBlock(std::size_t bytes, const char* name);
  void* data() const { return data_.get(); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data());
  }
  std::size_t size() const { return data_ ? size_ : 0; }

 private:
  struct Free {
    void operator()(void* data) const noexcept;
  };
  std::unique_ptr<void, Free> data_;
  std::size_t size_ = 0;
};

/// Memory of the host that copies can be asynchronous from and to.
class PinnedBlock {
 public:
  PinnedBlock() = default;
  explicit PinnedBlock(std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }
  std::size_t size() const { return data_ ? size_ : 0; }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

/// A queue of work that is done in order. It does not wait for the legacy default stream.
class OwnedStream {
 public:
  OwnedStream();
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;

  Stream get() const { return stream_; }
  /// Until everything that was put into it has been done; throws what went wrong on the device.
  void synchronize() const;

 private:
  Stream stream_;
};

/// A place in a stream.
class Event {
 public:
  /// Only timed events have a time; waiting for the others costs no CPU.
  enum Kind { untimed, timed };
  explicit Event(Kind kind = untimed);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// The place behind what the stream holds now.
  void record(Stream);
  /// The same within a capture: each launch of the graph records the event anew, for the host too.
  void record_in_graph(Stream);
  /// What is put into the stream from now on begins after this place. An event that was never
  /// recorded holds nothing up, as in CUDA.
  void hold_up(Stream) const;
  /// Until the place was reached.
  void synchronize() const;
  /// Whether it was; one that was never recorded counts so.
  bool was_reached() const;
  /// From the place of `earlier` to this one; both are timed, were recorded and have been reached.
  double seconds_since(const Event& earlier) const;

 private:
  EventHandle* event_;
};

/// Whether what is put into the stream now becomes part of a graph.
bool is_capturing(Stream);

/// Work that was captured from a stream once and can be put into it again.
class Graph {
 public:
  /// What `work` puts into the stream is kept, and not done. No allocation, no waiting inside.
  template <class Work>
  Graph(Stream stream, const Work& work) {
    begin_capture(stream);
    try {
      work();
    } catch (...) {
      abandon_capture(stream);
      throw;
    }
    graph_ = end_capture(stream);
  }
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(Stream) const;

 private:
  static void begin_capture(Stream);
  static GraphHandle* end_capture(Stream);
  static void abandon_capture(Stream) noexcept;
  GraphHandle* graph_ = nullptr;
};

/// Either address may be the device's; the host's should be pinned, else the call may wait.
void copy_async(void* dst, const void* src, std::size_t bytes, Stream);
/// Fills with zero bytes.
void clear_async(void* dst, std::size_t bytes, Stream);
/// Has blocks of a kernel get so much dynamic shared memory (only 48 KiB need no asking), and
/// multiprocessors set apart as much shared memory as they can, so that several blocks fit. Every
/// launch asks for it; the runtime is asked once per kernel and device.
void reserve_shared_memory(const char* name, const void* kernel, std::size_t bytes);
/// Begins a range of the calling thread and ends the one before, for tools that show what the host
/// asked for beside what the device did (NVTX). The text lives for ever.
void name_range(const char* name);
/// Throws what kept the last kernel from starting: `kernel` is its name.
void check_launch(const char* kernel);

}  // namespace cputrain::cuda

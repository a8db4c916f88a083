#pragma once

#include <cstddef>
#include <string>

/// Memory of the emulated devices: a range of addresses that the host may not touch, except while
/// kernels and copies run. It is locked for that: behind each of a process's first waits, then now
/// and then (memory.cpp). The end of each array lies as near to a page that nobody may ever touch
/// as its alignment of 256 bytes allows. All functions but the last three want the device's mutex.
namespace cputrain::emulated {

inline constexpr std::size_t kMemoryRange = std::size_t{64} << 30;  ///< of all devices together

/// Holds 0xff in every byte: no number, as a float. Throws Error(internal) if the device is full.
void* allocate(std::size_t bytes, const char* name, int device);
void release(void*);
std::size_t memory_of_device();  ///< bytes of each
std::size_t used_memory(int device);

/// While one lives, kernels and copies may run.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
};
/// The next waits are the first ones.
void count_waits_anew();

/// Copies and clears; at least one address is the device's. Throw Fault.
void copy_now(void* dst, const void* src, std::size_t bytes);
void clear_now(void* dst, std::size_t bytes);

bool is_device_memory(const void*);
/// "byte 400 of "weights", which has 400 bytes"; also where the address is not the device's.
std::string describe_address(const void*);
/// Describes an address and says that the host touched it, on the standard error output.
void report_touch_by_host(const void*);

}  // namespace cputrain::emulated

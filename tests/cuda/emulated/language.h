#pragma once

/// CUDA C++ for g++: the names that backends/cuda/device/language.h has for nvcc, and those that
/// CUDA itself gives to kernels. Calls of barriers and warps note their line, so that reports can
/// name it.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "backends/cuda/device/device.h"
#include "emulated/emulator.h"
#include "emulated/vectors.h"
#include "emulated/warp.h"

#define CPUTRAIN_DEVICE inline __attribute__((always_inline))
#define __global__ static __attribute__((unused))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define threadIdx (::cputrain::emulated::now.self->index)
#define blockIdx (::cputrain::emulated::now.block_index)
#define blockDim (::cputrain::emulated::now.block)
#define gridDim (::cputrain::emulated::now.grid)
#define warpSize 32

using dim3 = ::cputrain::emulated::Dim;

inline void __syncthreads(::cputrain::emulated::Place at = ::cputrain::emulated::Place::current()) {
  ::cputrain::emulated::block_barrier(at);
}
inline void __syncwarp(unsigned mask = ~0u,
                       ::cputrain::emulated::Place at = ::cputrain::emulated::Place::current()) {
  ::cputrain::emulated::warp_barrier(mask, at);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              ::cputrain::emulated::Place at = ::cputrain::emulated::Place::current()) {
  return ::cputrain::emulated::shuffled(mask, "__shfl_sync", at, value, [=](unsigned lane) {
    const auto segment = static_cast<unsigned>(width);
    return lane / segment * segment + static_cast<unsigned>(source) % segment;
  });
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  ::cputrain::emulated::Place at = ::cputrain::emulated::Place::current()) {
  return ::cputrain::emulated::shuffled(mask, "__shfl_xor_sync", at, value, [=](unsigned lane) {
    const auto segment = static_cast<unsigned>(width);
    const unsigned source = lane ^ static_cast<unsigned>(lanes);
    return source / segment <= lane / segment ? source : lane;
  });
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                   ::cputrain::emulated::Place at = ::cputrain::emulated::Place::current()) {
  return ::cputrain::emulated::shuffled(mask, "__shfl_down_sync", at, value, [=](unsigned lane) {
    const auto segment = static_cast<unsigned>(width);
    return lane % segment + lanes < segment ? lane + lanes : lane;
  });
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                 ::cputrain::emulated::Place at = ::cputrain::emulated::Place::current()) {
  return ::cputrain::emulated::shuffled(mask, "__shfl_up_sync", at, value, [=](unsigned lane) {
    const auto segment = static_cast<unsigned>(width);
    return lane % segment >= lanes ? lane - lanes : lane;
  });
}
inline unsigned __ballot_sync(
    unsigned mask, int predicate,
    ::cputrain::emulated::Place at = ::cputrain::emulated::Place::current()) {
  return ::cputrain::emulated::vote(mask, "__ballot_sync", at, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate,
                      ::cputrain::emulated::Place at = ::cputrain::emulated::Place::current()) {
  return ::cputrain::emulated::vote(mask, "__any_sync", at, predicate != 0) != 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      ::cputrain::emulated::Place at = ::cputrain::emulated::Place::current()) {
  return ::cputrain::emulated::vote(mask, "__all_sync", at, predicate != 0) == mask;
}

// For integers alone: the order of additions of floats would change their sums.
inline int atomicAdd(int* p, int value) { return ::cputrain::emulated::atomic_add(p, value); }
inline unsigned atomicAdd(unsigned* p, unsigned value) {
  return ::cputrain::emulated::atomic_add(p, value);
}
inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long value) {
  return ::cputrain::emulated::atomic_add(p, value);
}

inline unsigned __float_as_uint(float f) { return std::bit_cast<unsigned>(f); }
inline float __uint_as_float(unsigned u) { return std::bit_cast<float>(u); }
inline int __float_as_int(float f) { return std::bit_cast<int>(f); }
inline float __int_as_float(int i) { return std::bit_cast<float>(i); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{y} << 32 | x;
  unsigned made = 0;
  for (unsigned i = 0; i < 4; ++i) {
    made |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  }
  return made;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(std::uint64_t{a} * b >> 32);
}
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
template <class T>
T __ldg(const T* p) {
  return *p;
}

/// As in device code: of mixed arguments the common type, and of a number and NaN the number.
template <class A, class B>
requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B>
constexpr auto min(A a, B b) {
  using T = std::common_type_t<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  return x < y || y != y ? x : y;
}
template <class A, class B>
requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B>
constexpr auto max(A a, B b) {
  using T = std::common_type_t<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  return x > y || y != y ? x : y;
}

namespace cputrain::cuda {

/// One T for all threads of the block; it has no constructor and holds anything at first.
template <class T>
CPUTRAIN_DEVICE T& shared() {
  return *static_cast<T*>(emulated::shared_storage(&emulated::kKeyOf<T>, sizeof(T), alignof(T)));
}

/// The shared memory that the launch asked for.
template <class T>
CPUTRAIN_DEVICE T& dynamic_shared() {
  return *static_cast<T*>(emulated::dynamic_storage());
}

/// Puts a kernel into the stream. Its name is for messages; `shared_bytes` are of dynamic_shared().
template <class... Parameters, class... Arguments>
void launch(Stream stream, const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared_bytes, Arguments... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...));
  if (shared_bytes > 0) {
    reserve_shared_memory(name, reinterpret_cast<const void*>(kernel), shared_bytes);
  }
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<std::remove_const_t<Parameters>...> arguments;
  };
  const auto body = [](const void* p) {
    const Call& call = *static_cast<const Call*>(p);
    std::apply(call.kernel, call.arguments);
  };
  const Call call{kernel, {static_cast<Parameters>(arguments)...}};
  emulated::put_kernel(stream, {name, grid, block, shared_bytes, body}, &call, sizeof call);
}

}  // namespace cputrain::cuda

#include <cstdint>

/// Functions of the host in files of checked kernels have atomic operations too, of shared_ptr for
/// one. The compiler makes these calls of them; kernels must not (atomicAdd is none of them).

#define CPUTRAIN_ATOMIC(T, bits, name, expression)             \
  T __tsan_atomic##bits##_##name(volatile T* p, T value, int); \
  T __tsan_atomic##bits##_##name(volatile T* p, T value, int) { return expression; }
#define CPUTRAIN_COMPARE(T, bits, strength)                                                       \
  int __tsan_atomic##bits##_compare_exchange_##strength(volatile T* p, T* expected, T value, int, \
                                                        int);                                     \
  int __tsan_atomic##bits##_compare_exchange_##strength(volatile T* p, T* expected, T value, int, \
                                                        int) {                                    \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST,               \
                                       __ATOMIC_SEQ_CST);                                         \
  }
#define CPUTRAIN_ATOMICS(T, bits)                                                     \
  T __tsan_atomic##bits##_load(const volatile T* p, int);                             \
  T __tsan_atomic##bits##_load(const volatile T* p, int) {                            \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                      \
  }                                                                                   \
  void __tsan_atomic##bits##_store(volatile T* p, T value, int);                      \
  void __tsan_atomic##bits##_store(volatile T* p, T value, int) {                     \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                     \
  }                                                                                   \
  CPUTRAIN_ATOMIC(T, bits, exchange, __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST)) \
  CPUTRAIN_ATOMIC(T, bits, fetch_add, __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST)) \
  CPUTRAIN_ATOMIC(T, bits, fetch_sub, __atomic_fetch_sub(p, value, __ATOMIC_SEQ_CST)) \
  CPUTRAIN_COMPARE(T, bits, strong)                                                   \
  CPUTRAIN_COMPARE(T, bits, weak)

extern "C" {

CPUTRAIN_ATOMICS(std::uint8_t, 8)
CPUTRAIN_ATOMICS(std::uint32_t, 32)
CPUTRAIN_ATOMICS(std::uint64_t, 64)

}  // extern "C"

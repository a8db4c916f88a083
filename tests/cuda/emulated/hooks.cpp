#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "emulated/emulator.h"
#include "emulated/memory.h"
#include "emulated/shadow.h"
#include "emulated/shared_memory.h"

/// What checked kernels call. They are compiled with -fsanitize=thread, which makes a call of every
/// access to memory that others may see, and with some of -fsanitize=undefined; the functions are
/// ours, neither library of the compiler is linked.

namespace cputrain::emulated {
namespace {

/// Structs of the compiler's interface: gcc's libsanitizer/ubsan/ubsan_value.h, ubsan_handlers.h.
struct SourceLocation {
  const char* file;
  std::uint32_t line, column;
};
struct TypeDescriptor {
  std::uint16_t kind, info;
  char name[1];
};
struct OutOfBounds {
  SourceLocation location;
  const TypeDescriptor *array, *index;
};
struct ShiftOutOfBounds {
  SourceLocation location;
  const TypeDescriptor *left, *right;
};
struct TypeMismatch {
  SourceLocation location;
  const TypeDescriptor* type;
  unsigned char log_alignment, check;
};

std::string address_text(const void* p) {
  if (is_shared_memory(p)) return describe_shared(shared_shadow().offset(p));
  return describe_address(p);
}

/// In a kernel a fault of it; else as the compiler's library does.
[[noreturn]] void complain(const SourceLocation& at, const std::string& what,
                           const std::string& rest) {
  const std::string line = line_text(at.file, at.line);
  if (stacks.hold(__builtin_frame_address(0))) {
    kernel_fault_at(what + ": " + this_thread_text() + rest, line);
  }
  std::fprintf(stderr, "%s: runtime error: %s%s\n", line.c_str(), what.c_str(), rest.c_str());
  std::abort();
}

std::string index_text(std::uintptr_t value, const TypeDescriptor& type) {
  constexpr std::uint16_t kInteger = 0;
  const bool is_signed = type.info & 1;
  const int bits = 1 << (type.info >> 1);
  if (type.kind != kInteger || bits > 64) return "an index";
  return "index " +
         (is_signed ? std::to_string(static_cast<std::intptr_t>(value)) : std::to_string(value));
}

}  // namespace
}  // namespace cputrain::emulated

namespace ours = cputrain::emulated;

#define CPUTRAIN_CALLER __builtin_return_address(0)
#define CPUTRAIN_HOOKS(bytes)                                                                  \
  void __tsan_read##bytes(void* p);                                                            \
  void __tsan_read##bytes(void* p) { ours::check_read(p, bytes, CPUTRAIN_CALLER); }            \
  void __tsan_write##bytes(void* p);                                                           \
  void __tsan_write##bytes(void* p) { ours::check_write(p, bytes, CPUTRAIN_CALLER); }          \
  void __tsan_volatile_read##bytes(void* p);                                                   \
  void __tsan_volatile_read##bytes(void* p) { ours::check_read(p, bytes, CPUTRAIN_CALLER); }   \
  void __tsan_volatile_write##bytes(void* p);                                                  \
  void __tsan_volatile_write##bytes(void* p) { ours::check_write(p, bytes, CPUTRAIN_CALLER); } \
  void __tsan_unaligned_read##bytes(void* p);                                                  \
  void __tsan_unaligned_read##bytes(void* p) { ours::check_read(p, bytes, CPUTRAIN_CALLER); }  \
  void __tsan_unaligned_write##bytes(void* p);                                                 \
  void __tsan_unaligned_write##bytes(void* p) { ours::check_write(p, bytes, CPUTRAIN_CALLER); }

extern "C" {

CPUTRAIN_HOOKS(1)
CPUTRAIN_HOOKS(2)
CPUTRAIN_HOOKS(4)
CPUTRAIN_HOOKS(8)
CPUTRAIN_HOOKS(16)

void __tsan_read_range(void* p, std::size_t bytes);
void __tsan_read_range(void* p, std::size_t bytes) { ours::check_read(p, bytes, CPUTRAIN_CALLER); }
void __tsan_write_range(void* p, std::size_t bytes);
void __tsan_write_range(void* p, std::size_t bytes) {
  ours::check_write(p, bytes, CPUTRAIN_CALLER);
}
void __tsan_init();
void __tsan_init() {}
void __tsan_func_entry(void*);
void __tsan_func_entry(void*) {}
void __tsan_func_exit();
void __tsan_func_exit() {}

void __tsan_vptr_update(void**, void*);
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**);
void __tsan_vptr_read(void**) {}

void __ubsan_handle_out_of_bounds_abort(ours::OutOfBounds*, std::uintptr_t);
void __ubsan_handle_out_of_bounds_abort(ours::OutOfBounds* data, std::uintptr_t index) {
  ours::complain(data->location, "index out of bounds",
                 ", " + ours::index_text(index, *data->index) + " of " + data->array->name);
}

void __ubsan_handle_shift_out_of_bounds_abort(ours::ShiftOutOfBounds*, std::uintptr_t,
                                              std::uintptr_t);
void __ubsan_handle_shift_out_of_bounds_abort(ours::ShiftOutOfBounds* data, std::uintptr_t,
                                              std::uintptr_t by) {
  ours::complain(data->location, "shift by too many bits",
                 ", of " + std::string(data->left->name) + " by " + std::to_string(by));
}

void __ubsan_handle_type_mismatch_v1_abort(ours::TypeMismatch*, std::uintptr_t);
void __ubsan_handle_type_mismatch_v1_abort(ours::TypeMismatch* data, std::uintptr_t address) {
  if (address == 0) {
    ours::complain(data->location, "null pointer", ", of " + std::string(data->type->name));
  }
  const auto bytes = std::size_t{1} << data->log_alignment;
  ours::complain(data->location, "misaligned access",
                 ", " + std::string(data->type->name) + " needs " + std::to_string(bytes) +
                     " bytes, " + ours::address_text(reinterpret_cast<const void*>(address)));
}

}  // extern "C"

#include "emulated/fibers.h"

#include <sys/mman.h>

#include "core/error.h"

#if defined(__x86_64__) && !defined(CPUTRAIN_EMULATED_UCONTEXT)
#define CPUTRAIN_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace cputrain::emulated {

#ifdef CPUTRAIN_OWN_SWITCH

extern "C" void cputrain_emulated_switch(Context* from, Context to);
// The registers that a call preserves in the System V ABI lie on the stack meanwhile.
asm(R"(
.text
.globl cputrain_emulated_switch
.hidden cputrain_emulated_switch
.type cputrain_emulated_switch,@function
cputrain_emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cputrain_emulated_switch,.-cputrain_emulated_switch
)");

void switch_context(Context& from, Context to) { cputrain_emulated_switch(&from, to); }

namespace {

Context make_context(std::byte*, std::byte* top, void (*entry)()) {
  auto* p = reinterpret_cast<void**>(top);
  *--p = nullptr;  // where `entry` would return to
  *--p = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--p = nullptr;
  return p;
}

}  // namespace

#else

void switch_context(Context& from, Context to) {
  ucontext_t here;
  from = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}

namespace {

Context make_context(std::byte* bottom, std::byte* top, void (*entry)()) {
  auto* context = reinterpret_cast<ucontext_t*>(bottom);
  getcontext(context);
  context->uc_stack.ss_sp = bottom + sizeof(ucontext_t);
  context->uc_stack.ss_size = static_cast<std::size_t>(top - bottom) - sizeof(ucontext_t);
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

}  // namespace

#endif

void Stacks::make() {
  if (base_) return;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* p = mmap(nullptr, kAllBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (p == MAP_FAILED) fail(ExitCode::internal, "no address space for emulated threads' stacks");
  base_ = static_cast<std::byte*>(p);
  for (unsigned i = 0; i < kMostThreads; ++i) mprotect(base_ + i * kStride, kPageBytes, PROT_NONE);
  reset();
}

void Stacks::reset() {
  idle_count_ = 0;
  for (unsigned i = kMostThreads; i-- > 0;) give_back(i);
#if defined(__SANITIZE_ADDRESS__)
  // Frames that never returned have left their marks.
  for (unsigned i = 0; i < kMostThreads; ++i) {
    ASAN_UNPOISON_MEMORY_REGION(base_ + i * kStride + kPageBytes, kBytes);
  }
#endif
}

Context Stacks::begin(void (*entry)(), unsigned& stack) {
  stack = idle_[--idle_count_];
  std::byte* bottom = base_ + stack * kStride + kPageBytes;
  // Were all tops at the same place of their pages, they would share a few lines of the caches.
  const std::size_t shift = stack * 17 % 128 * 64;
  return make_context(bottom, bottom + kBytes - shift, entry);
}

}  // namespace cputrain::emulated

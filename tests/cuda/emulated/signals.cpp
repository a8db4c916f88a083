#include "emulated/signals.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <string>

#include "emulated/emulator.h"
#include "emulated/memory.h"
#include "emulated/shadow.h"
#include "emulated/shared_memory.h"

namespace cputrain::emulated {
namespace {

/// What a signal in a kernel says; the kernel's thread takes it from here.
struct Caught {
  std::string text;
  const void* pc;
};
Caught& caught() {
  static Caught& one = *new Caught;
  return one;
}

[[noreturn]] void land() { kernel_fault(caught().text, caught().pc); }

struct Registers {
  std::uintptr_t stack, pc;
};

#if defined(__x86_64__)
Registers registers_of(const ucontext_t& c) {
  return {static_cast<std::uintptr_t>(c.uc_mcontext.gregs[REG_RSP]),
          static_cast<std::uintptr_t>(c.uc_mcontext.gregs[REG_RIP])};
}
void go_on_at(ucontext_t& c, std::uintptr_t stack, void (*f)()) {
  c.uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(stack - sizeof(void*));  // as behind a call
  c.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(f);
}
#elif defined(__aarch64__)
Registers registers_of(const ucontext_t& c) { return {c.uc_mcontext.sp, c.uc_mcontext.pc}; }
void go_on_at(ucontext_t& c, std::uintptr_t stack, void (*f)()) {
  c.uc_mcontext.sp = stack;
  c.uc_mcontext.pc = reinterpret_cast<std::uintptr_t>(f);
}
#else
#error "signals of kernels: the registers of this processor are not known"
#endif

constexpr std::size_t kLandingBytes = std::size_t{64} << 10;

/// Where the fault of a kernel goes on, whatever became of its stack.
std::uintptr_t landing_stack() {
  alignas(64) static std::byte stack[kLandingBytes];
  return reinterpret_cast<std::uintptr_t>(stack + kLandingBytes);
}

std::string text_of(int signal, const void* address) {
  const std::string who = this_thread_text();
  if (signal == SIGFPE) return "integer division by zero: " + who;
  if (stacks.hold(address)) return "too many local variables: " + who;
  if (is_shared_memory(address)) {
    return "out of bounds access: " + who + ", " + describe_shared(shared_shadow().offset(address));
  }
  return "bad address: " + who + ", " + describe_address(address);
}

struct sigaction before[64];

void on_signal(int signal, siginfo_t* info, void* context) {
  auto& interrupted = *static_cast<ucontext_t*>(context);
  const Registers registers = registers_of(interrupted);
  // A stack that is full has its pointer in the page below.
  if (stacks.hold(reinterpret_cast<const void*>(registers.stack))) {
    caught() = {text_of(signal, info->si_addr), reinterpret_cast<const void*>(registers.pc + 1)};
    return go_on_at(interrupted, landing_stack(), &land);
  }
  const bool ours = signal != SIGFPE && is_device_memory(info->si_addr);
  if (ours) report_touch_by_host(info->si_addr);
  // What the program did before it did with this signal happens when the instruction is repeated.
  if (ours) {
    ::signal(signal, SIG_DFL);
  } else {
    sigaction(signal, &before[signal], nullptr);
  }
}

/// A thread's stack for handlers of signals.
struct SignalStack {
  static constexpr std::size_t kBytes = std::size_t{256} << 10;
  void* memory = nullptr;

  SignalStack() {
    stack_t now_used{};
    sigaltstack(nullptr, &now_used);
    if (!(now_used.ss_flags & SS_DISABLE)) return;  // it has one
    memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_t mine{};
    mine.ss_sp = memory;
    mine.ss_size = kBytes;
    sigaltstack(&mine, nullptr);
  }
  ~SignalStack() {
    if (!memory || memory == MAP_FAILED) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    munmap(memory, kBytes);
  }
};

}  // namespace

void handle_signals() {
  static const bool once = [] {
    struct sigaction action {};
    action.sa_sigaction = &on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE}) sigaction(signal, &action, &before[signal]);
    return true;
  }();
  (void)once;
}

SignalsOfKernels::SignalsOfKernels() {
  handle_signals();
  thread_local const SignalStack stack;
  (void)stack;
}

}  // namespace cputrain::emulated

#include "system/limits/process_limits.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "system/limits/control_group.h"

namespace cputrain::system {
namespace {

/// Nothing where none is set.
std::optional<rlim_t> limit_of(__rlimit_resource_t resource) {
  struct rlimit now {};
  const bool is_set = ::getrlimit(resource, &now) == 0 && now.rlim_cur != RLIM_INFINITY;
  return is_set ? std::optional(now.rlim_cur) : std::nullopt;
}

/// The variable for the size of the stacks of OpenMP's threads, and it as it was written, in KiB
/// without a unit: "OMP_STACKSIZE 8M"; empty where none is set.
std::string openmp_stack() {
  for (const char* variable : {"OMP_STACKSIZE", "GOMP_STACKSIZE"}) {
    const char* text = std::getenv(variable);
    if (text && *text) return std::string(variable) + " " + text;
  }
  return {};
}

/// In bytes; 0 where that is not known.
std::size_t openmp_stack_bytes() {
  char unit = 'K';
  double number = 0;
  if (std::sscanf(openmp_stack().c_str(), "%*s %lf %c", &number, &unit) < 1 || !(number > 0)) {
    return 0;
  }
  const auto power = std::string_view("BKMG").find(static_cast<char>(std::toupper(unit)));
  const double bytes = power == std::string_view::npos ? 0 : number * std::pow(1024, power);
  return bytes < 1e18 ? static_cast<std::size_t>(bytes) : 0;
}

void* wait_for(void* latch) {
  static_cast<std::latch*>(latch)->wait();
  return nullptr;
}

std::string refusal_of(const std::string& wanted, int error) {
  const std::string limits = limits_text();
  return "this process needs " + wanted + " (" + std::strerror(error) +
         (limits.empty() ? "" : "; " + limits) +
         "); use fewer --threads and --io-threads, fewer ranks or smaller images, or raise the "
         "limit";
}

/// The number after a word in a file of lines "word number ...".
std::optional<std::size_t> number_after(const char* path, const std::string& word) {
  std::ifstream file(path);
  for (std::string found; file >> found; file.ignore(256, '\n')) {
    std::size_t number = 0;
    if (found == word && file >> number) return number;
  }
  return std::nullopt;
}

std::optional<std::size_t> left_on_machine() {
  const auto units = number_after("/proc/meminfo", "MemAvailable:");
  return units ? std::optional(*units * 1024) : std::nullopt;
}

std::optional<std::size_t> left_in_group() {
  const auto left = read_group_limits("/").memory_left;
  return left ? std::optional(static_cast<std::size_t>(*left)) : std::nullopt;
}

}  // namespace

bool limits_addresses() { return limit_of(RLIMIT_AS) || limit_of(RLIMIT_DATA); }

std::string limits_text() {
  std::vector<std::string> parts;
  const auto add = [&](__rlimit_resource_t resource, const char* name, rlim_t bytes_of_unit) {
    const auto limit = limit_of(resource);
    if (limit) parts.push_back(std::string(name) + " " + std::to_string(*limit / bytes_of_unit));
  };
  add(RLIMIT_AS, "ulimit -v", 1024);
  add(RLIMIT_DATA, "ulimit -d", 1024);
  add(RLIMIT_NPROC, "ulimit -u", 1);
  const double of_group = read_group_limits("/").threads;
  if (of_group > 0) parts.push_back("pids.max " + std::to_string(std::lround(of_group)));
  if (std::string stack = openmp_stack(); !stack.empty()) parts.push_back(std::move(stack));
  return join(parts, ", ");
}

// What was had by then is given back where it throws.
TriedThreads::TriedThreads(int count, const MemoryToCome& memory) : TriedThreads() {
  const std::string mib = std::to_string(memory.all() >> 20) + " MiB of memory";
  const std::string more = std::to_string(count) + " more threads";
  if (const int error = reserve(memory); error != 0) {
    refusal_ = refusal_of(mib + " and " + more + ", and the system refuses the memory", error);
  } else if (const int lack = start(count); lack != 0) {
    refusal_ = refusal_of(more + (memory.all() > 0 ? " beside " + mib : "") + " and can have " +
                              std::to_string(threads_.size()),
                          lack);
  }
}

TriedThreads::~TriedThreads() {
  end_.count_down();
  for (const pthread_t thread : threads_) ::pthread_join(thread, nullptr);
  for (const auto& [start, bytes] : reserved_) ::munmap(start, bytes);
}

/// Addresses, where a limit is set that they count for. The system counts those that can be written
/// for `ulimit -d`; where it promises no more memory than it has (vm.overcommit_memory 2), it
/// counts them as used as well, so others cannot be written.
int TriedThreads::reserve(const MemoryToCome& memory) {
  const bool data = limit_of(RLIMIT_DATA).has_value();
  const bool addresses = limit_of(RLIMIT_AS).has_value();
  int error = 0;
  if (data || addresses) error = map(memory.own, data ? PROT_READ | PROT_WRITE : PROT_NONE);
  if (addresses && error == 0) error = map(memory.shared, PROT_NONE);
  return error;
}

int TriedThreads::map(std::size_t bytes, int protection) {
  if (bytes == 0) return 0;
  void* const start =
      ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return errno;
  reserved_.emplace_back(start, bytes);
  return 0;
}

int TriedThreads::start(int count) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  const std::size_t stack = openmp_stack_bytes();
  if (stack > 0) ::pthread_attr_setstacksize(&attributes, stack);  // refused where it is too small
  int error = 0;
  for (int i = 0; i < count && error == 0; ++i) {
    pthread_t thread;
    error = ::pthread_create(&thread, &attributes, wait_for, &end_);
    if (error == 0) threads_.push_back(thread);
  }
  ::pthread_attr_destroy(&attributes);
  return error;
}

void require_threads(int count, const MemoryToCome& memory) {
  const TriedThreads tried(count, memory);
  if (!tried.refusal().empty()) fail(ExitCode::usage, tried.refusal());
}

std::optional<std::size_t> available_memory() {
  const auto on_machine = left_on_machine(), in_group = left_in_group();
  return on_machine && in_group ? std::min(on_machine, in_group)
                                : (on_machine ? on_machine : in_group);
}

bool group_limits_memory() {
  const auto on_machine = left_on_machine(), in_group = left_in_group();
  return in_group && (!on_machine || *in_group < *on_machine);
}

std::uint64_t memory_group() { return read_group_limits("/").memory_group; }

std::size_t own_memory() {
  return number_after("/proc/self/status", "RssAnon:").value_or(0) * 1024;
}

}  // namespace cputrain::system

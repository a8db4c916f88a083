#include "system/process_limits.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <latch>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::system {
namespace {

struct NamedLimit {
  __rlimit_resource_t resource;
  const char* name;
  rlim_t unit;  ///< bytes in which a shell counts
};

constexpr NamedLimit kLimits[] = {{RLIMIT_AS, "ulimit -v", 1024},
                                  {RLIMIT_DATA, "ulimit -d", 1024},
                                  {RLIMIT_NPROC, "ulimit -u", 1}};

void add_limit(std::vector<std::string>& parts, const NamedLimit& limit) {
  struct rlimit now {};
  if (::getrlimit(limit.resource, &now) != 0 || now.rlim_cur == RLIM_INFINITY) return;
  parts.push_back(std::string(limit.name) + " " + std::to_string(now.rlim_cur / limit.unit));
}

void* wait_for(void* latch) {
  static_cast<std::latch*>(latch)->wait();
  return nullptr;
}

/// Threads that wait together until the end of the object.
class Waiting {
 public:
  /// 0, or the error of the first that could not be started.
  int start(int count) {
    for (int i = 0; i < count; ++i) {
      pthread_t thread;
      const int error = ::pthread_create(&thread, nullptr, wait_for, &latch_);
      if (error != 0) return error;
      threads_.push_back(thread);
    }
    return 0;
  }
  std::size_t size() const { return threads_.size(); }
  ~Waiting() {
    latch_.count_down();
    for (const pthread_t thread : threads_) ::pthread_join(thread, nullptr);
  }

 private:
  std::latch latch_{1};
  std::vector<pthread_t> threads_;
};

bool is_limited(__rlimit_resource_t resource) {
  struct rlimit now {};
  return ::getrlimit(resource, &now) == 0 && now.rlim_cur != RLIM_INFINITY;
}

/// Addresses until the end of the object, where a limit is set that they count for. The system
/// counts those that can be written for `ulimit -d`; where it promises no more memory than it has
/// (vm.overcommit_memory 2), it counts them as used as well, so others cannot be written.
class Reserved {
 public:
  explicit Reserved(const MemoryToCome& memory) {
    const bool data = is_limited(RLIMIT_DATA), addresses = is_limited(RLIMIT_AS);
    if (data || addresses) map(memory.own, data ? PROT_READ | PROT_WRITE : PROT_NONE);
    if (addresses) map(memory.shared, PROT_NONE);
  }
  ~Reserved() {
    for (const auto& [start, bytes] : mapped_) ::munmap(start, bytes);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;

  /// 0, or that of the first that was refused.
  int error() const { return error_; }

 private:
  void map(std::size_t bytes, int protection) {
    if (bytes == 0 || error_ != 0) return;
    void* start =
        ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
      error_ = errno;
    } else {
      mapped_.emplace_back(start, bytes);
    }
  }

  std::vector<std::pair<void*, std::size_t>> mapped_;
  int error_ = 0;
};

[[noreturn]] void refuse(const std::string& wanted, int error) {
  const std::string limits = limits_text();
  fail(ExitCode::usage, "this process needs " + wanted + " (" + std::strerror(error) +
                            (limits.empty() ? "" : "; " + limits) +
                            "); use fewer --threads and --io-threads, fewer ranks or smaller "
                            "images, or raise the limit");
}

}  // namespace

std::string limits_text() {
  std::vector<std::string> parts;
  for (const NamedLimit& limit : kLimits) add_limit(parts, limit);
  return join(parts, ", ");
}

void require_threads(int count, const MemoryToCome& memory) {
  const Reserved reserved(memory);
  const std::string mib = std::to_string(memory.all() >> 20) + " MiB of memory";
  if (reserved.error() != 0) {
    refuse(
        mib + " and " + std::to_string(count) + " more threads, and the system refuses the memory",
        reserved.error());
  }
  Waiting waiting;
  const int error = waiting.start(count);
  if (error == 0) return;
  refuse(std::to_string(count) + " more threads" + (memory.all() > 0 ? " beside " + mib : "") +
             " and can have " + std::to_string(waiting.size()),
         error);
}

}  // namespace cputrain::system

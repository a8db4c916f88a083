#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cputrain {

/// Threads that do one thing together, again and again: the calling one is number 0. They inherit
/// the mask of the thread that makes the crew.
class Crew {
 public:
  explicit Crew(int size);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  /// Calls work(0) to work(size() - 1), each on its own thread, and returns when all are done.
  /// Throws what one of them threw.
  void run(const std::function<void(int)>& work);

 private:
  void serve(int number, const std::stop_token&);
  void attempt(int number);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  const std::function<void(int)>* work_ = nullptr;
  unsigned long round_ = 0;
  int busy_ = 0;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace cputrain

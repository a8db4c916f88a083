#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "system/files.h"
#include "system/write_queue.h"

namespace cputrain::logging {

/// Has the queue make a write that keeps so many bytes; without a queue it is made at once.
void write_by(system::WriteQueue*, std::size_t bytes, std::function<void()> write);

/// A log that is opened now, and whose pieces the queue writes, each whole.
class LogFile {
 public:
  LogFile(const std::filesystem::path& path, system::Begin begin, system::WriteQueue* queue)
      : file_(std::make_shared<system::GrowingFile>(path, begin)), queue_(queue) {}
  void write_line(std::string_view line);

 private:
  std::shared_ptr<system::GrowingFile> file_;
  system::WriteQueue* queue_;  ///< null: it is written at once
};

}  // namespace cputrain::logging

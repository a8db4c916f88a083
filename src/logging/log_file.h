#pragma once

#include <functional>
#include <utility>

#include "system/files.h"
#include "system/usage/write_queue.h"

namespace cputrain::logging {

/// Has the queue make a write that keeps so many bytes; without a queue it is made at once.
inline void write_by(system::WriteQueue* queue, std::size_t bytes, std::function<void()> write) {
  if (queue == nullptr) return write();
  queue->add(bytes, std::move(write));
}

/// A log that is opened now, and whose pieces the queue writes, each whole.
class LogFile {
 public:
  LogFile(const std::filesystem::path& path, system::Begin begin, system::WriteQueue* queue)
      : file_(std::make_shared<system::GrowingFile>(path, begin)), queue_(queue) {}

  void write_line(std::string_view line) {
    std::string piece = std::string(line) + '\n';
    const std::size_t bytes = piece.size();
    write_by(queue_, bytes, [file = file_, piece = std::move(piece)] { file->append(piece); });
  }

 private:
  std::shared_ptr<system::GrowingFile> file_;
  system::WriteQueue* queue_;  ///< null: it is written at once
};

}  // namespace cputrain::logging

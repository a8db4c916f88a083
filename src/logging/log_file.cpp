#include "logging/log_file.h"

#include <utility>

namespace cputrain::logging {

void write_by(system::WriteQueue* queue, std::size_t bytes, std::function<void()> write) {
  if (queue == nullptr) return write();
  queue->add(bytes, std::move(write));
}

void LogFile::write_line(std::string_view line) {
  std::string piece = std::string(line) + '\n';
  const std::size_t bytes = piece.size();
  write_by(queue_, bytes, [file = file_, piece = std::move(piece)] { file->append(piece); });
}

}  // namespace cputrain::logging

#include "logging/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <system_error>
#include <vector>

#include "core/hash.h"
#include "event.pb.h"  // which protoc makes of event.proto
#include "system/clock.h"

namespace cputrain::logging {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::string_view kMark = "tfevents";

template <class T>
std::string little_endian(T number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string record(std::string_view event) {
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(event) +
         little_endian(masked_crc32c(event));
}

/// A name that no file has yet: two files of one process may begin within one second.
std::filesystem::path new_path(const std::filesystem::path& folder, const std::string& host) {
  system::make_own_folder(folder);
  for (int number = 0;; ++number) {
    auto path = folder / fmt::format("events.out.{}.{}.{}.{}.{}", kMark,
                                     static_cast<std::int64_t>(system::unix_seconds()), host,
                                     ::getpid(), number);
    std::error_code ignored;  // a folder that cannot be looked into shows when the file is opened
    if (!std::filesystem::exists(path, ignored)) return path;
  }
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string version_record(double wall_time) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version("brain.Event:2");
  return record(event.SerializeAsString());
}

std::string scalar_record(double wall_time, std::int64_t step, std::span<const Scalar> scalars) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  tensorboard::Summary& summary = *event.mutable_summary();
  for (const Scalar& scalar : scalars) {
    tensorboard::Summary::Value& value = *summary.add_value();
    value.set_tag(scalar.tag);
    value.set_simple_value(static_cast<float>(scalar.value));
  }
  return record(event.SerializeAsString());
}

EventFile::EventFile(const std::filesystem::path& folder, const std::string& host)
    : file_(new_path(folder, host)) {
  file_.append(version_record(system::unix_seconds()));
}

void EventFile::write(std::int64_t step, std::span<const Scalar> scalars) {
  file_.append(scalar_record(system::unix_seconds(), step, scalars));
}

void remove_event_files(const std::filesystem::path& folder) {
  std::error_code ignored;  // what cannot be removed stays: the new run is what counts
  if (std::filesystem::is_symlink(folder, ignored)) return;  // it leads elsewhere
  std::vector<std::filesystem::path> old;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().find(kMark) != std::string::npos) {
      old.push_back(entry.path());
    }
  }
  for (const auto& path : old) std::filesystem::remove(path, ignored);
}

}  // namespace cputrain::logging

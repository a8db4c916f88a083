#pragma once

#include <memory>
#include <span>
#include <string>

#include "system/files.h"

/// TensorBoard's event files: records of `length (8 bytes) | masked CRC of the length | data |
/// masked CRC of the data`, each holding one `Event` message of protobuf (event.proto). Numbers are
/// little-endian.
namespace cputrain::logging {

/// CRC-32C (core/hash.h) under TensorFlow's mask: a CRC of data that holds CRCs itself would be
/// weak.
std::uint32_t masked_crc32c(std::string_view bytes);

/// The first record of every file.
std::string version_record(double wall_time);
/// Tags with their values, which are stored as float32: that is what TensorBoard's scalars are.
std::string scalar_record(double wall_time, std::int64_t step,
                          std::span<const std::pair<std::string, double>> scalars);

/// Makes `folder` and in it a new file events.out.tfevents.<seconds>.<host>.<process>.<number>;
/// readers merge the files of a folder by time and step. Error(output).
std::unique_ptr<system::GrowingFile> new_event_file(const std::filesystem::path& folder,
                                                    const std::string& host);

/// Removes the event files of an earlier run: TensorBoard would mix its curves with the new ones.
void remove_event_files(const std::filesystem::path& folder);

}  // namespace cputrain::logging

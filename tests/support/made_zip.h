#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Zip archives, put together byte by byte from the format's description (PKWARE's APPNOTE.TXT).
namespace cputrain::testing {

inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 0xff);
  return text;
}

/// A CRC, bit by bit as its polynomial (reflected) says.
inline std::uint32_t plain_crc(std::string_view text, std::uint32_t polynomial) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : text) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
  }
  return ~crc;
}

/// Nothing is compressed. Without checksums these are zeros.
inline std::string made_zip(const std::vector<std::pair<std::string, std::string>>& files,
                            bool checksums = true) {
  std::string archive, directory;
  for (const auto& [name, content] : files) {
    const std::uint32_t checksum = checksums ? plain_crc(content, 0xedb88320) : 0;
    const std::string common = little(0, 8) + little(checksum, 4) + little(content.size(), 4) +
                               little(content.size(), 4) + little(name.size(), 2) + little(0, 2);
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + common + little(0, 10) +
                 little(archive.size(), 4) + name;
    archive += "PK\x03\x04" + little(20, 2) + common + name + content;
  }
  return archive + directory + "PK\x05\x06" + little(0, 4) + little(files.size(), 2) +
         little(files.size(), 2) + little(directory.size(), 4) + little(archive.size(), 4) +
         little(0, 2);
}

}  // namespace cputrain::testing

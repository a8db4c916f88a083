#include <fmt/format.h>
#include <sys/types.h>
//
#include <sha2.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/error.h"
#include "datasets/datasets.h"
#include "system/bounded_file.h"

namespace cputrain::datasets {

std::string sha256_of(const std::filesystem::path& path) {
  SHA2_CTX context;
  SHA256Init(&context);
  try {
    const system::RegularFile file(path);
    file.for_each_piece(0, file.size(), [&](std::span<const std::byte> piece) {
      SHA256Update(&context, reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size());
    });
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, "{} {} (its checksum is needed); check the path", path.string(),
         error.what());
  }
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256Final(digest.data(), &context);
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace cputrain::datasets

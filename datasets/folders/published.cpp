#include "datasets/folders/published.h"

#include <fmt/format.h>
#include <sys/types.h>
//
#include <md5.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "core/text.h"
#include "datasets/formats/container_file.h"

namespace cputrain::datasets {
namespace {

struct Published {
  std::string_view name, set;
  std::size_t bytes;     ///< 0: not compared
  std::string_view md5;  ///< empty: not compared
};

// Sizes from the description of the IDX and CIFAR formats; MD5 as the makers' pages give them.
constexpr std::array<Published, 20> kPublished{{
    {"train-images-idx3-ubyte.gz", "MNIST", 0, "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
    {"train-labels-idx1-ubyte.gz", "MNIST", 0, "d53e105ee54ea40749a09fcbcd1e9432"},
    {"t10k-images-idx3-ubyte.gz", "MNIST", 0, "9fb629c4189551a2d022fa330f9573f3"},
    {"t10k-labels-idx1-ubyte.gz", "MNIST", 0, "ec29112dd5afa0611ce80d1b7f02629c"},
    {"train-images-idx3-ubyte.gz", "Fashion-MNIST", 0, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
    {"train-labels-idx1-ubyte.gz", "Fashion-MNIST", 0, "25c81989df183df01b3e8a0aad5dffbe"},
    {"t10k-images-idx3-ubyte.gz", "Fashion-MNIST", 0, "bef4ecab320f06d8554ea6380940ec79"},
    {"t10k-labels-idx1-ubyte.gz", "Fashion-MNIST", 0, "bb300cfdad3c16e7a12a480ee83cd310"},
    {"train-images-idx3-ubyte", "MNIST or Fashion-MNIST", 47'040'016, ""},
    {"train-labels-idx1-ubyte", "MNIST or Fashion-MNIST", 60'008, ""},
    {"t10k-images-idx3-ubyte", "MNIST or Fashion-MNIST", 7'840'016, ""},
    {"t10k-labels-idx1-ubyte", "MNIST or Fashion-MNIST", 10'008, ""},
    {"data_batch_1.bin", "CIFAR-10", 30'730'000, ""},
    {"data_batch_2.bin", "CIFAR-10", 30'730'000, ""},
    {"data_batch_3.bin", "CIFAR-10", 30'730'000, ""},
    {"data_batch_4.bin", "CIFAR-10", 30'730'000, ""},
    {"data_batch_5.bin", "CIFAR-10", 30'730'000, ""},
    {"test_batch.bin", "CIFAR-10", 30'730'000, ""},
    {"train.bin", "CIFAR-100", 153'700'000, ""},
    {"test.bin", "CIFAR-100", 30'740'000, ""},
}};

std::string md5_of(const ContainerFile& file) {
  MD5_CTX context;
  MD5Init(&context);
  file.for_each_piece(0, file.size(), [&](std::span<const std::uint8_t> piece) {
    MD5Update(&context, piece.data(), piece.size());
  });
  std::array<std::uint8_t, MD5_DIGEST_LENGTH> digest{};
  MD5Final(digest.data(), &context);
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

std::optional<data::CheckReport::KnownFile> compare_with_published(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  std::optional<ContainerFile> file;
  std::string md5;
  std::vector<std::string> sets;
  for (const Published& known : kPublished) {
    if (known.name != name) continue;
    if (!file) file.emplace(path, "it is compared with what was published");
    const std::size_t bytes = file->size();
    if (md5.empty() && !known.md5.empty()) md5 = md5_of(*file);
    const bool same = known.md5.empty() ? bytes == known.bytes : md5 == known.md5;
    if (same && known.md5.empty()) {
      return {{path, true, fmt::format("the size of {}'s", known.set)}};
    }
    if (same) return {{path, true, fmt::format("as published by {} (MD5)", known.set)}};
    sets.push_back(known.md5.empty() ? fmt::format("{} ({} bytes instead of {})", known.set,
                                                   with_commas(bytes), with_commas(known.bytes))
                                     : std::string(known.set));
  }
  if (sets.empty()) return std::nullopt;
  return {{path, false,
           fmt::format("not as published by {}{}", join(sets, " or "),
                       md5.empty() ? "" : " (MD5 " + md5 + "; it may be compressed anew)")}};
}

}  // namespace cputrain::datasets

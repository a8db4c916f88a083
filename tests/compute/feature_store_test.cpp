#include "compute/executor/frozen_prefix.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

namespace cputrain::compute {
namespace {

std::vector<std::uint8_t> pixels(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator());
  return bytes;
}

TEST(PixelKey, ChangesWithEveryPixelAndWithTheirOrder) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> keys;
  std::size_t made = 0;
  const auto add = [&](const std::vector<std::uint8_t>& bytes) {
    const PixelKey key = key_of(bytes);
    EXPECT_EQ(key, key_of(std::vector(bytes)));
    keys.insert({key.first, key.second});
    ++made;
  };
  for (const std::size_t size : {0, 1, 15, 16, 17, 31, 32, 48, 300}) {
    const auto bytes = pixels(size, 1);
    add(bytes);
    for (std::size_t i = 0; i < size; ++i) {
      auto changed = bytes;
      changed[i] ^= 1;
      add(changed);
      if (i == 0 || bytes[i] == bytes[i - 1]) continue;
      changed = bytes;
      std::swap(changed[i], changed[i - 1]);
      add(changed);
    }
  }
  for (std::size_t size = 1; size < 40; ++size) add(std::vector<std::uint8_t>(size));
  EXPECT_EQ(keys.size(), made);
}

TEST(FeatureStore, KeepsWhatHasRoom) {
  constexpr std::size_t kRow = 12, kRows = 600;
  FeatureStore store(kRow, kRows * FeatureStore::bytes_of_row(kRow) + 1);
  const auto row_of = [](unsigned i) {
    const auto bytes = pixels(kRow, 1000 + i);
    std::vector<std::byte> row(kRow);
    std::memcpy(row.data(), bytes.data(), kRow);
    return row;
  };
  for (unsigned i = 0; i < kRows + 50; ++i) {
    const PixelKey key = key_of(pixels(30, i));
    EXPECT_EQ(store.find(key), nullptr);
    store.add(key, row_of(i).data());
    store.add(key, row_of(i + 1).data());  // it is there already
  }
  EXPECT_EQ(store.rows(), kRows);
  EXPECT_LE(store.most_bytes(), kRows * FeatureStore::bytes_of_row(kRow));
  for (unsigned i = 0; i < kRows; ++i) {
    const std::byte* row = store.find(key_of(pixels(30, i)));
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(std::memcmp(row, row_of(i).data(), kRow), 0);
  }
  EXPECT_EQ(store.find(key_of(pixels(30, kRows))), nullptr);
}

/// The feature of an image is twice its first pixel.
TEST(FrozenPrefix, ComputesNewImagesAloneInTheSmallestPassThatHoldsThem) {
  std::vector<float> features(8);
  const FrozenEnd end{1, 0, {.layout = {{1, 1, 1}}}};
  FrozenPrefix prefix(end, reinterpret_cast<std::byte*>(features.data()), 3, {8, 4, 3, 1}, 10'000);
  std::vector<std::vector<std::uint8_t>> images;
  for (std::uint8_t i = 0; i < 20; ++i) images.push_back({i, 1, 2});
  const auto pass = [&](const std::vector<std::size_t>& shown) {
    std::vector<const std::uint8_t*> given;
    for (const std::size_t i : shown) given.push_back(images[i].data());
    int computed = 0;
    const auto run = [&](const Execution& part) {
      computed = part.images;
      EXPECT_EQ(part.pixels.size(), static_cast<std::size_t>(part.images));
      for (std::size_t i = 0; i < part.pixels.size(); ++i) features[i] = 2.0f * part.pixels[i][0];
    };
    const std::size_t size = shown.size() > 4 ? 0 : 1;
    prefix.forward({.size = size, .images = static_cast<int>(shown.size()), .pixels = given}, run);
    for (std::size_t i = 0; i < shown.size(); ++i) EXPECT_EQ(features[i], 2.0f * shown[i]);
    return computed;
  };
  EXPECT_EQ(pass({0, 1, 2, 3, 4, 5, 6, 7}), 8);
  EXPECT_EQ(pass({3, 8, 0, 1, 9, 2, 10, 4}), 3);
  EXPECT_EQ(pass({11, 3, 12, 0, 13, 1, 14, 15}), 8);
  EXPECT_EQ(pass({10, 2, 16, 5}), 1);
  EXPECT_EQ(pass({16, 10, 12, 0}), 0);
  EXPECT_EQ(pass({17, 2, 18, 5}), 3);
  EXPECT_EQ(prefix.taken(), 0u + 5 + 3 + 3 + 4 + 2);
}

}  // namespace
}  // namespace cputrain::compute

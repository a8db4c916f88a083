#include "datasets/loader/cache_view.h"

#include <algorithm>
#include <cstring>

namespace cputrain::datasets {
namespace {

constexpr std::size_t kHeaderBytes = 64;  // holds the counters

std::size_t results_bytes(std::size_t images) {
  return (images * sizeof(SharedResult) + 63) / 64 * 64;
}

}  // namespace

CacheView::CacheView(const system::SharedBlock& block, std::size_t images, std::size_t kept,
                     Shape image)
    : base_(reinterpret_cast<std::uint8_t*>(block.bytes().data())),
      pixels_(base_ + kHeaderBytes + results_bytes(images)),
      images_(images),
      kept_(kept),
      image_bytes_(image.size()) {}

std::size_t CacheView::bytes(std::size_t images, std::size_t kept, Shape image) {
  return kHeaderBytes + results_bytes(images) + kept * image.size();
}

SharedResult& CacheView::shared(std::size_t position) const {
  return reinterpret_cast<SharedResult*>(base_ + kHeaderBytes)[position];
}

bool CacheView::claim(std::size_t position) const {
  std::uint8_t expected = kMissing;
  return state(position).compare_exchange_strong(expected, kClaimed);
}

void CacheView::store(std::size_t position, const data::ReadResult& result, data::Flaw flaw) const {
  SharedResult& shared = this->shared(position);
  shared.status = static_cast<std::uint8_t>(result.status);
  shared.warned = result.warned ? 1 : 0;
  shared.flaw = flaw;
  const std::size_t length = std::min(result.detail.size(), shared.detail.size() - 1);
  std::memcpy(shared.detail.data(), result.detail.data(), length);
  shared.detail[length] = 0;
  state(position).store(kRead);
  if (result.status != data::ReadStatus::ok) {
    std::uint64_t known = damage().load();
    while (known == 0 || known > position + 1) {
      if (damage().compare_exchange_weak(known, position + 1)) break;
    }
  }
  read().fetch_add(1);  // last: once all are read, all damage is known
}

data::ReadResult CacheView::result(std::size_t position) const {
  const SharedResult& shared = this->shared(position);
  return {static_cast<data::ReadStatus>(shared.status), shared.detail.data(), shared.warned != 0};
}

std::optional<std::size_t> CacheView::damaged() const {
  const std::uint64_t known = damage().load();
  if (known == 0) return std::nullopt;
  return static_cast<std::size_t>(known - 1);
}

std::size_t CacheReader::position_of(std::uint32_t image) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(images, image) - images.begin());
}

std::span<std::uint8_t> CacheReader::read_claimed(std::size_t position,
                                                  std::span<std::uint8_t> space) const {
  const std::span<std::uint8_t> pixels = view.keeps(position) ? view.pixels(position) : space;
  try {
    const data::ReadResult result = data.read(images[position], image, resize, pixels);
    view.store(position, result, data::flaw_of(result, pixels, exif));
  } catch (...) {
    view.give_back(position);
    throw;
  }
  return pixels;
}

}  // namespace cputrain::datasets

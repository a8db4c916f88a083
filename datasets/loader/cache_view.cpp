#include "datasets/loader/cache_view.h"

#include <algorithm>
#include <cstring>

#include "core/casts.h"

namespace cputrain::datasets {
namespace {

constexpr std::size_t kHeaderBytes = 64;  // holds the counters

std::size_t results_bytes(std::size_t images) {
  return (images * sizeof(SharedResult) + 63) / 64 * 64;
}

}  // namespace

CacheView::CacheView(const system::SharedBlock& block, std::size_t images, std::size_t kept,
                     const CachedForms& forms)
    : base_(reinterpret_cast<std::uint8_t*>(block.bytes().data())),
      pixels_(base_ + kHeaderBytes + results_bytes(images)),
      images_(images),
      kept_(kept),
      forms_(forms) {}

std::size_t CacheView::bytes(std::size_t images, std::size_t kept, const CachedForms& forms) {
  return kHeaderBytes + results_bytes(images) + forms.before(kept);
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
  return to_size(known - 1);
}

std::size_t CacheReader::position_of(std::uint32_t image) const {
  const auto middle = images.begin() + static_cast<std::ptrdiff_t>(forms.larger);
  auto found = std::lower_bound(images.begin(), middle, image);
  if (found == middle || *found != image) found = std::lower_bound(middle, images.end(), image);
  return to_size(found - images.begin());
}

data::ReadResult CacheReader::read(std::size_t position, std::span<std::uint8_t> space) const {
  return data.read(images[position], forms.shape(position), forms.resize(position),
                   space.first(bytes_of(position)));
}

std::span<std::uint8_t> CacheReader::read_claimed(std::size_t position,
                                                  std::span<std::uint8_t> space) const {
  const std::span<std::uint8_t> pixels =
      view.keeps(position) ? view.pixels(position) : space.first(bytes_of(position));
  try {
    const data::ReadResult result = read(position, pixels);
    view.store(position, result, data::flaw_of(result, pixels, exif));
  } catch (...) {
    view.give_back(position);
    throw;
  }
  return pixels;
}

}  // namespace cputrain::datasets

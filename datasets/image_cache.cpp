#include "datasets/image_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>

#include "core/clock.h"
#include "core/error.h"
#include "core/text.h"
#include "core/available_memory.h"
#include "datasets/work_arena.h"

namespace cputrain {
namespace {

/// How reading a sample went, as all ranks of the node see it.
struct SharedResult {
  std::uint8_t status;
  std::uint8_t warned;
  std::array<char, 94> detail;  // cut to fit, ends in 0
};
static_assert(sizeof(SharedResult) == 96);

constexpr std::size_t kHeaderBytes = 64;  // holds the number of samples that are done

std::size_t results_bytes(std::size_t samples) {
  return (samples * sizeof(SharedResult) + 63) / 64 * 64;
}

/// The block as all ranks see it: a counter, a result a sample, the pixels.
class CacheView {
 public:
  CacheView(const SharedBlock& block, std::size_t samples, Shape image)
      : base_(reinterpret_cast<std::uint8_t*>(block.bytes().data())),
        pixels_(base_ + kHeaderBytes + results_bytes(samples)),
        image_bytes_(image.size()) {}

  std::atomic_ref<std::uint64_t> done() const {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(base_));
  }
  SharedResult& result(std::size_t position) const {
    return reinterpret_cast<SharedResult*>(base_ + kHeaderBytes)[position];
  }
  std::span<std::uint8_t> pixels(std::size_t position) const {
    return {pixels_ + position * image_bytes_, image_bytes_};
  }

 private:
  std::uint8_t* base_;
  std::uint8_t* pixels_;
  std::size_t image_bytes_;
};

void store(const ReadResult& result, SharedResult& shared) {
  shared.status = static_cast<std::uint8_t>(result.status);
  shared.warned = result.warned ? 1 : 0;
  const std::size_t length = std::min(result.detail.size(), shared.detail.size() - 1);
  std::memcpy(shared.detail.data(), result.detail.data(), length);
  shared.detail[length] = 0;
}

ReadResult load(const SharedResult& shared) {
  return {static_cast<ReadStatus>(shared.status), shared.detail.data(), shared.warned != 0};
}

/// Says what would fit when the cache does not.
void check_memory(const DataSource& source, Shape image) {
  const auto available = available_memory();
  const std::size_t samples = source.train.size() + source.validation.size();
  const std::size_t needed = cache_bytes(samples, image);
  if (!available || needed <= *available) return;
  const double room = static_cast<double>(*available - std::min(*available, kHeaderBytes + 64));
  const double overhead = static_cast<double>(samples * sizeof(SharedResult));
  const auto side = static_cast<int>(
      std::sqrt(std::max(0.0, room - overhead) / (3.0 * static_cast<double>(samples))));
  const auto fitting =
      static_cast<std::size_t>(room / static_cast<double>(image.size() + sizeof(SharedResult)));
  std::string remedy = fmt::format("--image-size {}", side);
  if (fitting > source.validation.size()) {
    remedy = fmt::format("--limit-train {} or {}", fitting - source.validation.size(), remedy);
  }
  fail(ExitCode::usage,
       fmt::format("{} images at {}x{} need {} of memory, {} are available (they are decoded once "
                   "and kept, so that later epochs read nothing); the largest that fit: {}",
                   with_commas(samples), image.height, image.width,
                   bytes_text(static_cast<double>(needed)),
                   bytes_text(static_cast<double>(*available)), remedy));
}

void decode_slice(const Dataset& data, std::span<const std::uint32_t> samples, Range mine,
                  const DecodeRequest& request, const CacheView& view) {
  WorkArena arena(request.threads);
  const auto decode_one = [&](std::size_t i) {
    const std::size_t position = mine.begin + i;
    store(data.read(samples[position], request.image, view.pixels(position)),
          view.result(position));
    view.done().fetch_add(1, std::memory_order_acq_rel);
  };
  arena.for_each(mine.size(), decode_one, [&] {
    if (request.progress) {
      request.progress(view.done().load(std::memory_order_acquire), samples.size());
    }
  });
}

/// Sorts what the shared memory says into good and bad; the same on every rank.
void collect(const Dataset& data, std::span<const std::uint32_t> samples, std::size_t first,
             const CacheView& view, ImageSet& set, DecodedData& decoded) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const ReadResult result = load(view.result(first + i));
    if (result.status != ReadStatus::ok) {
      decoded.bad.push_back({data.name(samples[i]), result});
      continue;
    }
    decoded.warnings += result.warned ? 1 : 0;
    set.pixels.push_back(view.pixels(first + i).data());
    set.labels.push_back(data.label(samples[i]));
    set.samples.push_back(samples[i]);
  }
}

std::string first_bad(const DecodedData& decoded) {
  const BadSample& bad = decoded.bad.front();
  return fmt::format("'{}': {}, {}", bad.name, status_name(bad.result.status), bad.result.detail);
}

/// Training cannot go on when damage took a whole part or a whole class.
void check_what_is_left(const DataSource& source, const DecodedData& decoded) {
  const auto check_part = [&](const char* part, std::size_t listed, std::size_t left) {
    if (listed == 0 || left > 0) return;
    fail(ExitCode::data, fmt::format("none of the {} {} images can be read (first: {}); look with "
                                     "'cputrain data check'",
                                     listed, part, first_bad(decoded)));
  };
  check_part("training", source.train.size(), decoded.train.size());
  check_part("validation", source.validation.size(), decoded.validation.size());
  std::map<int, std::size_t> listed;
  for (const std::uint32_t sample : source.train) ++listed[source.dataset->label(sample)];
  for (const int label : decoded.train.labels) listed.erase(label);
  if (listed.empty()) return;
  const auto [label, count] = *listed.begin();
  fail(ExitCode::data,
       fmt::format(
           "none of the {} training images of class '{}' can be read (a class without images "
           "cannot be learnt; first: {}); look with 'cputrain data check'",
           count, source.dataset->classes()[static_cast<std::size_t>(label)], first_bad(decoded)));
}

}  // namespace

std::size_t cache_bytes(std::size_t samples, Shape image) {
  return kHeaderBytes + results_bytes(samples) + samples * image.size();
}

DecodedData decode_into_cache(const DataSource& source, const DecodeRequest& request,
                              NodeMemory& memory, NodeBarrier& barrier) {
  const Stopwatch watch;
  std::vector<std::uint32_t> samples = source.train;
  samples.insert(samples.end(), source.validation.begin(), source.validation.end());
  check_memory(source, request.image);
  barrier.wait();  // everybody has looked before anybody takes
  DecodedData decoded;
  decoded.memory = memory.allocate(cache_bytes(samples.size(), request.image));
  const CacheView view(*decoded.memory, samples.size(), request.image);
  const Range mine = share(samples.size(), memory.local_rank(), memory.local_size());
  decode_slice(*source.dataset, samples, mine, request, view);
  barrier.wait();
  decoded.train.image = decoded.validation.image = request.image;
  collect(*source.dataset, source.train, 0, view, decoded.train, decoded);
  collect(*source.dataset, source.validation, source.train.size(), view, decoded.validation,
          decoded);
  check_what_is_left(source, decoded);
  decoded.seconds = watch.seconds();
  return decoded;
}

}  // namespace cputrain

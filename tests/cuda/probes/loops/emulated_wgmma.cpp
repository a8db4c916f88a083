#include "cuda/probes/loops/wgmma.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "emulated/shadow.h"
#include "emulated/shared_memory.h"

namespace cputrain::cuda::probes {
namespace {

using emulated::kernel_fault, emulated::Place;

constexpr unsigned kThreadsOfGroup = 128, kRowsOfPart = 64;

/// A product that has begun.
struct Pending {
  GroupPart part;
  unsigned group;
};
/// A thread's.
struct Products {
  std::vector<Pending> pending;
  unsigned group = 0;      ///< of the next product
  unsigned fenced = 0;     ///< groups of cp.async up to the last fence.proxy.async
  bool may_begin = false;  ///< a wgmma.fence came after the sums were touched
};

Reads reads;
std::array<Products, emulated::kMostThreads> of_threads;

Products& mine() { return of_threads[emulated::now.self->number]; }

void note(const char* what, const Place& at) {
  emulated::now.self->what = what;
  emulated::now.self->place = at;
}

/// Groups of this thread's cp.async that it has waited for.
unsigned arrived_groups() {
  const emulated::Thread& self = *emulated::now.self;
  return self.copies.empty() ? self.group : self.copies.front().group;
}

/// What a descriptor says. Lines of an operand are rows (of B: columns) of numbers along the depth
/// or, where it is transposed, depths of as many rows as fit into a line.
class Operand {
 public:
  Operand(std::uint64_t descriptor, bool bf16, bool transposed)
      : start_(bytes_of(descriptor)),
        leading_(bytes_of(descriptor >> 16)),
        stride_(bytes_of(descriptor >> 32)),
        line_(256u >> (descriptor >> 62)),
        size_(bf16 ? 2 : 4),
        transposed_(transposed) {
    if (descriptor >> 62 == 0) kernel_fault("wgmma without swizzle is not emulated");
    if ((descriptor >> 49 & 7) != 0) kernel_fault("wgmma with a base offset is not emulated");
  }

  float number(unsigned row, unsigned depth) const {
    unsigned at = start_;
    if (transposed_) {
      const unsigned rows = line_ / size_;
      at += row / rows * leading_ + row % rows * size_ + depth / 8 * stride_ + depth % 8 * line_;
    } else {
      at += row / 8 * stride_ + row % 8 * line_ + depth * size_;
    }
    // Chunks of 16 bytes are permuted within a line by the lowest bits of the 128 bytes' number.
    return read(at ^ (at >> 7 & (line_ / 16 - 1)) << 4);
  }

 private:
  static unsigned bytes_of(std::uint64_t field) {
    return static_cast<unsigned>(field & 0x3fff) << 4;
  }

  float read(unsigned at) const {
    const auto* p = static_cast<const std::byte*>(emulated::dynamic_storage()) + at;
    if (!emulated::is_shared_memory(p)) kernel_fault("wgmma reads memory that is not shared");
    emulated::check_read(p, size_, nullptr);
    std::uint32_t bits = 0;
    std::memcpy(&bits, p, size_);
    return std::bit_cast<float>(size_ == 2 ? bits << 16 : bits & 0xffffe000u);
  }

  unsigned start_, leading_, stride_, line_, size_;
  bool transposed_;
};

/// CuTe's table of sums (CUTLASS, include/cute/atom/mma_traits_sm90_gmma.hpp, CLayout_64xN):
/// (thread, value) -> offset in the column-major matrix of 64 rows. Values 4j to 4j + 3 are of two
/// rows, the same for all j, and of two columns.
unsigned offset_of_sum(unsigned thread, unsigned value) {
  return thread % 4 * 128 + thread / 4 % 8 + thread / 32 * 16 + value % 2 * 64 + value / 2 % 2 * 8 +
         value / 4 * 512;
}

using Line = std::array<float, 16>;

Line line_of(const Operand& operand, unsigned row, unsigned depth) {
  Line line{};
  for (unsigned k = 0; k < depth; ++k) line[k] = operand.number(row, k);
  return line;
}

void add_products(const GroupPart& part) {
  const Operand a(part.of_a, part.bf16, part.transposed_a),
      b(part.of_b, part.bf16, part.transposed_b);
  const unsigned thread = emulated::now.self->number % kThreadsOfGroup;
  const unsigned depth = part.bf16 ? 16 : 8, sums = static_cast<unsigned>(part.columns) / 2;
  const auto row = [&](unsigned value) {
    return line_of(a, offset_of_sum(thread, value) % kRowsOfPart, depth);
  };
  const auto column = [&](unsigned value) {
    return line_of(b, offset_of_sum(thread, value) / kRowsOfPart, depth);
  };
  const std::array<Line, 2> rows{row(0), row(2)};
  for (unsigned i = 0; i < sums; i += 4) {
    const std::array<Line, 2> columns{column(i), column(i + 1)};
    for (unsigned value = 0; value < 4; ++value) {
      float& sum = part.sums[i + value];
      for (unsigned k = 0; k < depth; ++k) sum += rows[value / 2][k] * columns[value % 2][k];
    }
  }
}

}  // namespace

void emulate_wgmma(Reads when) {
  reads = when;
  of_threads = {};
}

void begin_part(const GroupPart& part, Place at) {
  note("wgmma.mma_async", at);
  Products& products = mine();
  if (!products.may_begin) kernel_fault("wgmma without a wgmma.fence before it");
  if (products.fenced < arrived_groups()) {
    kernel_fault("wgmma without a fence.proxy.async behind copies that arrived");
  }
  if (reads == Reads::at_once) {
    add_products(part);
  } else {
    products.pending.push_back({part, products.group});
  }
}

void begin_parts(Place at) {
  note("wgmma.fence", at);
  mine().may_begin = true;
}

void commit_parts() { ++mine().group; }

void wait_for_parts(unsigned left, Place at) {
  note("wgmma.wait_group", at);
  Products& products = mine();
  std::erase_if(products.pending, [&](const Pending& p) {
    if (p.group + left >= products.group) return false;
    add_products(p.part);
    return true;
  });
  products.may_begin = left > 0;  // sums that nothing is added to may be touched
}

void fence_parts() { mine().fenced = arrived_groups(); }

}  // namespace cputrain::cuda::probes

// Addresses and rates of memory.
#include <algorithm>

#include "backends/cuda/device/tensor_core.h"
#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

// Addresses: copies of nothing from where nobody may read, and offsets of many gigabytes: E4, E13.

__global__ void empty_copy_kernel(const float* bad, float4* out) {
  __shared__ alignas(16) float4 place[32];
  place[threadIdx.x] = make_float4(1, 2, 3, 4);
  __syncwarp();
  copy_to_shared(place + threadIdx.x, bad, false);
  commit_copies();
  wait_for_copies<0>();
  __syncwarp();
  out[threadIdx.x] = place[threadIdx.x];
}

constexpr std::size_t kTurn = std::size_t{1} << 30;  // floats of 2^32 bytes

/// Each block copies 128 floats that begin at a multiple of kTurn to another array, and marks them.
__global__ void far_kernel(float* wide, float* out, std::size_t turns) {
  __shared__ alignas(16) float piece[128];
  const std::size_t turn = blockIdx.x;
  if (turn >= turns) return;
  const int i = static_cast<int>(threadIdx.x) * 4;
  float* const here = wide + turn * kTurn + i;
  for (int k = 0; k < 4; ++k) here[k] = static_cast<float>(turn * 1000 + i + k);
  __syncthreads();
  copy_to_shared(piece + i, here, true);
  commit_copies();
  wait_for_copies<0>();
  for (int k = 0; k < 4; ++k) out[turn * 128 + i + k] = piece[i + k];
}

}  // namespace

void ask_empty_copy() {
  const TestStream stream;
  const TestArray<float4> out(32);
  empty_copy_kernel<<<1, 32, 0, stream>>>(reinterpret_cast<const float*>(0x10), out.data());
  const cudaError_t status = cudaStreamSynchronize(stream);
  int wrong = 0;
  if (status == cudaSuccess) {
    for (const float4& f : out.read()) wrong += f.x != 0 || f.y != 0 || f.z != 0 || f.w != 0;
  }
  say({.name = "empty-copy",
       .question = "E4",
       .verdict = verdict_of(status == cudaSuccess && wrong == 0),
       .text = words("cp.async of 0 bytes from address 16: %s, %d of 32 places are not zero",
                     cudaGetErrorName(status), wrong)});
}

void ask_far_addresses() {
  std::size_t free = 0, all = 0;
  check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  std::size_t turns = 4;  // of 4 GiB, of the last one 512 bytes
  while (turns > 1 && ((turns - 1) * kTurn + 128) * sizeof(float) + (std::size_t{1} << 28) > free) {
    --turns;
  }
  if (turns == 1) {
    return say({.name = "far-addresses",
                .question = "E13",
                .text = words("not asked: %.1f GB of memory are free", 1e-9 * double(free))});
  }
  float* wide = nullptr;
  check(cudaMalloc(&wide, ((turns - 1) * kTurn + 128) * sizeof(float)), "cudaMalloc");
  const TestStream stream;
  const TestArray<float> out(turns * 128);
  far_kernel<<<static_cast<unsigned>(turns), 32, 0, stream>>>(wide, out.data(), turns);
  stream.wait("writes to far addresses");
  int wrong = 0;
  const std::vector<float> through_shared = out.read();
  for (std::size_t turn = 0; turn < turns; ++turn) {
    std::vector<float> read(128);
    check(cudaMemcpy(read.data(), wide + turn * kTurn, 512, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (std::size_t i = 0; i < 128; ++i) {
      const auto want = static_cast<float>(turn * 1000 + i);
      wrong += read[i] != want || through_shared[turn * 128 + i] != want;
    }
  }
  static_cast<void>(cudaFree(wide));
  say({.name = "far-addresses",
       .question = "E13",
       .value = static_cast<double>(turns - 1) * 4,
       .unit = "GiB",
       .verdict = verdict_of(wrong == 0),
       .text = words("up to offset %zu * 2^32 bytes, %d of %zu floats are wrong", turns - 1, wrong,
                     turns * 128)});
}

namespace {

// How quickly bytes reach shared memory from L2, by the copies that the kernels use: E17.

/// One block per multiprocessor. Two or three rounds of copies are on their way at any time, which
/// is more than latency and rate ask for, and no two of them have the same destination.
constexpr unsigned kThreads = 512, kCopies = 4, kStages = 3, kRounds = 1998;
constexpr unsigned kPiece = kThreads * 16, kShared = kStages * kCopies * kPiece;

/// Which piece a block copies next. Where blocks meet at a line of L2 one answer may serve several
/// of them, so that they get more than L2 delivers.
enum class Order {
  scattered,  ///< of the same bytes, each block in an order of its own: they seldom meet
  own,        ///< each block from bytes of its own, more than an L1 cache holds: they never meet
  in_step,    ///< the same piece at the same time, as blocks of a product do: they always meet
  queued,     ///< through the same bytes in the same order, from different starts: they may meet
};

enum class Path { past_l1, through_l1 };

/// 16 bytes by way of L1, too; the kernels pass it by (copy_to_shared).
__device__ __forceinline__ void copy_through_l1(void* dst, const void* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(dst)), "l"(src)
               : "memory");
}

constexpr unsigned kOwnPieces = 32;  // 256 KB

/// A block's walk through `pieces`, a power of two.
struct Walk {
  unsigned at, factor, step, mask, first;

  __host__ __device__ static Walk of(Order order, unsigned block, unsigned pieces) {
    switch (order) {
      case Order::scattered:  // such a sequence visits all numbers below a power of two
        return {block * 37 & (pieces - 1), 5, 2 * (block * 1237 + 1) + 1, pieces - 1, 0};
      case Order::own:
        return {0, 1, 1, kOwnPieces - 1, block * kOwnPieces};
      case Order::in_step:
        return {0, 1, 1, pieces - 1, 0};
      case Order::queued:
        break;
    }
    return {block * 37 & (pieces - 1), 1, 1, pieces - 1, 0};
  }
  __host__ __device__ unsigned next() {
    const unsigned piece = first + at;
    at = (at * factor + step) & mask;
    return piece;
  }
};

/// sums: of a word of each thread's last copy in each round, to prove that all has arrived.
/// spread: bytes from a copy's destination to the next one's, kPiece or 0.
template <Path kPath>
__global__ void __launch_bounds__(kThreads)
    walk_kernel(const char* src, Order order, unsigned pieces, unsigned spread, unsigned* sums,
                Stopwatch* times) {
  extern __shared__ __align__(128) char place[];
  const unsigned lane = threadIdx.x * 16;
  Walk walk = Walk::of(order, blockIdx.x, pieces);
  unsigned sum = 0;
  const Stopwatch start = Stopwatch::now();
  const auto arrived = [&](unsigned stage) {
    sum +=
        *reinterpret_cast<const unsigned*>(place + (stage * kCopies + kCopies - 1) * kPiece + lane);
  };
#pragma unroll 1
  for (unsigned round = 0; round < kRounds; round += kStages) {
#pragma unroll
    for (unsigned stage = 0; stage < kStages; ++stage) {
#pragma unroll
      for (unsigned k = 0; k < kCopies; ++k) {
        char* const dst = place + (stage * kCopies + k) * spread + lane;
        const char* const from = src + std::size_t{walk.next()} * kPiece + lane;
        if constexpr (kPath == Path::through_l1) {
          copy_through_l1(dst, from);
        } else {
          copy_to_shared(dst, from, true);
        }
      }
      commit_copies();
      wait_for_copies<kStages - 1>();
      if (round + stage >= kStages - 1) arrived((stage + 1) % kStages);
    }
  }
  wait_for_copies<0>();
  arrived(1);
  arrived(2);
  sums[blockIdx.x * kThreads + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) times[blockIdx.x] = Stopwatch::now() - start;
}

unsigned word_of_numbers(std::size_t i) {
  const auto x = static_cast<unsigned>(i) * 2654435761u;
  return x ^ x >> 15;
}

/// Threads among some of all blocks whose sum is wrong.
int wrong_sums(Order order, unsigned pieces, unsigned blocks, const std::vector<unsigned>& sums) {
  int wrong = 0;
  for (const unsigned block : {0u, blocks / 2, blocks - 1}) {
    std::vector<unsigned> want(kThreads);
    Walk walk = Walk::of(order, block, pieces);
    for (unsigned copy = 1; copy <= kRounds * kCopies; ++copy) {
      const std::size_t piece = walk.next();
      if (copy % kCopies != 0) continue;
      for (unsigned i = 0; i < kThreads; ++i) {
        want[i] += word_of_numbers((piece * kPiece + i * 16) / sizeof(unsigned));
      }
    }
    for (unsigned i = 0; i < kThreads; ++i) wrong += want[i] != sums[block * kThreads + i];
  }
  return wrong;
}

struct Question {
  const char* name;
  Order order;
  unsigned megabytes;
  const char* what;
  unsigned blocks = multiprocessors();
  std::optional<double> assumed{};
  bool checked = true;
  unsigned spread = kPiece;
};

template <Path kPath>
void ask(const TestStream& stream, const TestArray<unsigned>& src, const Question& q) {
  const unsigned pieces = (q.megabytes << 20) / kPiece;
  const TestArray<unsigned> sums(std::size_t{q.blocks} * kThreads);
  const TestArray<Stopwatch> watches(q.blocks);
  check(cudaFuncSetAttribute(walk_kernel<kPath>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(kShared)),
        "cudaFuncSetAttribute");
  const double seconds = seconds_each(stream, 3, [&] {
    walk_kernel<kPath><<<q.blocks, kThreads, kShared, stream>>>(
        reinterpret_cast<const char*>(src.data()), q.order, pieces, q.spread, sums.data(),
        watches.data());
  });
  const double bytes = double{kPiece} * kCopies * kRounds;
  const double rate = 1e-12 * bytes * q.blocks / seconds;
  const Pace pace = pace_of(watches.read());
  const int wrong = q.checked ? wrong_sums(q.order, pieces, q.blocks, sums.read()) : 0;
  say({.name = q.name,
       .question = "E17",
       .value = rate,
       .unit = "TB/s",
       .verdict = wrong ? Verdict::differs : verdict_of(rate, q.assumed, 0.15),
       .text = words("%s: %.3g TB/s, %.1f bytes a clock and multiprocessor at %.0f MHz%s", q.what,
                     rate, bytes / pace.cycles, pace.megahertz,
                     wrong ? words("; WRONG: %d sums of what was copied", wrong).c_str() : "")});
}

/// All by the way past L1, of numbers.
std::vector<Question> questions() {
  return {{.name = "l2-to-shared-16-mb",
           .order = Order::scattered,
           .megabytes = 16,
           .what = "the same 16 MB, each block in its own order",
           .assumed = assumed_on_hopper(9.3)},
          {.name = "l2-to-shared-32-mb",
           .order = Order::scattered,
           .megabytes = 32,
           .what = "the same 32 MB, each block in its own order"},
          {.name = "l2-to-shared-own",
           .order = Order::own,
           .megabytes = 32,
           .what = "256 KB of each block's own"},
          {.name = "l2-to-shared-in-step",
           .order = Order::in_step,
           .megabytes = 16,
           .what = "the same piece by all blocks at a time"},
          {.name = "l2-to-shared-queued",
           .order = Order::queued,
           .megabytes = 16,
           .what = "the same 16 MB in one order, from different starts"},
          {.name = "l2-to-one-place",
           .order = Order::scattered,
           .megabytes = 16,
           .what = "scattered, all to one place: a rate above shows that some are left out",
           .checked = false,
           .spread = 0},
          {.name = "l2-to-one-multiprocessor",
           .order = Order::scattered,
           .megabytes = 16,
           .what = "16 MB by one block, others idle",
           .blocks = 1}};
}

}  // namespace

void ask_l2() {
  const unsigned all = multiprocessors();
  const std::size_t size =
      std::max<std::size_t>(std::size_t{32} << 20, std::size_t{all} * kOwnPieces * kPiece);
  std::vector<unsigned> numbers(size / sizeof(unsigned));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = word_of_numbers(i);
  const TestStream stream;
  const TestArray<unsigned> src(numbers), zeros(numbers.size());
  for (const Question& question : questions()) ask<Path::past_l1>(stream, src, question);
  Question same{.name = "l2-to-shared-16-mb-through-l1",
                .order = Order::scattered,
                .megabytes = 16,
                .what = "the same by cp.async.ca"};
  ask<Path::through_l1>(stream, src, same);
  same.name = "l2-to-shared-16-mb-of-zeros";
  same.what = "the same of zeros";
  same.checked = false;
  ask<Path::past_l1>(stream, zeros, same);
}

namespace {

// How quickly bytes move in the device's memory: E17.

constexpr int kTriadThreads = 256;

__global__ void __launch_bounds__(kTriadThreads)
    triad_kernel(const float4* __restrict__ b, const float4* __restrict__ c, float4* a) {
  const std::size_t i = std::size_t{blockIdx.x} * kTriadThreads + threadIdx.x;
  const float4 x = b[i], y = c[i];
  a[i] = make_float4(x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w);
}

/// What the model of speed takes for the memory's rate, in TB/s.
std::optional<double> assumed_memory_rate() {
  const std::string name = properties_of_device().name;
  if (name.find("H100") != std::string::npos) return 2.85;
  if (name.find("H200") != std::string::npos) return 4.3;
  return {};
}

void say_memory_rate(const char* name, double bytes, double seconds) {
  const double rate = 1e-12 * bytes / seconds;
  say({.name = name,
       .question = "E17",
       .value = rate,
       .unit = "TB/s",
       .verdict = verdict_of(rate, assumed_memory_rate(), 0.1),
       .text = words("%.2f TB/s, read and written bytes together", rate)});
}

}  // namespace

void ask_moves() {
  constexpr std::size_t kBytes = std::size_t{512} << 20;  // of which L2 keeps little
  constexpr auto kBlocks = static_cast<unsigned>(kBytes / sizeof(float4) / kTriadThreads);
  const TestStream stream;
  const TestArray<char> a(kBytes), b(kBytes), c(kBytes);
  say_memory_rate(
      "device-copy", 2.0 * kBytes, seconds_each(stream, 10, [&] {
        check(cudaMemcpyAsync(a.data(), b.data(), kBytes, cudaMemcpyDeviceToDevice, stream),
              "cudaMemcpyAsync");
      }));
  const auto floats = [](const TestArray<char>& x) { return reinterpret_cast<float4*>(x.data()); };
  say_memory_rate("device-triad", 3.0 * kBytes, seconds_each(stream, 10, [&] {
                    triad_kernel<<<kBlocks, kTriadThreads, 0, stream>>>(floats(b), floats(c),
                                                                        floats(a));
                  }));
}

}  // namespace cputrain::cuda::probes

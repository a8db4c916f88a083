#include <immintrin.h>

#include "backends/cpu/sparse/first_layer_backward.inl"
#include "backends/cpu/sparse/first_layer_forward.inl"
#include "core/casts.h"

namespace cputrain::cpu::first_layer {
namespace {

/// 16 x 16 bytes, transposed: in to[i], lane j is column 4 j + i.
void transpose_bytes(const std::uint8_t* from, __m512i (&to)[4]) {
  const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  __m512i rows[4];  // lane j, number i: four rows of column 4 j + i
  for (int k = 0; k < 4; ++k) {
    rows[k] = _mm512_permutexvar_epi32(lanes, _mm512_loadu_si512(from + 64 * k));
    rows[k] = _mm512_shuffle_epi8(rows[k], bytes);
  }
  const __m512i low_01 = _mm512_unpacklo_epi32(rows[0], rows[1]);
  const __m512i low_23 = _mm512_unpacklo_epi32(rows[2], rows[3]);
  const __m512i high_01 = _mm512_unpackhi_epi32(rows[0], rows[1]);
  const __m512i high_23 = _mm512_unpackhi_epi32(rows[2], rows[3]);
  to[0] = _mm512_unpacklo_epi64(low_01, low_23);
  to[1] = _mm512_unpackhi_epi64(low_01, low_23);
  to[2] = _mm512_unpacklo_epi64(high_01, high_23);
  to[3] = _mm512_unpackhi_epi64(high_01, high_23);
}

/// 16 x 16 floats, transposed in place.
void transpose_floats(__m512 (&v)[16]) {
  __m512 w[16];
  for (int i = 0; i < 16; i += 4) {
    const __m512 low_01 = _mm512_unpacklo_ps(v[i], v[i + 1]);
    const __m512 high_01 = _mm512_unpackhi_ps(v[i], v[i + 1]);
    const __m512 low_23 = _mm512_unpacklo_ps(v[i + 2], v[i + 3]);
    const __m512 high_23 = _mm512_unpackhi_ps(v[i + 2], v[i + 3]);
    w[i] = _mm512_shuffle_ps(low_01, low_23, 0x44);
    w[i + 1] = _mm512_shuffle_ps(low_01, low_23, 0xee);
    w[i + 2] = _mm512_shuffle_ps(high_01, high_23, 0x44);
    w[i + 3] = _mm512_shuffle_ps(high_01, high_23, 0xee);
  }
  // Now lane j of w[4 k + i] holds rows 4 k to 4 k + 3 of column 4 j + i.
  for (int i = 0; i < 4; ++i) {
    const __m512 even_01 = _mm512_shuffle_f32x4(w[i], w[i + 4], 0x88);
    const __m512 odd_01 = _mm512_shuffle_f32x4(w[i], w[i + 4], 0xdd);
    const __m512 even_23 = _mm512_shuffle_f32x4(w[i + 8], w[i + 12], 0x88);
    const __m512 odd_23 = _mm512_shuffle_f32x4(w[i + 8], w[i + 12], 0xdd);
    v[i] = _mm512_shuffle_f32x4(even_01, even_23, 0x88);
    v[4 + i] = _mm512_shuffle_f32x4(odd_01, odd_23, 0x88);
    v[8 + i] = _mm512_shuffle_f32x4(even_01, even_23, 0xdd);
    v[12 + i] = _mm512_shuffle_f32x4(odd_01, odd_23, 0xdd);
  }
}

/// The same as list_row() for 16 windows, of which `first` is the first one's number in its row:
/// transposed to vectors of windows, compressed, and written whole.
void list_16_windows(const WindowRow& row, const Outputs& out, std::size_t first, Lists& lists,
                     __m512& bias_sums) {
  const __m512 zero = _mm512_setzero_ps();
  __m512 diffs[16];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) {
    diffs[i] = _mm512_loadu_ps(out.diff + 16 * i);
    if (row.relu) {
      const __m512 dst = _mm512_loadu_ps(out.dst + 16 * i);
      diffs[i] = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(dst, zero, _CMP_GT_OQ), diffs[i]);
    }
    bias_sums = _mm512_add_ps(bias_sums, diffs[i]);
  }
  transpose_floats(diffs);
  __m512i winners[4];
  transpose_bytes(out.winners, winners);
  alignas(64) std::uint8_t winners_of[4][4][16];  // channel 4 j + i is at [i][j]
  for (int i = 0; i < 4; ++i) _mm512_store_si512(winners_of[i], winners[i]);

  const auto start = [&](unsigned position) { return to_int(start_of(row, position)); };
  const __m512i starts =
      _mm512_broadcast_i32x4(_mm_setr_epi32(start(0), start(1), start(2), start(3)));
  const __m512i windows =
      _mm512_add_epi32(_mm512_set1_epi32(to_int(first)),
                       _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  const __m512i firsts = _mm512_mullo_epi32(windows, _mm512_set1_epi32(2 * kColours));
#pragma GCC unroll 16
  for (std::size_t c = 0; c < 16; ++c) {
    const __mmask16 counts = _mm512_cmp_ps_mask(diffs[c], zero, _CMP_NEQ_UQ);
    const __m512i winner = _mm512_cvtepu8_epi32(
        _mm_load_si128(reinterpret_cast<const __m128i*>(winners_of[c % 4][c / 4])));
    const __m512i offsets = _mm512_add_epi32(firsts, _mm512_permutexvar_epi32(winner, starts));
    const std::size_t place = c * lists.capacity + lists.sizes[c];
    _mm512_storeu_ps(lists.values + place, _mm512_maskz_compress_ps(counts, diffs[c]));
    _mm512_storeu_si512(lists.offsets + place, _mm512_maskz_compress_epi32(counts, offsets));
    lists.sizes[c] += to_size(__builtin_popcount(counts));
  }
}

void list_row_of_16(const WindowRow& row, Lists& lists, float* bias_sums) {
  __m512 of_row = _mm512_setzero_ps();
  const Outputs& out = row.outputs;
  std::size_t first = 0;
  for (; first + 16 <= row.windows; first += 16) {
    const std::size_t at = 16 * first;
    const float* dst = row.relu ? out.dst + at : nullptr;
    list_16_windows(row, {dst, out.winners + at, out.diff + at}, first, lists, of_row);
  }
  if (first < row.windows) {  // the last ones, and zeros behind them
    const std::size_t at = 16 * first, count = 16 * (row.windows - first);
    float dst[256]{}, diff[256]{};
    std::uint8_t winners[256]{};
    if (row.relu) copy(out.dst + at, count, dst);
    copy(out.diff + at, count, diff);
    copy(out.winners + at, count, winners);
    list_16_windows(row, {dst, winners, diff}, first, lists, of_row);
  }
  _mm512_storeu_ps(bias_sums, _mm512_add_ps(_mm512_loadu_ps(bias_sums), of_row));
}

// 2 x 6 outputs of two blocks: 24 of 32 registers.
constexpr Kernels kKernels{forward_rows<16, 16, 3, 2>, backward_rows<16, 16, list_row_of_16>};

}  // namespace

const Kernels& avx512_kernels() { return kKernels; }

}  // namespace cputrain::cpu::first_layer

// Included by convolve_kernels.cpp for each instruction set, which gives `Sums`: sixteen sums of 32
// bits, with add(weight, bytes) and store(bytes), which rounds and cuts to bytes.

void convolve_tile(const std::uint8_t* tile, int first, const FilterTaps& filter,
                   std::uint8_t* to) {
  const std::int32_t* const all = filter.weights.data();
  for (const FilterTaps::Tap *tap = filter.taps.data(), *end = tap + filter.taps.size(); tap != end;
       ++tap, to += kTilePixel) {
    const std::uint8_t* from = tile + to_size(tap->begin - first) * kTilePixel;
    const std::int32_t* weights = all + tap->weights_at;
    Sums red, green, blue;
    for (int i = 0; i < tap->count; ++i, from += kTilePixel) {
      red.add(weights[i], from);
      green.add(weights[i], from + kLanes);
      blue.add(weights[i], from + 2 * kLanes);
    }
    red.store(to);
    green.store(to + kLanes);
    blue.store(to + 2 * kLanes);
  }
}

void convolve_rows(const std::uint8_t* rows, std::size_t stride, int count,
                   const std::int32_t* weights, std::size_t bytes, std::uint8_t* to) {
  for (std::size_t at = 0; at < bytes; at += kStrip) {
    Sums a, b, c, d;
    const std::uint8_t* from = rows + at;
    for (int i = 0; i < count; ++i, from += stride) {
      a.add(weights[i], from);
      b.add(weights[i], from + kLanes);
      c.add(weights[i], from + 2 * kLanes);
      d.add(weights[i], from + 3 * kLanes);
    }
    a.store(to + at);
    b.store(to + at + kLanes);
    c.store(to + at + 2 * kLanes);
    d.store(to + at + 3 * kLanes);
  }
}

#pragma once

// jpeglib.h needs FILE and size_t to be known.
#include <cstddef>
#include <cstdio>
//
#include <jpeglib.h>

#include <csetjmp>
#include <cstdint>
#include <optional>
#include <span>

#include "datasets/decode/decoders.h"
#include "datasets/decode/limits.h"

/// libjpeg, for the decoders of JPEG and TIFF. A JPEG file is one stream; a TIFF holds one per
/// strip or tile. The limits on work and the signs of missing data are the same for both.
namespace cputrain::datasets {

/// Scans of the stream at hand, and the samples that the scans of all streams touch together.
struct JpegScans {
  int count = 0;
  std::int64_t samples = 0;

  bool too_many() const { return count > kMaxJpegScans || samples > kMaxScanSamples; }
};

/// libjpeg reports errors by calling error_exit, which must not return. An exception must not cross
/// its C frames, so error_exit jumps back to attempt() below.
struct JpegErrors {
  jpeg_error_mgr manager{};  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump{};
  char message[JMSG_LENGTH_MAX] = {};  // the first complaint, or the error
  bool data_missing = false;           // a decoder ran out of bits
  bool stream_ended = false;           // bytes were wanted after the last one
  JpegScans scans;                     // that began
};

/// Decodes streams one after the other. Everything that libjpeg allocates belongs to `info`; it is
/// released in a frame that no jump passes.
struct JpegStreams {
  jpeg_decompress_struct info{};
  JpegErrors errors;
  jpeg_progress_mgr progress{};

  JpegStreams() = default;
  JpegStreams(const JpegStreams&) = delete;
  JpegStreams& operator=(const JpegStreams&) = delete;
  ~JpegStreams() { jpeg_destroy_decompress(&info); }

  /// To be called first; false where libjpeg gave up, as for those that follow.
  bool create();
  /// Tables for all streams that follow.
  bool read_tables(std::span<const std::uint8_t> tables);
  /// The next stream up to its first scan. Beyond that it is read by attempt().
  bool read_header(std::span<const std::uint8_t> stream);

  /// Refuses too many scans without decoding any, where the stream's markers announce them.
  std::optional<Decoded> refused_scans(std::span<const std::uint8_t> stream);
  /// Bytes that libjpeg keeps for the stream at hand.
  std::size_t working_bytes();
  /// Whether pixels that were read are missing in the data.
  bool is_truncated();
  /// After the last row: what follows can be wrong without any harm, and is read for its
  /// complaints.
  bool ends_clean();
  /// Why libjpeg gave up.
  Decoded failure() const;
};

/// Runs a piece of libjpeg work; false when libjpeg gave up. A jump skips destructors, so neither
/// this frame nor those of `work` may hold objects that have one.
template <class Work>
bool attempt(JpegStreams& streams, Work work) {
  if (setjmp(streams.errors.jump) != 0) return false;
  work(streams.info);
  return true;
}

/// Decodes `rows` rows: each to target(y), and then calls done(y).
template <class Target, class Done>
bool read_rows(JpegStreams& streams, JDIMENSION rows, Target target, Done done) {
  return attempt(streams, [=](jpeg_decompress_struct& info) {
    info.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&info);
    while (info.output_scanline < rows) {
      const JDIMENSION y = info.output_scanline;
      JSAMPROW row = target(y);
      jpeg_read_scanlines(&info, &row, 1);
      done(y);
    }
  });
}

/// A row of four inks. Adobe's programs store them inverted: 255 is no ink.
void rgb_of_inks(const std::uint8_t* inks, std::size_t width, bool inverted, std::uint8_t* rgb);

}  // namespace cputrain::datasets

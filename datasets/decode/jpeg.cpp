// jpeglib.h needs FILE and size_t to be known.
#include <cstddef>
#include <cstdio>
//
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <string>

#include "core/text.h"
#include "datasets/decode/decoders.h"
#include "datasets/decode/limits.h"

namespace cputrain::datasets {
namespace {

/// Scans of a file and the samples that they touch together.
struct Scans {
  int count = 0;
  std::int64_t samples = 0;

  bool too_many() const { return count > kMaxJpegScans || samples > kMaxScanSamples; }
};

/// libjpeg reports errors by calling error_exit, which must not return. An exception must not cross
/// its C frames, so error_exit jumps back to attempt() below.
struct ErrorState {
  jpeg_error_mgr manager{};  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump{};
  char message[JMSG_LENGTH_MAX] = {};  // the first complaint, or the error
  bool data_missing = false;           // a decoder ran out of bits
  bool file_ended = false;             // bytes were wanted after the last one
  Scans scans;                         // that began
};

/// Everything that libjpeg allocates belongs to `info`; it is released in a frame that no jump
/// passes.
struct Decoder {
  jpeg_decompress_struct info{};
  ErrorState error;
  jpeg_progress_mgr progress{};

  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&info); }
};

ErrorState& state_of(j_common_ptr info) { return *reinterpret_cast<ErrorState*>(info->err); }

[[noreturn]] void on_error(j_common_ptr info) {
  // After the end of the file, errors are only consequences; the complaint about it says more.
  if (!state_of(info).file_ended) info->err->format_message(info, state_of(info).message);
  std::longjmp(state_of(info).jump, 1);
}

void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;  // traces
  ErrorState& error = state_of(info);
  if (info->err->num_warnings++ == 0) info->err->format_message(info, error.message);
  error.data_missing |= info->err->msg_code == JWRN_HIT_MARKER;
  error.file_ended |= info->err->msg_code == JWRN_JPEG_EOF;
}

std::int64_t samples_of(const jpeg_decompress_struct& info, const jpeg_component_info& component) {
  const std::int64_t blocks = std::int64_t{component.width_in_blocks} * component.height_in_blocks;
  return blocks * DCTSIZE2 * (info.arith_code ? kArithmeticScans : 1);
}

/// Called at least once per scan, before its first row. Only scans that libjpeg itself begins
/// count, so a file cannot hide any.
void on_progress(j_common_ptr common) {
  const auto* info = reinterpret_cast<j_decompress_ptr>(common);
  Scans& scans = state_of(common).scans;
  if (info->input_scan_number == scans.count) return;
  scans.count = info->input_scan_number;
  for (int i = 0; i < info->comps_in_scan; ++i) {
    scans.samples += samples_of(*info, *info->cur_comp_info[i]);
  }
  if (scans.too_many()) std::longjmp(state_of(common).jump, 1);
}

/// The scans that a file's markers announce, counted without decoding any, until they are too many:
/// most files of far too many scans are refused here for nothing. (ITU T.81, B.1.1: in coded data
/// 0xFF is followed by 0 or is a restart marker; other segments have a length.)
Scans announced_scans(const jpeg_decompress_struct& info, std::span<const std::uint8_t> file) {
  Scans scans;
  std::size_t at = 2;
  while (at + 4 < file.size() && !scans.too_many()) {
    const std::uint8_t marker = file[at + 1];
    const bool bare = marker == 0 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
    if (file[at] != 0xFF || marker == 0xFF || bare) {
      ++at;
      continue;
    }
    if (marker == 0xD9) break;  // end of image
    const std::size_t parts = marker == 0xDA ? file[at + 4] : 0;
    scans.count += marker == 0xDA ? 1 : 0;
    for (std::size_t i = 0; i < parts && at + 5 + 2 * i < file.size(); ++i) {
      for (int c = 0; c < info.num_components; ++c) {
        const jpeg_component_info& component = info.comp_info[c];
        if (component.component_id == file[at + 5 + 2 * i]) {
          scans.samples += samples_of(info, component);
        }
      }
    }
    at += std::size_t{2} + (file[at + 2] << 8 | file[at + 3]);
  }
  return scans;
}

/// Runs a piece of libjpeg work; false when libjpeg gave up. A jump skips destructors, so neither
/// this frame nor those of `work` may hold objects that have one.
template <class Work>
bool attempt(Decoder& decoder, Work work) {
  if (setjmp(decoder.error.jump) != 0) return false;
  work(decoder.info);
  return true;
}

bool read_header(Decoder& decoder, std::span<const std::uint8_t> file) {
  decoder.info.err = jpeg_std_error(&decoder.error.manager);
  decoder.error.manager.error_exit = on_error;
  decoder.error.manager.emit_message = on_message;
  decoder.progress.progress_monitor = on_progress;
  return attempt(decoder, [&](jpeg_decompress_struct& info) {
    jpeg_create_decompress(&info);
    info.mem->max_memory_to_use = static_cast<long>(kMaxDecoderBytes);
    info.progress = &decoder.progress;
    jpeg_mem_src(&info, file.data(), file.size());
    jpeg_read_header(&info, TRUE);
  });
}

/// product / 255, rounded, for products of two bytes.
std::uint8_t divide_by_255(int product) {
  const int biased = product + 128;
  return static_cast<std::uint8_t>((biased + (biased >> 8)) >> 8);
}

/// Adobe's programs store inks inverted (255 is no ink) and say that they wrote the file.
void convert_cmyk(const std::uint8_t* cmyk, int width, bool inverted, std::uint8_t* rgb) {
  for (int x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    for (int c = 0; c < 3; ++c) {
      rgb[c] = inverted ? divide_by_255(cmyk[c] * cmyk[3])
                        : divide_by_255((255 - cmyk[c]) * (255 - cmyk[3]));
    }
  }
}

/// Fills `rgb` (height * width * 3 bytes); `row` has width * 4 bytes for images in four inks.
bool read_pixels(Decoder& decoder, std::uint8_t* rgb, std::uint8_t* row) {
  return attempt(decoder, [=](jpeg_decompress_struct& info) {
    const bool inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&info);
    const std::size_t stride = std::size_t{3} * info.output_width;
    while (info.output_scanline < info.output_height) {
      std::uint8_t* const line = rgb + stride * info.output_scanline;
      JSAMPROW target = inks ? row : line;
      jpeg_read_scanlines(&info, &target, 1);
      if (inks) {
        convert_cmyk(row, static_cast<int>(info.output_width), info.saw_Adobe_marker != 0, line);
      }
    }
  });
}

/// Why libjpeg gave up.
data::ReadStatus reason(const ErrorState& error) {
  if (error.scans.too_many()) return data::ReadStatus::too_large;
  switch (error.manager.msg_code) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
      return data::ReadStatus::too_large;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
      return data::ReadStatus::unsupported;
    default:
      return error.file_ended ? data::ReadStatus::truncated : data::ReadStatus::not_an_image;
  }
}

std::string work_text(const jpeg_decompress_struct& info, const Scans& scans) {
  const std::string size =
      std::to_string(info.image_width) + "x" + std::to_string(info.image_height) + ", ";
  if (scans.count > kMaxJpegScans) return size + "above " + with_commas(kMaxJpegScans) + " scans";
  return size + std::to_string(scans.count) + " scans or more: above " +
         with_commas(kMaxScanSamples) + " samples x scans";
}

Decoded failure(const Decoder& decoder) {
  const ErrorState& error = decoder.error;
  return refused(reason(error), error.scans.too_many() ? work_text(decoder.info, error.scans)
                                                       : std::string(error.message));
}

/// Where several scans are to come, libjpeg keeps the coefficients of the whole image, two bytes
/// each, in blocks up to whole MCUs.
std::size_t coefficient_bytes(Decoder& decoder) {
  if (!jpeg_has_multiple_scans(&decoder.info)) return 0;
  std::size_t blocks = 0;
  for (int i = 0; i < decoder.info.num_components; ++i) {
    const jpeg_component_info& component = decoder.info.comp_info[i];
    blocks += (std::size_t{component.width_in_blocks} + MAX_SAMP_FACTOR) *
              (std::size_t{component.height_in_blocks} + MAX_SAMP_FACTOR);
  }
  return blocks * DCTSIZE2 * sizeof(JCOEF);
}

/// Whether pixels are missing. Data that stop inside a scan are. So is an image of several scans
/// (progressive) that stops between them, and there nothing but the missing end marker tells; in a
/// image of one scan a missing end marker alone costs nothing and is only a complaint.
bool is_truncated(const Decoder& decoder) {
  const jpeg_decompress_struct& info = decoder.info;
  const bool tells_nothing =
      !jpeg_has_multiple_scans(const_cast<j_decompress_ptr>(&info)) && !info.arith_code;
  return decoder.error.data_missing || (decoder.error.file_ended && !tells_nothing);
}

}  // namespace

Decoded decode_jpeg(std::span<const std::uint8_t> file, DecodingBudget::Claim& claim) {
  Decoder decoder;
  if (!read_header(decoder, file)) return failure(decoder);
  const std::int64_t width = decoder.info.image_width, height = decoder.info.image_height;
  if (auto refusal = refused_size(width, height)) return *std::move(refusal);
  if (jpeg_has_multiple_scans(&decoder.info)) {
    const Scans scans = announced_scans(decoder.info, file);
    if (scans.too_many())
      return refused(data::ReadStatus::too_large, work_text(decoder.info, scans));
  }
  claim.grow(coefficient_bytes(decoder));
  Decoded decoded;
  decoded.image = black_image(width, height, claim);
  std::vector<std::uint8_t> row(
      decoder.info.num_components == 4 ? static_cast<std::size_t>(width) * 4 : 0);
  if (!read_pixels(decoder, decoded.image.rgb.data(), row.data())) return failure(decoder);
  if (is_truncated(decoder)) return refused(data::ReadStatus::truncated, decoder.error.message);
  // What follows the last pixel can be wrong without any harm; it is read for its complaints.
  const bool clean_end =
      attempt(decoder, [](jpeg_decompress_struct& info) { jpeg_finish_decompress(&info); });
  decoded.result.warned = !clean_end || decoder.error.manager.num_warnings > 0;
  return decoded;
}

}  // namespace cputrain::datasets

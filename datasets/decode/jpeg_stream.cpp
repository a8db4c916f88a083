#include "datasets/decode/jpeg_stream.h"

#include <jerror.h>

#include <algorithm>
#include <string>

#include "core/text.h"

namespace cputrain::datasets {
namespace {

JpegErrors& errors_of(j_common_ptr info) { return *reinterpret_cast<JpegErrors*>(info->err); }

[[noreturn]] void on_error(j_common_ptr info) {
  // After the end of the stream, errors are only consequences; the complaint about it is more
  // useful.
  if (!errors_of(info).stream_ended) info->err->format_message(info, errors_of(info).message);
  std::longjmp(errors_of(info).jump, 1);
}

void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;  // traces
  JpegErrors& errors = errors_of(info);
  if (info->err->num_warnings++ == 0) info->err->format_message(info, errors.message);
  errors.data_missing |= info->err->msg_code == JWRN_HIT_MARKER;
  errors.stream_ended |= info->err->msg_code == JWRN_JPEG_EOF;
}

std::int64_t samples_of(const jpeg_decompress_struct& info, const jpeg_component_info& component) {
  const std::int64_t blocks = std::int64_t{component.width_in_blocks} * component.height_in_blocks;
  return std::max(blocks * DCTSIZE2 * (info.arith_code ? kArithmeticScans : 1), kLeastScanSamples);
}

/// Called at least once per scan, before its first row. Only scans that libjpeg itself begins
/// count, so a file cannot hide any.
void on_progress(j_common_ptr common) {
  const auto* info = reinterpret_cast<j_decompress_ptr>(common);
  JpegScans& scans = errors_of(common).scans;
  if (info->input_scan_number == scans.count) return;
  scans.count = info->input_scan_number;
  for (int i = 0; i < info->comps_in_scan; ++i) {
    scans.samples += samples_of(*info, *info->cur_comp_info[i]);
  }
  if (scans.too_many()) std::longjmp(errors_of(common).jump, 1);
}

/// Samples of the components that a scan names, its header being at `at`.
std::int64_t announced_samples(const jpeg_decompress_struct& info,
                               std::span<const std::uint8_t> stream, std::size_t at) {
  std::int64_t samples = 0;
  for (std::size_t i = 0; i < stream[at] && at + 1 + 2 * i < stream.size(); ++i) {
    for (int c = 0; c < info.num_components; ++c) {
      const jpeg_component_info& component = info.comp_info[c];
      if (component.component_id == stream[at + 1 + 2 * i]) samples += samples_of(info, component);
    }
  }
  return samples;
}

/// Adds the scans that a stream's markers announce, counted without decoding any, until they are
/// too many: most files of far too many scans are refused here for nothing. (ITU T.81, B.1.1: in
/// coded data 0xFF is followed by 0 or is a restart marker; other segments have a length.)
void add_announced(const jpeg_decompress_struct& info, std::span<const std::uint8_t> stream,
                   JpegScans& scans) {
  std::size_t at = 2;
  while (at + 4 < stream.size() && !scans.too_many()) {
    const std::uint8_t marker = stream[at + 1];
    const bool bare = marker == 0 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
    if (stream[at] != 0xFF || marker == 0xFF || bare) {
      ++at;
      continue;
    }
    if (marker == 0xD9) break;  // end of image
    if (marker == 0xDA) {
      ++scans.count;
      scans.samples += announced_samples(info, stream, at + 4);
    }
    at += std::size_t{2} + (stream[at + 2] << 8 | stream[at + 3]);
  }
}

data::ReadStatus reason(const JpegErrors& errors) {
  switch (errors.manager.msg_code) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
      return data::ReadStatus::too_large;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
#if JPEG_LIB_VERSION < 70  // which Ubuntu's has not: its libjpeg-turbo is built as libjpeg 8
    case JERR_ARITH_NOTIMPL:
#endif
    case JERR_NOT_COMPILED:
    case JERR_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
      return data::ReadStatus::unsupported;
    default:
      return errors.stream_ended ? data::ReadStatus::truncated : data::ReadStatus::not_an_image;
  }
}

Decoded too_much_work(const jpeg_decompress_struct& info, const JpegScans& scans) {
  std::string text =
      std::to_string(info.image_width) + "x" + std::to_string(info.image_height) + ", ";
  if (scans.count > kMaxJpegScans) {
    text += "above " + with_commas(kMaxJpegScans) + " scans";
  } else {
    text += std::to_string(scans.count) + " scans or more: above " + with_commas(kMaxScanSamples) +
            " samples x scans";
  }
  return refused(data::ReadStatus::too_large, text);
}

/// product / 255, rounded, for products of two bytes.
std::uint8_t divide_by_255(int product) {
  const int biased = product + 128;
  return static_cast<std::uint8_t>((biased + (biased >> 8)) >> 8);
}

}  // namespace

bool JpegStreams::create() {
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = on_error;
  errors.manager.emit_message = on_message;
  progress.progress_monitor = on_progress;
  return attempt(*this, [this](jpeg_decompress_struct&) {
    jpeg_create_decompress(&info);
    info.mem->max_memory_to_use = static_cast<long>(kMaxDecoderBytes);
    info.progress = &progress;
  });
}

bool JpegStreams::read_tables(std::span<const std::uint8_t> tables) {
  return attempt(*this, [=](jpeg_decompress_struct& jpeg) {
    jpeg_mem_src(&jpeg, tables.data(), tables.size());
    jpeg_read_header(&jpeg, FALSE);
  });
}

bool JpegStreams::read_header(std::span<const std::uint8_t> stream) {
  errors.data_missing = errors.stream_ended = false;
  errors.scans.count = 0;
  return attempt(*this, [=](jpeg_decompress_struct& jpeg) {
    jpeg_abort_decompress(&jpeg);
    jpeg_mem_src(&jpeg, stream.data(), stream.size());
    jpeg_read_header(&jpeg, TRUE);
  });
}

std::optional<Decoded> JpegStreams::refused_scans(std::span<const std::uint8_t> stream) {
  if (!jpeg_has_multiple_scans(&info) && !info.arith_code) return {};
  JpegScans scans{0, errors.scans.samples};
  add_announced(info, stream, scans);
  if (!scans.too_many()) return {};
  return too_much_work(info, scans);
}

/// Where several scans are to come, libjpeg keeps the coefficients of the whole image, two bytes
/// each, in blocks up to whole MCUs.
std::size_t JpegStreams::working_bytes() {
  if (!jpeg_has_multiple_scans(&info)) return 0;
  std::size_t blocks = 0;
  for (int i = 0; i < info.num_components; ++i) {
    const jpeg_component_info& component = info.comp_info[i];
    blocks += (std::size_t{component.width_in_blocks} + MAX_SAMP_FACTOR) *
              (std::size_t{component.height_in_blocks} + MAX_SAMP_FACTOR);
  }
  return blocks * DCTSIZE2 * sizeof(JCOEF);
}

/// Data that stop inside a scan are missing. So are those of an image of several scans
/// (progressive) that stop between them, and there only the missing end marker shows it; in an
/// image of one scan a missing end marker alone costs nothing and is only a complaint.
bool JpegStreams::is_truncated() {
  const bool end_tells = jpeg_has_multiple_scans(&info) || info.arith_code;
  return errors.data_missing || (errors.stream_ended && end_tells);
}

bool JpegStreams::ends_clean() {
  const bool clean = attempt(*this, [](jpeg_decompress_struct& jpeg) {
    if (jpeg.output_scanline == jpeg.output_height) jpeg_finish_decompress(&jpeg);
  });
  return clean && errors.manager.num_warnings == 0;
}

Decoded JpegStreams::failure() const {
  if (errors.scans.too_many()) return too_much_work(info, errors.scans);
  const data::ReadStatus status = reason(errors);
  return status == data::ReadStatus::truncated ? truncated() : refused(status, errors.message);
}

void rgb_of_inks(const std::uint8_t* inks, std::size_t width, bool inverted, std::uint8_t* rgb) {
  for (std::size_t x = 0; x < width; ++x, inks += 4, rgb += 3) {
    for (int c = 0; c < 3; ++c) {
      rgb[c] = inverted ? divide_by_255(inks[c] * inks[3])
                        : divide_by_255((255 - inks[c]) * (255 - inks[3]));
    }
  }
}

}  // namespace cputrain::datasets

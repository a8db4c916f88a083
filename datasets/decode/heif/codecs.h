#pragma once

#include <dav1d/dav1d.h>
#include <libde265/de265.h>
#include <libheif/heif.h>
#include <libheif/heif_plugin.h>

#include <string>

#include "system/late_library.h"

#if LIBHEIF_HAVE_VERSION(1, 19, 0)
#define CPUTRAIN_HEIF_LIMIT heif_context_get_security_limits
#else
#define CPUTRAIN_HEIF_LIMIT heif_context_set_maximum_image_size_limit
#endif

/// Functions of the three libraries that are called here.
// clang-format off
#define CPUTRAIN_HEIF_CALLS(call) \
  call(CPUTRAIN_HEIF_LIMIT) \
  call(heif_context_alloc) call(heif_context_free) call(heif_context_get_primary_image_handle) \
  call(heif_context_read_from_memory_without_copy) call(heif_context_set_max_decoding_threads) \
  call(heif_decode_image) call(heif_decoding_options_alloc) call(heif_decoding_options_free) \
  call(heif_image_add_plane) call(heif_image_create) call(heif_image_get_bits_per_pixel_range) \
  call(heif_image_get_height) call(heif_image_get_plane) call(heif_image_get_plane_readonly) \
  call(heif_image_get_width) call(heif_image_handle_get_height) \
  call(heif_image_handle_get_ispe_height) call(heif_image_handle_get_ispe_width) \
  call(heif_image_handle_get_luma_bits_per_pixel) call(heif_image_handle_get_width) \
  call(heif_image_handle_has_alpha_channel) call(heif_image_handle_release) \
  call(heif_image_release) call(heif_image_set_nclx_color_profile) \
  call(heif_nclx_color_profile_alloc) call(heif_nclx_color_profile_free) \
  call(heif_nclx_color_profile_set_color_primaries) \
  call(heif_nclx_color_profile_set_matrix_coefficients) \
  call(heif_nclx_color_profile_set_transfer_characteristics) call(heif_register_decoder_plugin)

#define CPUTRAIN_HEVC_CALLS(call) \
  call(de265_decode) call(de265_flush_data) call(de265_free_decoder) \
  call(de265_get_bits_per_pixel) call(de265_get_chroma_format) call(de265_get_error_text) \
  call(de265_get_image_colour_primaries) call(de265_get_image_full_range_flag) \
  call(de265_get_image_height) call(de265_get_image_matrix_coefficients) \
  call(de265_get_image_plane) call(de265_get_image_plane_user_data) \
  call(de265_get_image_transfer_characteristics) call(de265_get_image_width) \
  call(de265_get_next_picture) call(de265_get_warning) call(de265_init) call(de265_new_decoder) \
  call(de265_push_NAL) call(de265_set_image_allocation_functions) call(de265_set_image_plane)

#define CPUTRAIN_AV1_CALLS(call) \
  call(dav1d_close) call(dav1d_data_create) call(dav1d_data_unref) call(dav1d_default_settings) \
  call(dav1d_get_picture) call(dav1d_open) call(dav1d_picture_unref) call(dav1d_send_data)
// clang-format on

/// libheif, libde265 and dav1d by tables of functions, which the first file loads. With x265, aom
/// and others behind them they would lengthen each start, and few trainings read HEIC or AVIF.
namespace cputrain::datasets {

struct HeifCalls {
  CPUTRAIN_HEIF_CALLS(CPUTRAIN_LATE_MEMBER)
};

struct HevcCalls {
  CPUTRAIN_HEVC_CALLS(CPUTRAIN_LATE_MEMBER)
};

struct Av1Calls {
  CPUTRAIN_AV1_CALLS(CPUTRAIN_LATE_MEMBER)
};

/// Which of them cannot be loaded, why, and what to do; empty where all are. Then none may be
/// called.
const std::string& why_no_codecs();

const HeifCalls& heif();
const HevcCalls& hevc();
const Av1Calls& av1();

}  // namespace cputrain::datasets

#include "datasets/decode/tiff/source.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "datasets/decode/limits.h"

namespace cputrain::datasets {
namespace {

TiffSource& source_of(thandle_t handle) { return *static_cast<TiffSource*>(handle); }

tmsize_t read_source(thandle_t handle, void* dst, tmsize_t count) {
  TiffSource& source = source_of(handle);
  const std::uint64_t left =
      source.file.size() - std::min<std::uint64_t>(source.at, source.file.size());
  const std::uint64_t size =
      std::min(left, static_cast<std::uint64_t>(std::max<tmsize_t>(count, 0)));
  if (size > 0) std::memcpy(dst, source.file.data() + source.at, size);
  source.at += size;
  return static_cast<tmsize_t>(size);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek(thandle_t handle, toff_t offset, int whence) {
  TiffSource& source = source_of(handle);
  const std::uint64_t from = whence == SEEK_CUR   ? source.at
                             : whence == SEEK_END ? source.file.size()
                                                  : 0;
  return source.at = from + offset;
}

int close_nothing(thandle_t) { return 0; }
toff_t size_of_file(thandle_t handle) { return source_of(handle).file.size(); }

/// libtiff only reads a file that is opened for reading, though it asks for a pointer to write by.
int map_source(thandle_t handle, void** base, toff_t* size) {
  const auto file = source_of(handle).file;
  *base = const_cast<std::uint8_t*>(file.data());
  *size = file.size();
  return 1;
}
void unmap_nothing(thandle_t, void*, toff_t) {}

/// libtiff has no code for what is wrong, only words.
bool is_of_missing_data(std::string_view words) {
  return words.starts_with("Not enough data") ||  // several decoders
         words.starts_with("Premature EO") ||     // fax, of a stream or a line; only warnings
         words.ends_with("not terminated with EOI code");  // LZW
}

void hear(TiffSource& source, const char* words) {
  ++source.complaints;
  source.data_ended |= is_of_missing_data(words);
}

int keep_error(TIFF*, void* user, const char*, const char* format, va_list values) {
  TiffSource& source = *static_cast<TiffSource*>(user);
  char words[sizeof source.error];
  std::vsnprintf(words, sizeof words, format, values);
  hear(source, words);
  if (source.error[0] == 0) std::strcpy(source.error, words);
  return 1;  // libtiff's default handler need not print it
}

int keep_warning(TIFF*, void* user, const char*, const char* format, va_list values) {
  TiffSource& source = *static_cast<TiffSource*>(user);
  char words[sizeof source.error];
  std::vsnprintf(words, sizeof words, format, values);
  hear(source, words);
  return 1;
}

}  // namespace

Decoded TiffSource::failure(const std::string& otherwise) const {
  if (data_ended) return truncated();
  return refused(data::ReadStatus::not_an_image, error[0] != 0 ? error : otherwise);
}

/// Handlers are given to each file when it is opened: those of the whole library print, and are
/// shared by all threads.
Tiff open_tiff(TiffSource& source) {
  struct Free {
    void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
  };
  const std::unique_ptr<TIFFOpenOptions, Free> options(TIFFOpenOptionsAlloc());
  if (!options) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(kMaxDecoderBytes));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), keep_warning, &source);
  return Tiff(TIFFClientOpenExt("image", "r", &source, read_source, write_nothing, seek,
                                close_nothing, size_of_file, map_source, unmap_nothing,
                                options.get()));
}

}  // namespace cputrain::datasets

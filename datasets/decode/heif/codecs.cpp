#include "datasets/decode/heif/codecs.h"

#include <stdexcept>

#include "datasets/decode/decoders.h"

namespace cputrain::datasets {
namespace {

struct Codecs {
  HeifCalls heif;
  HevcCalls hevc;
  Av1Calls av1;
  std::string why_not;
};

void find_heif(const system::LateLibrary& library, HeifCalls& table) {
  CPUTRAIN_HEIF_CALLS(CPUTRAIN_LATE_FIND)
}

void find_hevc(const system::LateLibrary& library, HevcCalls& table) {
  CPUTRAIN_HEVC_CALLS(CPUTRAIN_LATE_FIND)
}

void find_av1(const system::LateLibrary& library, Av1Calls& table) {
  CPUTRAIN_AV1_CALLS(CPUTRAIN_LATE_FIND)
}

/// Tried once in a process: each file of many would try anew.
const Codecs& codecs() {
  static const Codecs loaded = [] {
    Codecs made;
    try {
      find_heif(system::LateLibrary({CPUTRAIN_HEIF_FILES}), made.heif);
      find_hevc(system::LateLibrary({CPUTRAIN_DE265_FILES}), made.hevc);
      find_av1(system::LateLibrary({CPUTRAIN_DAV1D_FILES}), made.av1);
    } catch (const std::runtime_error& error) {
      made.why_not = error.what();
    }
    return made;
  }();
  return loaded;
}

}  // namespace

const std::string& why_no_codecs() { return codecs().why_not; }
const HeifCalls& heif() { return codecs().heif; }
const HevcCalls& hevc() { return codecs().hevc; }
const Av1Calls& av1() { return codecs().av1; }

std::string heif_library() {
  return "libheif " LIBHEIF_VERSION " with libde265 " LIBDE265_VERSION
         " and dav1d " CPUTRAIN_DAV1D_VERSION;
}

}  // namespace cputrain::datasets

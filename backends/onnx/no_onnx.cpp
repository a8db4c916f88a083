#include "backends/onnx/onnx_writer.h"
#include "core/error.h"

namespace cputrain::onnx {

void write_onnx(const model::ExportedModel&, system::OutputFile&) {
  fail(ExitCode::usage,
       "--onnx: this program was built without ONNX; build it with -DCPUTRAIN_ONNX=ON");
}

std::string onnx_library_version() { return "no ONNX"; }

}  // namespace cputrain::onnx

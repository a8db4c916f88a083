#include "backends/onnx/onnx_writer.h"

#include <fmt/format.h>

#include <exception>
#include <limits>
#include <nlohmann/json.hpp>

#include "backends/onnx/graph_writer.h"
#include "core/casts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/version.h"

namespace cputrain::onnx {
namespace {

constexpr int kIrVersion = 7, kOperatorSet = 13;  // what every runtime of the last years reads

void property(::onnx::ModelProto& model, const std::string& key, const std::string& value) {
  auto& added = *model.add_metadata_props();
  added.set_key(key);
  added.set_value(value);
}

::onnx::ModelProto make_model(const model::ExportedModel& exported) {
  ::onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("cputrain");
  model.set_producer_version(std::string(kVersion));
  auto& operators = *model.add_opset_import();
  operators.set_domain("");
  operators.set_version(kOperatorSet);
  property(model, "model", exported.name);
  property(model, "classes", json_text(nlohmann::json(exported.classes)));
  property(model, "preprocessing", "in-graph");
  const model::ExportedImages& images = exported.images;
  property(model, "resize", images.resize);
  property(model, "fit", images.fit);
  property(model, "resizing", images.in_words);
  property(model, "resized_by", images.resized_inside ? "graph" : "caller");
  property(model, "exif", images.exif);
  OnnxGraphWriter(exported, *model.mutable_graph()).write();
  return model;
}

/// Hands protobuf's bytes to a file; an Error must not fly through protobuf, so it waits here.
class FileStream final : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileStream(system::OutputFile& file) : file_(file) {}

  bool Write(const void* bytes, int size) override {
    try {
      file_.write(std::span(static_cast<const std::byte*>(bytes), to_size(size)));
      return true;
    } catch (...) {
      error_ = std::current_exception();
      return false;
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  system::OutputFile& file_;
  std::exception_ptr error_;
};

}  // namespace

void write_onnx(const model::ExportedModel& exported, system::OutputFile& file) {
  const ::onnx::ModelProto model = make_model(exported);
  if (model.ByteSizeLong() > std::numeric_limits<int>::max()) {
    fail(ExitCode::usage,
         fmt::format("--onnx: model {} takes {} bytes (protobuf ends at 2 GB); use --safetensors",
                     exported.name, model.ByteSizeLong()));
  }
  FileStream stream(file);
  bool written = false;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor adaptor(&stream);
    written = model.SerializeToZeroCopyStream(&adaptor) && adaptor.Flush();
  }
  stream.rethrow();
  if (!written) fail(ExitCode::internal, "protobuf cannot write the ONNX model; please report it");
}

std::string onnx_library_version() {
  return fmt::format("ONNX operator set {}, protobuf {}", kOperatorSet,
                     google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION));
}

}  // namespace cputrain::onnx

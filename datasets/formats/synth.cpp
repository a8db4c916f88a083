#include "datasets/formats/synth.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "core/casts.h"
#include "core/error.h"
#include "datasets/decode/encode.h"
#include "datasets/formats/synthetic.h"
#include "system/files.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

void check_empty(const std::string& folder) {
  std::error_code ignored;  // what cannot be looked into shows when it is written
  if (!fs::exists(folder, ignored) || fs::is_empty(folder, ignored)) return;
  fail(ExitCode::usage, fmt::format("data synth {}: there is something already (it would be mixed "
                                    "with made-up images); name a new folder",
                                    folder));
}

}  // namespace

void write_synthetic(const data::SynthRequest& request) {
  check_empty(request.folder);
  const auto data = make_synthetic_dataset(request.images, request.seed);
  for (const std::string& name : data->classes()) system::make_folder(request.folder + "/" + name);
  Image image{request.image.width, request.image.height, {}};
  image.rgb.resize(request.image.size());
  for (std::size_t i = 0; i < data->size(); ++i) {
    data->read(i, request.image, data::Resize::bilinear, image.rgb);
    const auto& name = data->classes()[to_size(data->label(i))];
    const std::vector<std::byte> file = encode(image, request.format);
    system::AtomicFile out(fmt::format("{}/{}/{:06}.{}", request.folder, name, i,
                                       request.format == "jpeg" ? "jpg" : request.format));
    out.write(file);
    out.commit(system::Durability::process);
  }
}

}  // namespace cputrain::datasets

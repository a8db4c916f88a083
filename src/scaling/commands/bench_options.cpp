#include "scaling/commands/bench_options.h"

#include <fmt/format.h>

namespace cputrain::commands {

data::DataSource open_images(const training::TrainingFlags& flags,
                             const training::Services& services, std::size_t images,
                             std::uint64_t seed) {
  data::DataRequest request = flags.data_request(seed);
  if (flags.data.empty()) request.spec = fmt::format("synthetic:{}", 2 * images);
  request.limit_train = flags.limit_train.value_or(images);
  data::DataSource source = services.data.open(request);
  source.validation.clear();
  return source;
}

}  // namespace cputrain::commands

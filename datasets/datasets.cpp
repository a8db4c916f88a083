#include "datasets/datasets.h"

#include "datasets/batch_loader.h"
#include "datasets/bench_input.h"
#include "datasets/check_data.h"
#include "datasets/file_dataset.h"
#include "datasets/folder.h"
#include "datasets/image_cache.h"
#include "datasets/open.h"
#include "datasets/packed.h"
#include "datasets/synth.h"

namespace cputrain {

DataPipeline make_data_pipeline() {
  return {.open = open_data,
          .limited = limited_samples,
          .cache_bytes = bytes_of_cache,
          .decode = decode_into_cache,
          .batches = make_batch_loader,
          .batch_bytes = bytes_in_flight,
          .read_image = read_picture,
          .list_pictures = list_pictures,
          .check = check_data,
          .bench = bench_input,
          .pack = write_packed,
          .synth = write_synthetic};
}

}  // namespace cputrain

#include "datasets/datasets.h"

#include "datasets/check_data.h"
#include "datasets/decode/thumbnail.h"
#include "datasets/folders/file_dataset.h"
#include "datasets/folders/folder.h"
#include "datasets/formats/packed.h"
#include "datasets/formats/synth.h"
#include "datasets/loader/batch_loader.h"
#include "datasets/loader/bench_input.h"
#include "datasets/loader/image_cache.h"
#include "datasets/open.h"
#include "datasets/pixels/change.h"

namespace cputrain::datasets {

data::DataPipeline make_data_pipeline() {
  return {.open = open_data,
          .limited = limited_samples,
          .cache_size = size_of_cache,
          .decode = decode_into_cache,
          .finish = finish_cache,
          .batches = make_batch_loader,
          .batch_memory = memory_of_batches,
          .read_image = read_image,
          .mirror_image = mirror_image,
          .list_images = list_images,
          .thumbnail = make_thumbnail,
          .check = check_data,
          .bench = bench_input,
          .pack = write_packed,
          .synth = write_synthetic};
}

}  // namespace cputrain::datasets

#pragma once

#include "data/pipeline.h"

namespace cputrain::datasets {

/// Times the pieces of the input path on the JPEG files of the source's training part, read into
/// memory first: decoding alone, with resize, with augmentation (each the code that training runs),
/// and the loader's micro-batches from images decoded before, as they are and augmented. A round
/// times each once and TurboDecoder beside them, in an order that turns round from one to the next;
/// a first round warms up and does not count. Error(usage) where there is no JPEG file.
data::InputBench bench_input(const data::DataSource&, const data::InputBenchRequest&);

}  // namespace cputrain::datasets

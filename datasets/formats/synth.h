#pragma once

#include "data/pipeline.h"

namespace cputrain::datasets {

/// Writes the images of `--data synthetic:N` as files, FOLDER/CLASS/000017.jpg: something to try
/// everything with. Error(usage) where the folder holds something, Error(output).
void write_synthetic(const data::SynthRequest&);

}  // namespace cputrain::datasets

#pragma once

#include <filesystem>

#include "weights/formats/tensor_file.h"

namespace cputrain::weights {

/// The arrays of a file of torch.save (.pth, .pt, .bin, .pth.tar): the zip archive of PyTorch from
/// 1.6 on, or the pickles of older ones (the formats: torch/serialization.py). Nothing of it is
/// run, and numbers stay in the file until they are read. Of a checkpoint those are taken that it
/// calls "state_dict_ema", "model_ema", "state_dict" or "model", averages before the last step's as
/// timm does. Error(data) for what is no such file, holds a program, has an array that does not
/// lie in it, or whose numbers are not those of the archive's checksums.
TensorFile open_torch_file(const std::filesystem::path&);

}  // namespace cputrain::weights

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/pipeline.h"

namespace cputrain::datasets {

/// Everything of datasets/ as the commands see it.
data::DataPipeline make_data_pipeline();

/// "libjpeg-turbo 2.1.5", "oneTBB 2021.8", ...: what reads the data, for `info` and
/// environment.json.
std::vector<std::string> data_libraries();

/// 64 hexadecimal digits, by libmd. Error(data) where the file cannot be read.
std::string sha256_of(const std::filesystem::path&);

}  // namespace cputrain::datasets

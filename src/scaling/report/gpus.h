#pragma once

#include <string>
#include <vector>

#include "scaling/report/scaling_table.h"

/// GPUs beside CPUs that do the same work.
namespace cputrain::report {

/// Gives every series of devices the series of CPUs that it is compared with, and its cells what
/// follows from both. Those have the same model, image size, images and data, and both are of runs
/// or both are forecasts, whose data may differ; of several the one of the same machine and with
/// most flags alike.
void set_beside_cpus(std::vector<Series>&);

/// "NVIDIA H100 80GB HBM3"; what the backend is called where the name is not known.
std::string device_text(const Series&);

/// "63.1", "more than 96", "fewer than 1".
std::string cpu_count_text(const cells::CpuCount&);
/// "58.2 to 70.1"; empty where the repeats are too few.
std::string cpu_range_text(const cells::EqualCpus&);

/// For each series of devices that stands beside CPUs: "One NVIDIA H100 80GB HBM3 (cuda tf32) is as
/// quick as 63.1 CPUs of cpu at batch 128 (58.2 to 70.1), more than 96 at batch 1024; ranges are
/// those of the repeats; scaled.", of the fewest GPUs.
std::vector<std::string> equal_sentences(const ScalingTable&);

}  // namespace cputrain::report

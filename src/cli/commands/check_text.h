#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/check_report.h"
#include "data/exif.h"

/// What `data check` and `data info` find, for people and for programs.
namespace cputrain::commands {

using ClassCount = data::CheckReport::ClassCount;

nlohmann::ordered_json classes_json(const std::vector<ClassCount>&);
std::vector<std::vector<std::string>> names_alike(const std::vector<ClassCount>&);
void print_classes(const std::vector<ClassCount>&);

nlohmann::ordered_json check_json(const data::CheckReport&);
void print_check(const data::CheckReport&, data::Exif);

}  // namespace cputrain::commands

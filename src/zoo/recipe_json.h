#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/json_fields.h"
#include "zoo/zoo.h"

namespace cputrain::zoo {

/// A recipe from a model file; what is left out has the defaults of src/zoo/README.md. `source` is
/// where it comes from, for people. Error(data).
Recipe read_recipe(const JsonFields&, const std::string& source);

/// The inverse; figures that are the rule's or the recipe's defaults are left out.
nlohmann::ordered_json recipe_json(const Recipe&);

}  // namespace cputrain::zoo

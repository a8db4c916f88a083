#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace cputrain::data {

/// What keeps names of classes from being kept in weight files, ONNX, packed files and JSON, as a
/// clause such as "is empty"; empty where nothing does. Any text of UTF-8 will do, tabs, line ends
/// and quotes included, but for an empty one, a zero byte, more than 1000 bytes, a name twice, and
/// more than 8 MiB in all.
std::string class_names_mistake(std::span<const std::string> names);

/// Error(data) with that and the name of the data, before anything is trained with it.
void check_class_names(const std::string& data, std::span<const std::string> names);

/// "class 2" for a label that has no name, and differs from the names.
std::string name_of_nameless(std::span<const std::string> names, std::size_t label);

/// Whether that gives such a name, whatever the others are: "class 2", "class 2 (no name)", ...
bool is_name_of_nameless(std::string_view name, std::size_t label);
/// Whether all of them are such names, each that of its own place.
bool are_names_of_nameless(std::span<const std::string> names);

/// "2 of 20 classes (c07, c12)": those of which no sample is among these, the first few by name;
/// classes without any image are not counted. Empty where there are none.
std::string missing_classes(const DataSource&, std::span<const std::uint32_t> samples);

/// Gives the data these classes, in this order: labels are translated by name. It may lack some of
/// the classes. A class whose name looks like one of them alone is taken for it, with a warning.
/// Classes that have made-up names (name_of_nameless) and are as many as the data's, none of which
/// has such a name, are the data's in its order and take its names, with a warning.
/// Error(data) names those of its own that are not among them; one that no sample has does not
/// count.
void give_classes(DataSource&, std::vector<std::string> classes);

}  // namespace cputrain::data

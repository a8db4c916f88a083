#pragma once

#include <string>
#include <vector>

#include "sweep/cells.h"

/// What limits a cell, and what a table says as a whole, in words with their numbers.
namespace cputrain {

/// From the cell's budget and the limits measured beside it. The largest of waiting for input,
/// communication that backward did not hide and waiting for other ranks, where it is a tenth of the
/// epoch or more. Else `memory bandwidth`, where weights and gradients of `parameters` numbers
/// alone need a quarter of a step to come from memory and go back; else `compute`. Where the host
/// of a virtual machine took a twentieth of a rank's CPU time or more, that is added. Empty
/// without figures.
CellLimits explain(const Cell&, double parameters);

/// Sentences about the table, of every backend: the batch per rank below which more ranks stop
/// paying (those added bring less than half of what they should), for each number of threads; and
/// the split of CPUs into ranks and threads that was quickest. Empty where the table cannot say.
std::vector<std::string> remarks(const CellTable&);

}  // namespace cputrain

#pragma once

#include <string>

namespace cputrain::emulated {

/// "convolution.cu:84" for a return address in code of this program or of a library that it has
/// loaded; where addr2line cannot say, the module and the offset in it.
std::string source_line(const void* return_address);

/// Whether an address is in a part of the program, or of a library, that cannot be written.
bool is_constant_of_program(const void*);

}  // namespace cputrain::emulated

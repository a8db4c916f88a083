#include "core/tell.h"

#include <cstdio>
#include <string>

namespace cputrain {

void tell(std::string_view line) { std::fputs((std::string(line) + "\n").c_str(), stderr); }

}  // namespace cputrain

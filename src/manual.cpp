// cputrain_manual DIR: writes manual pages and completions of the program cputrain into a folder.

#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "cli/help_text.h"
#include "cli/manual/manual_files.h"
#include "composition/program.h"
#include "system/print.h"

namespace {

void write_manual(const std::filesystem::path& folder) {
  const auto choices = cputrain::composition::command_line_choices();
  for (const auto& [name, text] :
       cputrain::cli::manual_files(cputrain::cli::command_reference(choices))) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out << text << std::flush;
    if (!out) throw std::runtime_error(path.string() + " cannot be written");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    cputrain::system::tell("usage: cputrain_manual DIR");
    return 2;
  }
  try {
    write_manual(argv[1]);
  } catch (const std::exception& error) {
    cputrain::system::tell(std::string("cputrain_manual: ") + error.what());
    return 1;
  }
  return 0;
}

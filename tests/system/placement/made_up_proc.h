#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "system/placement/launcher.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::placement {

/// A folder that looks like /proc; proc(5) has the fields of `stat` and the words of `cmdline`.
class MadeUpProc {
 public:
  void add(pid_t id, pid_t parent, const std::string& name, char state = 'S') {
    const auto folder = folder_.path() / std::to_string(id);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "stat")
        << id << " (" << name << ") " << state << ' ' << parent
        << " 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 " << start_of(id) << " 23 24\n";
  }
  void say(pid_t id, const std::vector<std::string>& command) {
    std::ofstream file(folder_.path() / std::to_string(id) / "cmdline", std::ios::binary);
    for (const std::string& word : command) file << word << '\0';
  }
  void remove(pid_t id) { std::filesystem::remove_all(folder_.path() / std::to_string(id)); }
  static std::uint64_t start_of(pid_t id) { return 1000 + static_cast<std::uint64_t>(id); }
  static ProcessIdentity identity(pid_t id) { return {id, start_of(id)}; }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  testing::TemporaryFolder folder_;
};

}  // namespace cputrain::placement

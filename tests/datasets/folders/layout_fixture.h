#pragma once

#include <filesystem>
#include <string>

#include "tests/datasets/open_fixture.h"

namespace cputrain::datasets {

/// A folder in which class folders and parts of a split are laid out.
class Layout : public OpenTest {
 protected:
  void clear() {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::filesystem::remove_all(entry.path());
    }
  }
  /// Two class folders with one image each.
  void add_part(const std::string& name) { add(name + "/cat/1.png"), add(name + "/dog/1.png"); }
};

}  // namespace cputrain::datasets

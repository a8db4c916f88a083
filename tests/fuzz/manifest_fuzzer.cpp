#include <fmt/format.h>

#include <set>

#include "checkpoint/manifest.h"
#include "core/error.h"
#include "core/hash.h"
#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing::manifest_fuzzer {
namespace {

bool parsed(const std::string& text) {
  std::vector<checkpoint::ManifestFile> files;
  try {
    files = checkpoint::parse_manifest(text);
  } catch (const Error& error) {
    promise(error.code() == ExitCode::data, "a text is data");
    promise(*error.what() != '\0', "a refusal says why");
    return false;
  }
  std::set<std::string> names;
  for (const auto& file : files) {
    promise(checkpoint::is_manifest_name(file.name), "names are plain");
    promise(names.insert(file.name).second, "names are unique");
  }
  promise(files.size() <= checkpoint::kMostFiles, "files are few");
  promise(checkpoint::manifest_text(files) == text, "a list has one text only");
  return true;
}

std::vector<std::string> seeds() {
  return {checkpoint::manifest_text({}),
          checkpoint::manifest_text(std::vector<checkpoint::ManifestFile>{
              {"model.safetensors", 52871940, 0x0f3a99c2},
              {"optimizer.safetensors", 105743880, 0xffffffff},
              {"state.json", 0, 0}})};
}

/// As it is, and with the checksum that it should have: no mutation would hit that.
bool takes(const std::string& text) {
  constexpr std::size_t kLastLine = 18;
  const bool taken = parsed(text);
  const std::string lines = text.substr(0, text.size() - std::min(text.size(), kLastLine));
  parsed(lines + fmt::format("checksum {:08x}\n", crc32c(lines)));
  parsed(text + fmt::format("checksum {:08x}\n", crc32c(text)));
  return taken;
}

const Fuzzer kFuzzer{"manifest", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::manifest_fuzzer

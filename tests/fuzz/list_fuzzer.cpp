#include <algorithm>

#include "core/error.h"
#include "datasets/lists/list_file.h"
#include "datasets/lists/list_table.h"
#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing::list_fuzzer {
namespace {

/// By commas, or by tabs.
bool parsed(const std::string& text, const std::string& name) {
  datasets::ListContent list;
  try {
    list = datasets::read_list_text(datasets::pieces_of(text, 1 + text.size() % 32), name);
  } catch (const Error& error) {
    promise(error.code() == ExitCode::data, "a text is data");
    promise(std::string(error.what()).find(name) != std::string::npos, "a refusal names the file");
    return false;
  }
  promise(list.parts.empty() || list.parts.size() == list.files.size(), "a part for each image");
  promise(std::ranges::none_of(list.parts, [](auto p) { return p == datasets::Part::none; }),
          "parts have names");
  for (std::size_t i = 0; i < list.files.size(); ++i) {
    const std::string_view path = list.files.path(i);
    promise(!path.empty() && !list.files.label(i).empty(), "an image has a path and a class");
    promise(path.size() <= datasets::kMaxCellBytes, "fields are short");
    promise(path.find('\0') == std::string_view::npos, "paths are names");
  }
  return !list.files.empty();
}

std::vector<std::string> seeds() {
  return {"a.png,cat\nb.png,dog\n",
          "filename;width;label\r\n\"a;\"\"b\"\".png\";7;cat\r\nb.png;8;dog\r\n",
          "# made by hand\npath,label,split\na.png,cat,train\nb.png,dog,val\nc.png,cat,test\n",
          "\xEF\xBB\xBFpath,label,is_train,set\na.png,\"two\nlines\",1,train\nb.png,d,1,valid\n"};
}

bool takes(const std::string& text) {
  const bool taken = parsed(text, "no such folder/list.csv");
  parsed(text, "no such folder/list.tsv");
  return taken;
}

const Fuzzer kFuzzer{"list", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::list_fuzzer

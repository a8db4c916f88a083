#include <algorithm>

#include "datasets/lists/annotation_tables.h"
#include "datasets/lists/annotations.h"
#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing::annotations_fuzzer {
namespace {

bool parsed(const std::string& text, datasets::LabelBy by) {
  datasets::Annotations annotations;
  try {
    annotations = datasets::parse_annotations(datasets::pieces_of(text, 1 + text.size() % 32), by);
  } catch (const datasets::WrongAnnotations& wrong) {
    promise(!wrong.problem.empty(), "a refusal says why");
    return false;
  }
  promise(std::ranges::is_sorted(annotations.categories), "names are sorted");
  for (std::size_t i = 0; i < annotations.files.size(); ++i) {
    const std::string path(annotations.files.path(i));
    promise(std::ranges::binary_search(annotations.categories, annotations.files.label(i)),
            "labels are names");
    promise(!path.empty() && path.front() != '/', "paths stay below the folder");
    promise(("/" + path + "/").find("/../") == std::string::npos, "paths do not lead upwards");
  }
  return true;
}

std::vector<std::string> seeds() {
  return {
      R"({"images":[{"id":1,"file_name":"a/1.jpg"},{"id":2,"file_name":"2.jpg"}],)"
      R"("categories":[{"id":7,"name":"cat","supercategory":"animal"}],)"
      R"("annotations":[{"image_id":1,"category_id":7,"bbox":[1,2.5,-3e2,4]}]})",
      R"({"info":{"year":2017,"x":[null,true,"\u00e9\"\\"]},"categories":[],"images":[]})",
      R"({"annotations":[{"segmentation":{"counts":"aXb","size":[2,3]},"category_id":1,"image_id":1}],)"
      R"("images":[{"file_name":"b.png","id":1}],"categories":[{"name":"dog","id":1}]})"};
}

bool takes(const std::string& text) {
  parsed(text, datasets::LabelBy::super_category);
  return parsed(text, datasets::LabelBy::category);
}

const Fuzzer kFuzzer{"annotations", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::annotations_fuzzer

#include "tests/fuzz/fuzzer.h"
#include "tests/weights/made_torch.h"
#include "weights/formats/tensor_file.h"

namespace cputrain::testing::torch_fuzzer {
namespace {

const std::vector<MadeTensor> kTensors{
    {.name = "a.weight"},
    {.name = "a.bias", .offset = 1, .extents = {3}, .strides = {2}},
    {.name = "n", .kind = "LongStorage", .stored = 3, .extents = {}, .strides = {}}};

const std::string kNumbers(24, '\x3f');

/// Within another dict, as a checkpoint has it, with flags beside it.
std::string checkpoint() {
  const std::string state = pickled_state(kTensors);
  const std::string flags =
      pickled_global("argparse", "Namespace") + ")\x81}" + pickled_text("lr") + "K\x01sb";
  return kProtocol + "}" + pickled_text("model") + state.substr(2, state.size() - 3) + "s" +
         pickled_text("args") + flags + "s" + kStop;
}

std::vector<std::string> seeds() {
  const std::vector<MadeTensor> floats(kTensors.begin(), kTensors.begin() + 2);
  // Without checksums, which would refuse nearly all that is changed.
  return {torch_archive(pickled_state(kTensors), kNumbers, false),
          torch_archive(checkpoint(), kNumbers, false),
          torch_pickles(pickled_state(floats, true), 6, kNumbers)};
}

bool takes(const std::string& text) {
  const auto path = own_file("w.pth", text);
  return is_taken([&] {
    const weights::TensorFile file = weights::open_torch_file(path);
    promise(!file.tensors().empty(), "a file that is taken has arrays");
    for (const auto& tensor : file.tensors()) {
      promise(tensor.begin <= tensor.end && tensor.end <= text.size(), "arrays lie in the file");
      promise(tensor.count() <= text.size(), "an array has no more numbers than the file");
      promise(file.find(tensor.name) == &tensor, "arrays are found by their names");
      is_taken([&] {
        promise(file.read(tensor).size() == tensor.count(), "all numbers are read");
        promise(file.read_floats(tensor).size() == tensor.count(), "all numbers are read");
      });
    }
  });
}

const Fuzzer kFuzzer{"torch", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::torch_fuzzer

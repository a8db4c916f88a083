#include "tests/fuzz/datasets_seen.h"

namespace cputrain::testing::cifar_fuzzer {
namespace {

constexpr std::size_t kPixels = 3072;

/// Whether a folder with a good file of `labels` bytes a record takes the text as another one.
bool is_cifar(const std::string& word, const std::string& good, std::size_t labels,
              const std::string& name, const std::string& text) {
  const std::filesystem::path folder = word + "-" + name;
  own_file(folder / good, std::string(labels + kPixels, '\5'));
  own_file(folder / name, text);
  return is_data(word + ":" + (own_folder() / folder).string());
}

/// Two records, and names of classes.
std::vector<std::string> seeds() {
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += "class " + std::to_string(i) + "\n";
  return {std::string(2 * (1 + kPixels), '\7'), std::string(2 * (2 + kPixels), '\7'),
          "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", hundred};
}

bool takes(const std::string& text) {
  bool taken = is_cifar("cifar10", "data_batch_1.bin", 1, "data_batch_2.bin", text);
  taken |= is_cifar("cifar10", "data_batch_1.bin", 1, "batches.meta.txt", text);
  taken |= is_cifar("cifar100", "train.bin", 2, "test.bin", text);
  return is_cifar("cifar100", "train.bin", 2, "fine_label_names.txt", text) || taken;
}

const Fuzzer kFuzzer{"cifar", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::cifar_fuzzer

// Data sets that are not one file an image: IDX, CIFAR, packed, synthetic.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "datasets/folders/found.h"
#include "datasets/formats/cifar.h"
#include "datasets/formats/idx.h"
#include "datasets/formats/packed.h"
#include "datasets/formats/synthetic.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDefaultSynthetic = 25'000;  // the size of Dogs vs Cats

void check_folder(const std::string& spec, const std::string& folder) {
  std::error_code ignored;  // what cannot be looked into is not there for us
  if (fs::is_directory(folder, ignored)) return;
  fail(ExitCode::data, fmt::format("folder '{}' does not exist ({} needs the folder of the set's "
                                   "files); check the path",
                                   folder, spec));
}

/// Samples [0, train) and the rest.
Found divided(std::unique_ptr<data::Dataset> dataset, std::size_t train,
              std::string validation_name) {
  Found found;
  found.things = "images";
  found.train = indices(0, train);
  found.validation = indices(train, dataset->size());
  if (!found.validation.empty()) found.validation_name = std::move(validation_name);
  found.dataset = std::move(dataset);
  return found;
}

}  // namespace

Found find_idx(const std::string& folder) {
  check_folder("idx:", folder);
  IdxData idx = open_idx(folder);
  Found found = divided(std::move(idx.dataset), idx.train, "its t10k files");
  found.containers = std::move(idx.paths);
  return found;
}

Found find_cifar(const std::string& spec) {
  const Cifar cifar = spec.starts_with("cifar10:") ? Cifar::ten : Cifar::hundred;
  const std::string folder = spec.substr(spec.find(':') + 1);
  check_folder(spec.substr(0, spec.find(':') + 1), folder);
  CifarData data = open_cifar(cifar, folder);
  Found found = divided(std::move(data.dataset), data.train, "its test file");
  found.remark = std::move(data.remark);
  found.containers = std::move(data.paths);
  return found;
}

Found find_packed(const std::string& path) {
  PackedData data = open_packed(path);
  Found found;
  found.things = "packed images";
  found.train = std::move(data.train);
  found.validation = std::move(data.validation);
  found.test = std::move(data.test);
  if (!found.validation.empty()) found.validation_name = "as packed";
  if (!found.test.empty()) found.test_name = "as packed";
  found.dataset = std::move(data.dataset);
  return found;
}

Found find_synthetic(const std::string& spec, std::uint64_t seed) {
  std::size_t count = kDefaultSynthetic;
  if (spec != "synthetic") {
    const std::string_view digits = std::string_view(spec).substr(spec.find(':') + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc() || end != digits.data() + digits.size() || count < 2 ||
        count > 0xFFFFFFFFu) {
      fail(ExitCode::usage, "--data " + spec + ": '" + std::string(digits) +
                                "' is not a number of images (2 to 4294967295); try "
                                "--data synthetic:2000");
    }
  }
  Found found;
  found.train = indices(0, count);
  found.things = "synthetic images";
  found.dataset = make_synthetic_dataset(count, seed);
  return found;
}

}  // namespace cputrain::datasets

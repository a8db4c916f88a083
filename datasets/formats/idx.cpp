#include "datasets/formats/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/casts.h"
#include "core/error.h"
#include "datasets/decode/limits.h"
#include "datasets/formats/idx_file.h"
#include "datasets/formats/stored_images.h"

namespace cputrain::datasets {
namespace {

/// Images and labels of one part.
struct IdxPart {
  std::string images_path, labels_path, images_name;
  int height = 0, width = 0;
  std::vector<std::uint8_t> pixels, labels;

  const std::string& name() const { return images_name; }
  std::size_t count() const { return labels.size(); }
  int label(std::size_t index) const { return labels[index]; }
  std::span<const std::uint8_t> stored(std::size_t index) const {
    const std::size_t bytes = to_size(height) * to_size(width);
    return std::span(pixels).subspan(index * bytes, bytes);
  }
  Image image(std::size_t index) const {
    const auto grey = stored(index);
    Image image{width, height, {}};
    image.rgb.reserve(grey.size() * 3);
    for (const std::uint8_t value : grey) image.rgb.insert(image.rgb.end(), 3, value);
    return image;
  }
  void add_to(ContentHash& hash) const {
    hash.add(count()).add(static_cast<std::uint64_t>(height) << 32 |
                          static_cast<std::uint64_t>(width));
    for (const auto* bytes : {&labels, &pixels}) {
      hash.add(std::uint64_t{crc32_z(0, bytes->data(), bytes->size())});
    }
  }
};

/// The path of "train-images-idx3-ubyte" with the endings it is found with; empty when absent.
std::string find_file(const std::string& folder, const std::string& stem, const std::string& kind) {
  for (const char* separator : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      std::string path = fmt::format("{}/{}{}{}{}", folder, stem, separator, kind, ending);
      std::error_code missing;
      if (std::filesystem::exists(path, missing)) return path;
    }
  }
  return {};
}

[[noreturn]] void fail_absent(const std::string& folder, const std::string& name) {
  fail(ExitCode::data, "'" + folder + "' holds no " + name +
                           "[.gz] (idx: reads MNIST's four files);"
                           " name the folder that holds them");
}

IdxPart read_part(const std::string& folder, const std::string& part) {
  const std::string path = find_file(folder, part + "-images", "idx3-ubyte");
  const std::string labels = find_file(folder, part + "-labels", "idx1-ubyte");
  if (path.empty()) fail_absent(folder, part + "-images-idx3-ubyte");
  if (labels.empty()) fail_absent(folder, part + "-labels-idx1-ubyte");
  IdxArray images = read_idx(path, 3), numbers = read_idx(labels, 1);
  if (images.extents[0] != numbers.extents[0]) {
    fail(ExitCode::data, "'" + path + "' holds " + std::to_string(images.extents[0]) +
                             " images but '" + labels + "' " + std::to_string(numbers.extents[0]) +
                             " labels (each image needs one); fetch both files again");
  }
  const auto height = static_cast<std::int64_t>(images.extents[1]);
  const auto width = static_cast<std::int64_t>(images.extents[2]);
  if (images.extents[0] > kMaxFiles || height < 1 || width < 1 || exceeds_limits(width, height)) {
    fail(ExitCode::data, "'" + path + "': " + std::to_string(images.extents[0]) + " images of " +
                             std::to_string(width) + "x" + std::to_string(height) +
                             " are not possible (sides must be 1 to " + std::to_string(kMaxSide) +
                             "); fetch it again");
  }
  return {path,
          labels,
          std::filesystem::path(path).filename().string(),
          to_int(height),
          to_int(width),
          std::move(images.values),
          std::move(numbers.values)};
}

/// CRC-32 of the labels alone, gzip aside: of Zalando's files, as Debian's package has them.
bool is_fashion_mnist(const IdxPart& train) {
  return train.count() == 60000 &&
         crc32(0, train.labels.data(), static_cast<uInt>(train.labels.size())) == 0x2ED6E46A;
}

std::vector<std::string> class_names(const std::vector<IdxPart>& parts) {
  if (is_fashion_mnist(parts[0])) {
    return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
            "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  }
  int largest = 0;
  for (const IdxPart& part : parts) {
    for (const int label : part.labels) largest = std::max(largest, label);
  }
  std::vector<std::string> names;
  for (int label = 0; label <= largest; ++label) names.push_back(std::to_string(label));
  return names;
}

}  // namespace

IdxData open_idx(const std::string& folder) {
  std::vector<IdxPart> parts{read_part(folder, "train")};
  const bool has_test = !find_file(folder, "t10k-images", "idx3-ubyte").empty() ||
                        !find_file(folder, "t10k-labels", "idx1-ubyte").empty();
  if (has_test) parts.push_back(read_part(folder, "t10k"));
  const std::size_t train = parts[0].count();
  if (train == 0) {
    fail(ExitCode::data, "'" + folder +
                             "' holds no images: the training part is empty (there is "
                             "nothing to train on); fetch the files again");
  }
  std::vector<std::string> paths;
  for (const IdxPart& part : parts) {
    paths.insert(paths.end(), {part.images_path, part.labels_path});
  }
  std::vector<std::string> classes = class_names(parts);
  return {std::make_unique<StoredImages<IdxPart>>(std::move(parts), std::move(classes)), train,
          has_test, std::move(paths)};
}

}  // namespace cputrain::datasets

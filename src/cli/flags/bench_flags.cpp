#include "cli/flags/bench_flags.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/flags/flag_groups.h"
#include "core/error.h"
#include "core/text.h"
#include "job/spec/training_rows.h"

namespace cputrain::cli {

/// `bench allreduce` needs no model and no data.
void add_allreduce_flags(Flags& f, Config& c, const CommandLineChoices& choices) {
  f.group("Measurement");
  f.whole("bytes", c.bytes, 4, std::int64_t{1} << 40,
          "bytes of each rank's gradient [52871940: the paper's network]");
  f.whole("repeat", c.repeat, 1, 1000, "measured sums of each algorithm [5]");
  add_processor_flags(f, c, choices);
  add_stall_flags(f, c);
  f.group("Output");
  f.text("json", c.json, "FILE",
         "write the result as JSON (-: to standard output, and nothing else there)");
}

/// `bench input` needs photographs and no model.
void add_input_bench_flags(Flags& f, Config& c, const CommandLineChoices& choices) {
  f.group("Data");
  add_row(f, c, "data", "a folder of class folders or of cat.N.jpg files, or a list file");
  add_row(f, c, "validation-split", "part left out where the data has no validation part [0.1]");
  add_row(f, c, "limit-train", "take N training images [256]");
  add_row(f, c, "allow-empty-classes", "go on where no image of a class can be read [an error]");
  add_row(f, c, "image-size", "width and height to which images are resized [256]");
  add_row(f, c, "resize");
  add_exif_flag(f, c);
  std::string augment = job::training_row("augment").help;
  augment.replace(augment.rfind('['), std::string::npos, "[flip]");
  add_row(f, c, "augment", augment);
  add_row(f, c, "micro-batch", "images of each batch that is made from the cache [32]");
  add_row(f, c, "seed", "number that decides choice of images, order and augmentation [0]");
  f.group("Measurement");
  f.whole("repeat", c.repeat, 1, 1000, "measured rounds [5]");
  add_processor_flags(f, c, choices);
  add_row(f, c, "io-threads", "threads that decode and change images [as --threads]");
  f.group("Output");
  f.text("json", c.json, "FILE",
         "write the result as JSON (-: to standard output, and nothing else there)");
}

namespace {

/// "1,2,4"
std::vector<int> parse_micro_batches(const std::string& text) {
  constexpr int kMost = 65536;
  std::vector<int> sizes;
  for (const std::string& word : split(text, ',')) {
    int images = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, images);
    if (error != std::errc{} || stop != end || images < 1 || images > kMost) {
      fail(ExitCode::usage,
           fmt::format("--micro-batch {}: must be whole numbers from 1 to {} with one comma "
                       "between each two, such as 1,8,32",
                       text, kMost));
    }
    sizes.push_back(images);
  }
  return sizes;
}

}  // namespace

/// `bench kernels` updates nothing, so it has no rule and no rate.
void add_kernel_bench_flags(Flags& f, Config& c, const CommandLineChoices& choices) {
  add_model_flags(f, c);
  add_weights_flags(f, c);
  add_data_flags(f, c);
  f.group("Measurement");
  f.parsed("micro-batch", "N,...",
           "images computed at once, one size after the other [1,2,4,8,11,32]",
           [&c](const std::string& text) { c.micro_batches = parse_micro_batches(text); });
  f.whole("batch", c.batch, 1, 65536,
          "images of a measured round, rounded up to whole micro-batches [32]");
  f.whole("repeat", c.repeat, 1, 1000, "measured rounds [5]");
  add_processor_flags(f, c, choices);
  add_row(f, c, "io-threads", "threads that decode images [as --threads]");
  add_backend_options(f, c, choices);
  f.group("Output");
  f.text("json", c.json, "FILE",
         "write the result as JSON (-: to standard output, and nothing else there)");
}

void add_selftest_flags(Flags& f, Config& c, const CommandLineChoices& choices) {
  add_processor_flags(f, c, choices, "all that the backend has");
  add_row(f, c, "seed", "number that decides the sizes and numbers of all cases [0]");
  f.group("Output");
  f.text("json", c.json, "FILE",
         "write the result as JSON (-: to standard output, and nothing else there)");
}

}  // namespace cputrain::cli

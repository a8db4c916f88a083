#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/node.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"
#include "data/check_report.h"
#include "data/dataset.h"

/// The data side as the commands see it; `datasets/` implements it.
namespace cputrain {

/// Which samples a command wants.
struct DataRequest {
  std::string spec;                          ///< --data: folder, list file, idx:DIR, synthetic[:N]
  double validation_split = 0.1;             ///< where the data has no part of its own for it
  std::uint64_t seed = 0;                    ///< chooses the split and what the limits keep
  std::optional<std::size_t> limit_train{};  ///< at most so many; chosen by seed
  std::optional<std::size_t> limit_validation{};
};

enum class Augment { none, flip, six };

struct BadSample {
  std::string name;
  ReadResult result;
};

/// Everything decoded to one size, once a node.
struct DecodedData {
  ImageSet train, validation;
  std::vector<BadSample> bad;           ///< left out, the same on every rank
  std::size_t warnings = 0;             ///< decoded although the decoder complained
  std::unique_ptr<SharedBlock> memory;  ///< what the sets point into
  double seconds = 0;
};

/// How far a long task has come; called at least every second, on the caller's thread.
using Progress = std::function<void(std::size_t done, std::size_t total)>;

struct DecodeRequest {
  Shape image;
  int threads = 1;
  Progress progress;
};

struct BatchRequest {
  std::uint64_t seed = 0;
  bool shuffle = true;  ///< false: in the data's own order (evaluation)
  Augment augment = Augment::none;
  int threads = 1;
};

struct DataPipeline {
  /// Lists the samples without decoding any. Throws Error(data).
  std::function<DataSource(const DataRequest&)> open;
  /// Collective over the node's ranks. Throws Error(data) where nothing usable is left.
  std::function<DecodedData(const DataSource&, const DecodeRequest&, NodeMemory&, NodeBarrier&)>
      decode;
  /// The set must outlive the source.
  std::function<std::unique_ptr<BatchSource>(const ImageSet&, const BatchPlan&,
                                             const BatchRequest&)>
      batches;
  /// Reads one picture file for `predict`.
  std::function<ReadResult(const std::string& path, Shape image, std::span<std::uint8_t> dst)>
      read_image;
  /// Paths of all pictures (by their names) below a folder, sorted; links and hidden files stay
  /// out.
  std::function<std::vector<std::string>(const std::string& folder)> list_pictures;
  /// Decodes every sample on `threads` threads and reports what is wrong with the data.
  std::function<CheckReport(const DataSource&, int threads, const Progress&)> check;
};

}  // namespace cputrain

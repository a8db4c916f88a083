#include "checkpoint/own_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::checkpoint {
namespace {

using weights::safetensors::OutTensor;

constexpr const char *kOwnImages = "own_images", *kStatistics = "statistics", *kLayout = "layout";
constexpr std::string_view kFactors = "factors/";

bool learnt_parameters(const compute::Parameter& parameter) { return parameter.learnt; }
bool averaged_parameters(const compute::Parameter& parameter) { return parameter.averaged; }

std::string unsent_name(std::size_t k) { return fmt::format("unsent/{}", k); }

std::string factors_name(Range range) {
  return fmt::format("{}{}-{}", kFactors, range.begin, range.end);
}

/// The range of a tensor of factors; nothing where the name is another one.
std::optional<Range> factors_range(const std::string& name) {
  if (!name.starts_with(kFactors)) return std::nullopt;
  const std::vector<std::string> ends = split(name.substr(kFactors.size()), '-');
  if (ends.size() != 2) return std::nullopt;
  const auto begin = number_in<std::size_t>(ends[0]), end = number_in<std::size_t>(ends[1]);
  return begin && end && *begin < *end ? std::optional(Range{*begin, *end}) : std::nullopt;
}

/// Whether a rank owns all of a range.
bool holds(std::span<const Range> owned, Range range) {
  return std::ranges::any_of(
      owned, [&](const Range& own) { return own.begin <= range.begin && range.end <= own.end; });
}

template <class T>
std::vector<std::byte> copied_bytes(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Numbers of an array's type, as bytes.
std::vector<std::byte> bytes_of(const std::vector<double>& numbers, DType dtype) {
  return dtype == DType::f64 ? copied_bytes(numbers)
                             : copied_bytes(std::vector<float>(numbers.begin(), numbers.end()));
}

Array array_in(std::vector<std::byte>& bytes, DType dtype) {
  return {bytes.data(), bytes.size() / size_of(dtype), dtype};
}

/// The way back from numbers_of(); padding becomes zero.
void put_numbers(const compute::Program& program, std::span<const double> numbers,
                 const Array& arena, const Chosen& chosen) {
  const auto& parameters = program.layout().parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!chosen(parameters[p])) continue;
    program.parameters().from_canonical(p, numbers.first(parameters[p].count), arena);
    numbers = numbers.subspan(parameters[p].count);
  }
  assert(numbers.empty());
}

/// One tensor of these extents, whose numbers are made when its turn comes.
OutTensor tensor_of(std::string name, std::vector<std::size_t> extents, DType dtype,
                    std::function<std::vector<double>()> numbers) {
  OutTensor tensor{std::move(name), std::move(extents), {}};
  if (dtype == DType::f64) {
    tensor.doubles = std::move(numbers);
  } else {
    tensor.values = [numbers = std::move(numbers)] {
      const std::vector<double> doubles = numbers();
      return std::vector<float>(doubles.begin(), doubles.end());
    };
  }
  return tensor;
}

}  // namespace

OwnParts::OwnParts(loop::Parts& training)
    : training_(training),
      memory_(training.memory()),
      kept_(training.exchange.kept_parts()),
      owners_(training.communicator, training.exchange.owned()),
      peers_(training.communicator.make_point_to_point()) {}

SnapshotBytes OwnParts::bytes(const loop::RankProgram& training, int nodes) {
  const compute::Program& program = training.program;
  const compute::ParameterLayout& layout = program.layout();
  const auto ranks = static_cast<std::size_t>(training.communicator.size());
  SnapshotBytes bytes{.host = ranks * count_of(program, averaged_parameters) * sizeof(double)};
  if (!training.exchange.kept_parts()) return bytes;
  std::size_t owned = 0;
  for (const Range& range : training.exchange.owned()) owned += range.size();
  const std::size_t owners =
      owned == layout.gradient_size ? ranks : static_cast<std::size_t>(nodes);
  const std::size_t arena = layout.gradient_size * size_of(layout.dtype);
  bytes.host += (owners + 1) * arena;  // one of them is put in order while it is written
  if (!training.memory().is_host()) bytes.arrays = arena;
  return bytes;
}

void OwnParts::allocate() {
  if (!kept_ || !unsent_.empty()) return;
  const compute::ParameterLayout& layout = training_.program.layout();
  for (int k = 0; k < owners_.owners(); ++k) {
    unsent_.emplace_back(compute::host_memory(), layout.gradient_size, layout.dtype);
  }
  if (!memory_.is_host()) {
    staged_ = compute::OwnedArray(memory_, layout.gradient_size, layout.dtype);
  }
  layout_ = this->layout();
}

/// The layout of arenas, and which rank owns what of them.
std::string OwnParts::layout() const {
  return fmt::format("{:016x} {:016x}", compute::layout_fingerprint(training_.program, memory_),
                     owners_.hash());
}

double OwnParts::all_images() const {
  return std::accumulate(own_images_.begin(), own_images_.end(), 0.0);
}

/// What this rank has not sent, of what it owns.
std::vector<compute::ArenaPart> OwnParts::unsent_parts() const {
  const Array all = kept_->unsent();
  std::vector<compute::ArenaPart> parts;
  for (const Range& own : training_.exchange.owned()) {
    parts.push_back({own, all.slice(own.begin, own.end)});
  }
  return parts;
}

void OwnParts::take(double own_images, const Array& weights) {
  own_images_ = comm::gather_values(training_.communicator, own_images);
  take_statistics(weights);
  if (!kept_) return;
  const std::vector<compute::ArenaPart> mine = unsent_parts();
  for (int k = 0; k < owners_.owners(); ++k) {
    owners_.gather(k, mine, compute::host_memory(),
                   training_.leads() ? unsent_[static_cast<std::size_t>(k)].array() : Array{});
  }
  take_factors();
}

/// Where no rank has trained on images since they were averaged, all have the same ones.
void OwnParts::take_statistics(const Array& weights) {
  statistics_.clear();
  const compute::Program& program = training_.program;
  const double images = all_images();
  if (images == 0 || count_of(program, averaged_parameters) == 0) return;
  std::vector<double> mine =
      numbers_of(program, training_.exchange.arenas().weights, averaged_parameters);
  if (!training_.leads()) return peers_->send(0, std::as_bytes(std::span(mine)));
  std::vector<double> mean(mine.size());
  for (int rank = 0; rank < training_.communicator.size(); ++rank) {
    std::vector<double>& theirs = statistics_.emplace_back(mine);
    if (rank > 0) peers_->receive(rank, std::as_writable_bytes(std::span(theirs)));
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] += theirs[i] * own_images_[static_cast<std::size_t>(rank)];
    }
  }
  for (double& sum : mean) sum /= images;
  put_numbers(program, mean, weights, averaged_parameters);
}

void OwnParts::send(int to, std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  peers_->send(to, std::as_bytes(std::span(&size, 1)));
  peers_->send(to, bytes);
}

std::vector<std::byte> OwnParts::receive(int from) {
  std::uint64_t size = 0;
  peers_->receive(from, std::as_writable_bytes(std::span(&size, 1)));
  std::vector<std::byte> bytes(size);
  peers_->receive(from, bytes);
  return bytes;
}

/// Each range's are those of its first owner, since all of them have the same.
void OwnParts::take_factors() {
  std::vector<Factors> mine;
  for (const compute::ArenaPart& part : kept_->factors()) {
    if (part.values.size == 0) continue;
    if (owners_.first_owner(part.range.begin) != training_.communicator.rank()) continue;
    const auto bytes = part.values.bytes();
    mine.push_back({part.range, {bytes.begin(), bytes.end()}});
  }
  std::vector<Range> ranges;
  for (const Factors& factors : mine) ranges.push_back(factors.range);
  if (!training_.leads()) {
    send(0, std::as_bytes(std::span(ranges)));
    for (const Factors& factors : mine) send(0, factors.bytes);
    return;
  }
  factors_ = std::move(mine);
  for (int rank = 1; rank < training_.communicator.size(); ++rank) {
    const std::vector<std::byte> bytes = receive(rank);
    std::vector<Range> theirs(bytes.size() / sizeof(Range));
    if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), bytes.size());
    for (const Range& range : theirs) factors_.push_back({range, receive(rank)});
  }
}

/// Where the program finds what owners k have not sent.
Array OwnParts::unsent_arena(std::size_t k) const {
  const Array& array = unsent_[k].array();
  if (memory_.is_host()) return array;
  memory_.write(array.bytes(), staged_.array().data);
  return staged_.array();
}

OutTensor OwnParts::unsent_tensor(std::size_t k) const {
  const compute::Program& program = training_.program;
  OutTensor tensor{unsent_name(k), {count_of(program, learnt_parameters)}, {}};
  if (program.layout().dtype == DType::f64) {
    tensor.doubles = [this, k] {
      return numbers_of(training_.program, unsent_arena(k), learnt_parameters);
    };
  } else {
    tensor.values = [this, k] {
      return floats_of(training_.program, unsent_arena(k), learnt_parameters);
    };
  }
  return tensor;
}

void OwnParts::write(const std::filesystem::path& file, std::uint64_t step) const {
  const compute::Program& program = training_.program;
  const DType dtype = program.layout().dtype;
  std::vector<OutTensor> tensors;
  tensors.push_back(
      tensor_of(kOwnImages, {own_images_.size()}, DType::f64, [this] { return own_images_; }));
  if (!statistics_.empty()) {
    tensors.push_back(
        tensor_of(kStatistics, {statistics_.size(), statistics_.front().size()}, dtype, [this] {
          std::vector<double> all;
          for (const auto& of_rank : statistics_) {
            all.insert(all.end(), of_rank.begin(), of_rank.end());
          }
          return all;
        }));
  }
  for (std::size_t k = 0; k < unsent_.size(); ++k) tensors.push_back(unsent_tensor(k));
  for (const Factors& factors : factors_) {
    tensors.push_back(tensor_of(factors_name(factors.range),
                                {factors.bytes.size() / size_of(dtype)}, dtype, [&factors, dtype] {
                                  auto bytes = factors.bytes;
                                  return compute::read_numbers(compute::host_memory(),
                                                               array_in(bytes, dtype));
                                }));
  }
  weights::safetensors::write(
      file, {{"format", "cputrain"}, {"step", std::to_string(step)}, {kLayout, layout_}},
      std::move(tensors));
}

void OwnParts::check(TensorFile& file) {
  const compute::Program& program = training_.program;
  const auto* const images = file.file().find(kOwnImages);
  if (!images || images->extents.size() != 1 || images->extents[0] == 0) {
    file.wrong("does not say the images of each rank");
  }
  const std::size_t ranks = images->extents[0];
  file.require(kOwnImages, {ranks});
  held_ = {.ranks = static_cast<int>(std::min<std::size_t>(ranks, INT32_MAX))};
  held_.statistics = file.has(kStatistics);
  if (held_.statistics) {
    file.require(kStatistics, {ranks, count_of(program, averaged_parameters)});
  }
  while (file.has(unsent_name(static_cast<std::size_t>(held_.unsent)))) {
    file.require(unsent_name(static_cast<std::size_t>(held_.unsent++)),
                 {count_of(program, learnt_parameters)});
  }
  for (const auto& tensor : file.file().tensors()) {
    if (!factors_range(tensor.name)) continue;
    file.require(tensor.name, {tensor.count()});
    held_.factors = true;
  }
  file.require_no_others();
  for (const double number : file.read(kOwnImages)) {
    if (!(number >= 0 && number < 1e18)) file.wrong("has images of a rank that are no number");
  }
  const auto word = file.file().metadata().find(kLayout);
  if (!held_.factors || !kept_) return;
  held_.factors = word != file.file().metadata().end() && word->second == layout();
}

double OwnParts::restore(const TensorFile* file, double all_images) {
  held_ = comm::gather_values(training_.communicator, held_).front();
  const int ranks = training_.communicator.size();
  const double images =
      held_.ranks == ranks ? restore_statistics(file) : all_images / static_cast<double>(ranks);
  if (kept_) kept_->forget();
  if (kept_ && held_.unsent > 0) restore_unsent(file);
  if (kept_ && held_.factors) restore_factors(file);
  return images;
}

/// As many ranks as before; returns the images of this one.
double OwnParts::restore_statistics(const TensorFile* file) {
  const compute::Program& program = training_.program;
  std::vector<double> images, all;
  comm::on_rank_0(training_.communicator, [&] {
    images = file->read(kOwnImages);
    if (held_.statistics) all = file->read(kStatistics);
  });
  std::vector<double> mine(1 + (held_.statistics ? count_of(program, averaged_parameters) : 0));
  for (int rank = training_.leads() ? training_.communicator.size() : 0; rank-- > 0;) {
    const auto r = static_cast<std::size_t>(rank);
    mine[0] = images[r];
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(r * (mine.size() - 1)), mine.size() - 1,
                mine.begin() + 1);
    if (rank > 0) peers_->send(rank, std::as_bytes(std::span(mine)));
  }
  if (!training_.leads()) peers_->receive(0, std::as_writable_bytes(std::span(mine)));
  if (held_.statistics) {
    const std::lock_guard lock(training_.weights_mutex);
    put_numbers(program, std::span(mine).subspan(1), training_.exchange.arenas().weights,
                averaged_parameters);
  }
  return mine[0];
}

/// Each owner has what was its own, or, where elements have more or fewer owners now, the first
/// owner the sum.
void OwnParts::restore_unsent(const TensorFile* file) {
  const compute::Program& program = training_.program;
  const compute::ParameterLayout& layout = program.layout();
  const bool same = held_.unsent == owners_.owners();
  compute::OwnedArray whole, there;
  const std::vector<compute::ArenaPart> mine = unsent_parts();
  for (const compute::ArenaPart& part : mine) {
    std::memset(part.values.data, 0, part.values.bytes().size());
  }
  for (int k = 0; k < (same ? held_.unsent : 1); ++k) {
    comm::on_rank_0(training_.communicator, [&] {
      std::vector<double> numbers = file->read(unsent_name(static_cast<std::size_t>(k)));
      for (int other = 1; !same && other < held_.unsent; ++other) {
        const auto more = file->read(unsent_name(static_cast<std::size_t>(other)));
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += more[i];
      }
      if (whole.array().size == 0) {
        whole = compute::OwnedArray(compute::host_memory(), layout.gradient_size, layout.dtype);
        if (!memory_.is_host())
          there = compute::OwnedArray(memory_, whole.array().size, layout.dtype);
      }
      put_numbers(program, numbers, memory_.is_host() ? whole.array() : there.array(),
                  learnt_parameters);
      if (!memory_.is_host()) memory_.read(there.array().data, whole.array().bytes());
    });
    owners_.deal(k, mine, compute::host_memory(), whole.array());
  }
}

void OwnParts::restore_factors(const TensorFile* file) {
  const DType dtype = training_.program.layout().dtype;
  std::vector<Factors> all;
  comm::on_rank_0(training_.communicator, [&] {
    for (const auto& tensor : file->file().tensors()) {
      const auto range = factors_range(tensor.name);
      if (range) all.push_back({*range, bytes_of(file->read(tensor.name), dtype)});
    }
  });
  const auto from_rank_0 = [&](auto value) {
    return comm::gather_values(training_.communicator, value).front();
  };
  all.resize(from_rank_0(all.size()));
  for (Factors& factors : all) {
    const auto [begin, end, bytes] =
        from_rank_0(std::array{factors.range.begin, factors.range.end, factors.bytes.size()});
    factors.range = {begin, end};
    factors.bytes.resize(bytes);
    training_.communicator.broadcast(factors.bytes, 0);
    if (!holds(training_.exchange.owned(), factors.range)) continue;
    kept_->set_factors(factors.range, array_in(factors.bytes, dtype));
  }
}

}  // namespace cputrain::checkpoint

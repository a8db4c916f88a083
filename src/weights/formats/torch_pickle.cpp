#include "weights/formats/torch_pickle.h"

#include <algorithm>
#include <stdexcept>

namespace cputrain::weights {
namespace {

using namespace std::string_view_literals;
using Kind = PickledValue::Kind;

constexpr std::size_t kMostExtents = 64, kLongestName = 4096;

[[noreturn]] void unfit(const char* what) { throw std::runtime_error(what); }

constexpr NumberKind kNumbers[] = {
    {"Float", "F32", 4},     {"Double", "F64", 8},       {"Half", "F16", 2},
    {"BFloat16", "BF16", 2}, {"Long", "I64", 8},         {"Int", "I32", 4},
    {"Short", "I16", 2},     {"Char", "I8", 1},          {"Byte", "U8", 1},
    {"Bool", "BOOL", 1},     {"ComplexFloat", "C64", 8}, {"ComplexDouble", "C128", 16}};

/// The kind that "torch.FloatStorage" or "torch.cuda.FloatTensor" names, for "Storage" or "Tensor";
/// null for others.
const NumberKind* numbers_of(std::string_view global, std::string_view what) {
  for (const std::string_view module : {"torch.cuda."sv, "torch."sv}) {
    if (!global.starts_with(module) || !global.ends_with(what)) continue;
    const std::string_view word =
        global.substr(module.size(), global.size() - module.size() - what.size());
    const auto found = std::ranges::find(kNumbers, word, &NumberKind::word);
    if (found != std::end(kNumbers)) return found;
  }
  return nullptr;
}

// What makes arrays, that of older versions, too.
constexpr std::string_view kTensors[] = {"torch._utils._rebuild_tensor_v2",
                                         "torch._utils._rebuild_tensor"};
constexpr std::string_view kParameters[] = {"torch._utils._rebuild_parameter",
                                            "torch._utils._rebuild_parameter_with_state",
                                            "torch.nn.parameter.Parameter"};
constexpr std::string_view kOrderedDict = "collections.OrderedDict";
/// What stands beside arrays, and is passed over: flags, counts of a schedule, devices, types.
constexpr std::string_view kPassedOver[] = {
    "argparse.Namespace", "collections.Counter", "torch.device",  "torch.Size",
    "torch.float32",      "torch.float64",       "torch.float16", "torch.bfloat16",
    "torch.int64",        "torch.int32",         "torch.uint8",   "torch.bool"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_known(std::string_view global) {
  return global == kOrderedDict || is_one_of(kTensors, global) || is_one_of(kParameters, global) ||
         is_one_of(kPassedOver, global) || numbers_of(global, "Storage") ||
         numbers_of(global, "Tensor");
}

}  // namespace

TorchPickle::TorchPickle(const system::RegularFile& file, std::uint64_t begin, std::uint64_t end)
    : p_(read_pickle(file, begin, end, is_known)) {}

StorageName TorchPickle::storage(const PickledValue& value) const {
  const auto parts = items_of(p_[value.items.front()]);
  if (parts.size() < 5 || p_[parts[0]].text != "storage") unfit("names something beside arrays");
  const NumberKind* numbers = numbers_of(p_[parts[1]].text, "Storage");
  if (!numbers) unfit("has a storage of unknown numbers");
  StorageName name{numbers, name_of(parts[2]), size_of(parts[4])};
  const auto view = parts.size() > 5 ? items_of(p_[parts[5]]) : std::span<const Place>();
  if (view.size() == 3) {
    name.of = name.count;
    name.first = size_of(view[1]);
    name.count = size_of(view[2]);
    if (name.first > *name.of || name.count > *name.of - name.first) {
      unfit("has a storage that is no part of another");
    }
  }
  return name;
}

std::vector<PickledValue::Place> TorchPickle::pairs(const PickledValue& value) const {
  if (value.kind == Kind::dict) return value.items;
  if (value.kind != Kind::call || p_[value.items[0]].text != kOrderedDict) return {};
  std::vector<Place> pairs;
  // Python 2 gives it a list of pairs as its argument. Many lists may be the same one, so that
  // their sizes would multiply.
  const auto arguments = items_of(p_[value.items[1]]);
  if (arguments.size() > 1) unfit("has a dict of several lists");
  for (const Place pair : arguments.empty() ? arguments : items_of(p_[arguments[0]])) {
    const auto parts = items_of(p_[pair]);
    if (parts.size() == 2) pairs.insert(pairs.end(), parts.begin(), parts.end());
  }
  pairs.insert(pairs.end(), value.items.begin() + 2, value.items.end());
  return pairs;
}

std::span<const PickledValue::Place> TorchPickle::array(Place place) const {
  constexpr int kMostWrappings = 8;
  for (int i = 0; i < kMostWrappings && p_[place].kind == Kind::call; ++i) {
    const PickledValue& call = p_[place];
    const std::string& function = p_[call.items[0]].text;
    const auto arguments = items_of(p_[call.items[1]]);
    if (is_one_of(kTensors, function)) return arguments;
    if (numbers_of(function, "Tensor")) return items_of(p_[call.state]);
    if (!is_one_of(kParameters, function) || arguments.empty()) return {};
    place = arguments[0];
  }
  return {};
}

std::vector<std::size_t> TorchPickle::sizes(Place place) const {
  std::vector<std::size_t> sizes;
  const auto items = items_of(p_[place]);
  if (items.size() > kMostExtents) unfit("has an array of over 64 extents");
  for (const Place item : items) sizes.push_back(size_of(item));
  return sizes;
}

std::uint64_t TorchPickle::size_of(Place place) const {
  const PickledValue& value = p_[place];
  if (value.kind != Kind::number || value.number < 0) unfit("has a size that is no whole number");
  return static_cast<std::uint64_t>(value.number);
}

const std::string& TorchPickle::name_of(Place place) const {
  const std::string& text = p_[place].text;
  if (text.size() > kLongestName) unfit("has a name of over 4,096 bytes");
  return text;
}

std::span<const PickledValue::Place> TorchPickle::items_of(const PickledValue& value) const {
  return value.kind == Kind::sequence ? std::span<const Place>(value.items)
                                      : std::span<const Place>();
}

}  // namespace cputrain::weights

#include "datasets/open.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "core/casts.h"
#include "core/error.h"
#include "core/text.h"
#include "data/classes/alike_names.h"
#include "data/classes/class_names.h"
#include "data/dataset.h"
#include "datasets/folders/found.h"
#include "datasets/formats/packed.h"
#include "datasets/formats/pickles.h"
#include "datasets/lists/list_file.h"
#include "datasets/pixels/expand.h"
#include "datasets/split.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

constexpr const char* kForms =
    "a folder of class folders, an archive of it (FILE.zip, FILE.tar), a list file, cifar10:DIR, "
    "cifar100:DIR, idx:DIR, inat:DIR, coco:FILE.json, FILE.ctpack or synthetic[:N]";

/// A path without a word before it.
Found find_path(const data::DataRequest& request) {
  const std::string& spec = request.spec;
  std::error_code error;
  const auto kind = fs::status(spec, error).type();
  if (kind == fs::file_type::directory) return find_folder(request);
  if (const auto archive = parse_archive_spec(spec)) return find_archive(request, *archive);
  if (kind == fs::file_type::not_found) {
    fail(ExitCode::data,
         fmt::format("--data '{}' does not exist (it should be {}); check the path", spec, kForms));
  }
  if (kind == fs::file_type::regular) {
    if (is_packed(spec)) return find_packed(spec);
    if (is_pickle_name(spec)) refuse_pickle(spec);
    if (is_list_name(spec)) return find_list(spec, request.exif);
    if (fs::path(spec).extension() == ".json") {
      fail(
          ExitCode::data,
          fmt::format("--data '{0}' is a JSON file (annotations are read with a word before them); "
                      "use --data coco:{0}",
                      spec));
    }
  }
  fail(ExitCode::data,
       fmt::format("--data '{}' is neither a readable folder nor a file that is read{} (it should "
                   "be {}); name a folder of class folders",
                   spec, error ? ": " + error.message() : "", kForms));
}

Found find_data(const data::DataRequest& request) {
  const auto [word, parts] = data::parse_data_spec(request.spec);
  if (word == "synthetic") return find_synthetic(request.spec, request.seed);
  if (word == "idx") return find_idx(parts.front());
  if (word == "cifar10" || word == "cifar100") return find_cifar(request.spec);
  if (word == "inat") return find_inat(request, parts.front());
  if (word == "coco") return find_coco(request, parts.front(), parts.size() > 1 ? parts[1] : "");
  return find_path(request);
}

/// "300 of 1600" where a limit applies.
std::string of_available(std::size_t used, std::size_t available) {
  return used == available ? fmt::format("{}", used) : fmt::format("{} of {}", used, available);
}

/// "10 for training and 2 for validation (its 'val' folder)".
std::string describe_parts(const data::DataSource& source, const Found& found,
                           const Division& parts, const std::string& validation_name) {
  std::string text =
      fmt::format("{} for training", of_available(source.train.size(), parts.rest.size()));
  if (!parts.chosen.empty()) {
    text +=
        fmt::format("{} {} for validation ({})", found.test.empty() ? " and" : ",",
                    of_available(source.validation.size(), parts.chosen.size()), validation_name);
  }
  if (!found.test.empty()) {
    text += fmt::format(" and {} for test ({})",
                        of_available(source.test.size(), found.test.size()), found.test_name);
  }
  return text;
}

/// For the log, beginning with the words that Keras uses.
std::string describe(const Found& found, const data::DataSource& source, const Division& parts,
                     const std::string& validation_name, const data::DataRequest& request) {
  const data::Expand expand = request.expand;
  const std::size_t size = found.dataset->size(), classes = found.dataset->classes().size();
  const bool six = expand != data::Expand::none;
  std::string text =
      fmt::format("Found {} {} belonging to {}{}.", six ? size / data::kTurns : size, found.things,
                  counted(classes, "class"),
                  six ? fmt::format(", each turned in six ways: {} samples", size) : "");
  if (!request.to_evaluate) {
    text += fmt::format(" Using {}.", describe_parts(source, found, parts, validation_name));
  }
  if (!found.remark.empty()) text += " " + found.remark;
  if (!found.unread.empty()) {
    text += fmt::format(" Not read: {}.", data::unread_by_kind(found.unread));
  }
  return text;
}

/// Samples come sixfold from here on.
void turn_six_ways(Found& found) {
  if (found.dataset->size() > 0xFFFFFFFFu / data::kTurns) {
    fail(ExitCode::usage, fmt::format("--expand: six times {} images are too many (samples are "
                                      "counted in 32 bits); leave it out",
                                      found.dataset->size()));
  }
  found.dataset = make_six_fold(std::move(found.dataset));
  found.train = six_fold(found.train);
  found.validation = six_fold(found.validation);
  found.test = six_fold(found.test);
}

Labels labels_of(const data::Dataset& data) {
  return {[&data](std::uint32_t sample) { return data.label(sample); },
          to_int(data.classes().size())};
}

/// Training and validation part: the data's own, or chosen by seed.
Division divide(const Found& found, const data::DataRequest& request,
                std::string& validation_name) {
  validation_name = found.validation_name;
  if (!validation_name.empty() || request.validation_split <= 0) {
    return {found.validation, found.train};
  }
  validation_name = fmt::format("{:.4g} %, chosen by seed", request.validation_split * 100);
  return split_validation(found.train, labels_of(*found.dataset), request.validation_split,
                          {request.seed, Choice::validation});
}

/// At most `limit` of the samples, in the proportions that classes have in `whole`.
std::vector<std::uint32_t> limited(const data::Dataset& data,
                                   const std::vector<std::uint32_t>& samples,
                                   std::span<const std::uint32_t> whole,
                                   const std::optional<std::size_t>& limit, Choice use,
                                   const data::DataRequest& request) {
  if (!limit || *limit >= samples.size()) return samples;
  const Draw by{request.seed, use};
  const Labels labels = labels_of(data);
  return request.balanced ? choose_balanced(samples, labels, *limit, by).chosen
                          : choose_stratified(samples, whole, labels, *limit, by).chosen;
}

/// What a training should know of classes that a part has no image of. `parts`: without limits,
/// which are to blame where the whole part has more classes.
void add_missing_classes(data::DataSource& source, const Division& parts) {
  const auto add = [&](const std::vector<std::uint32_t>& part,
                       const std::vector<std::uint32_t>& whole, const char* what, const char* why,
                       const char* limit, const char* remedy) {
    const std::string missing = part.empty() ? "" : data::missing_classes(source, part);
    if (missing.empty()) return;
    const bool limited = missing != data::missing_classes(source, whole);
    source.warnings.push_back(
        fmt::format("no image of {} is for {} ({}); {}", missing, what, why,
                    limited ? fmt::format("a larger {} has more classes", limit) : remedy));
  };
  add(source.train, parts.rest, "training", "nothing is learnt of them", "--limit-train",
      "give the training part images of them");
  add(source.validation, parts.chosen, "validation", "its accuracy does not show them",
      "--limit-val",
      source.own_validation
          ? "give the validation part images of them"
          : "a larger --validation-split has more classes, of two images at least");
}

/// At least two classes with images to learn from. Error(data) with the remedy.
void check_classes(const std::string& spec, const Found& found) {
  const auto& classes = found.dataset->classes();
  const std::size_t learnt = classes.size() - found.empty_classes.size();
  if (learnt >= 2) return;
  const int label = found.train.empty() ? 0 : found.dataset->label(found.train.front());
  fail(ExitCode::data,
       fmt::format("all images of '{}' are of one class, '{}' (a classifier needs at "
                   "least two classes); {}",
                   spec, classes[to_size(label)], found.one_class_remedy));
}

}  // namespace

std::vector<std::uint32_t> limited_samples(const data::Dataset& data,
                                           const std::vector<std::uint32_t>& samples,
                                           std::size_t limit, const data::DataRequest& request) {
  return limited(data, samples, samples, limit, Choice::limit_validation, request);
}

data::DataSource open_data(const data::DataRequest& request) {
  Found found = find_data(request);
  data::check_class_names(request.spec, found.dataset->classes());
  if (!request.to_evaluate) check_classes(request.spec, found);
  if (request.expand == data::Expand::six_leaky) turn_six_ways(found);
  std::string validation_name;
  Division parts = divide(found, request, validation_name);
  if (request.expand == data::Expand::six) {
    turn_six_ways(found);
    parts = {six_fold(parts.chosen), six_fold(parts.rest)};
  }
  const data::Dataset& data = *found.dataset;
  data::DataSource source;
  const auto limited_validation = [&](const std::vector<std::uint32_t>& part) {
    return limited(data, part, part, request.limit_validation, Choice::limit_validation, request);
  };
  source.train =
      limited(data, parts.rest, found.train, request.limit_train, Choice::limit_train, request);
  source.validation = limited_validation(parts.chosen);
  source.test = limited_validation(found.test);
  source.test_name = found.test_name;
  source.validation_name = source.validation.empty() ? "" : validation_name;
  source.own_validation = !found.validation_name.empty();
  source.ignored = found.unread.size();
  source.warnings = std::move(found.warnings);
  if (std::string alike = data::alike_warning(data.classes()); !alike.empty()) {
    source.warnings.push_back(std::move(alike));
  }
  source.empty_classes = std::move(found.empty_classes);
  source.allow_empty_classes = request.allow_empty_classes || request.to_evaluate;
  source.exif = request.exif;
  source.containers = std::move(found.containers);
  if (request.expand == data::Expand::six_leaky && found.validation_name.empty() &&
      !parts.chosen.empty()) {
    source.warnings.push_back(
        "turns of training images are in validation, so its accuracy is too good");
  }
  source.description = describe(found, source, parts, validation_name, request);
  if (request.list_unread) source.unread = std::move(found.unread);
  source.dataset = std::move(found.dataset);
  if (!request.to_evaluate) add_missing_classes(source, parts);
  return source;
}

}  // namespace cputrain::datasets

#include "datasets/folders/folder_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/text.h"

namespace cputrain::datasets {
namespace {

using Words = std::set<std::string_view>;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

/// Bytes of UTF-8 beyond ASCII belong to words, too.
bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 128;
}

/// Words in lower case, split at signs, between letters and digits, and where "aB" changes case.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  char last = ' ';
  for (const char c : name) {
    const bool begins =
        !is_in_word(last) || is_digit(c) != is_digit(last) || (is_lower(last) && is_upper(c));
    if (is_in_word(c)) {
      if (begins) words.emplace_back();
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    last = c;
  }
  return words;
}

bool is_number(std::string_view word) { return std::ranges::all_of(word, is_digit); }

bool is_image_word(std::string_view word) {
  static const Words kWords{"image", "images",  "img",      "imgs",   "pic",       "pics",
                            "photo", "picture", "pictures", "photos", "jpegimages"};
  return kWords.contains(word);
}

bool is_data_noun(std::string_view word) {
  static const Words kWords{"set",    "sets",  "data",  "dataset", "datasets", "jpg",   "jpeg",
                            "png",    "file",  "files", "folder",  "dir",      "split", "part",
                            "subset", "batch", "fold",  "chunk",   "shard"};
  return kWords.contains(word) || is_image_word(word);
}

/// Words that do not describe what the images show.
bool is_data_word(std::string_view word) {
  static const Words kWords{"seg",   "raw",      "clean",   "cleaned", "resized", "processed",
                            "small", "original", "cropped", "final",   "full",    "all",
                            "my",    "single",   "px",      "x",       "version", "v"};
  return kWords.contains(word) || is_data_noun(word) || is_number(word);
}

std::optional<Part> part_of_word(std::string_view word) {
  static const std::array<std::pair<Part, Words>, 5> kParts{{
      {Part::train, {"train", "training", "trn", "trainval"}},
      {Part::validation,
       {"val", "valid", "validation", "validate", "vali", "dev", "devel", "development"}},
      {Part::evaluation, {"eval", "evaluation", "evaluate"}},
      {Part::test, {"test", "testing", "tst", "holdout", "heldout"}},
      {Part::prediction,
       {"pred", "predict", "prediction", "predictions", "unlabelled", "unlabeled"}},
  }};
  for (const auto& [part, words] : kParts) {
    if (words.contains(word)) return part;
  }
  return std::nullopt;
}

/// Also for words such as "trainset" or "testimages".
std::optional<Part> part_of_compound(std::string_view word) {
  if (const auto part = part_of_word(word)) return part;
  for (const std::string_view end : {"dataset", "images", "image", "imgs", "img", "data", "set"}) {
    if (!word.ends_with(end)) continue;
    if (const auto part = part_of_word(word.substr(0, word.size() - end.size()))) return part;
  }
  return std::nullopt;
}

/// A kind with the names of its files: endings, and whole names without a dot before them.
struct NamedKind {
  FileKind kind;
  std::string_view names;
};

/// Where two kinds share an ending, the first has it.
constexpr std::array kKinds{
    NamedKind{{Format::avif}, ".avif .avifs"},
    NamedKind{{Format::bmp}, ".bmp"},
    NamedKind{{Format::gif}, ".gif"},
    NamedKind{{Format::heic}, ".heic .heics .heif .heifs .hif"},
    NamedKind{{Format::jpeg}, ".jfif .jpe .jpeg .jpg"},
    NamedKind{{Format::png}, ".png"},
    NamedKind{{Format::tiff}, ".tif .tiff"},
    NamedKind{{Format::webp}, ".webp"},
    NamedKind{{Format::unknown, {"SVG", "SVG", true}}, ".svg .svgz"},
    NamedKind{
        {Format::unknown, {"RAW photograph", "RAW photographs", true, true}},
        ".3fr .arw .cr2 .cr3 .crw .dng .erf .fff .gpr .iiq .kdc .mef .mos .mrw .nef .nrw .orf "
        ".pef .raf .raw .rw2 .rwl .sr2 .srf .srw .x3f"},
    NamedKind{{Format::unknown, {"JPEG 2000", "JPEG 2000", true}}, ".j2c .j2k .jp2 .jpf .jpx"},
    NamedKind{{Format::unknown, {"JPEG XL", "JPEG XL", true}}, ".jxl"},
    NamedKind{{Format::unknown, {"image of another format", "images of other formats", true, true}},
              ".ai .bpg .cur .dcm .dds .dicom .emf .eps .exr .fit .fits .flif .hdr .ico .jxr .mpo "
              ".nii .pbm .pcx .pfm .pgm .pnm .ppm .psb .psd .qoi .tga .wdp .wmf .xcf"},
    NamedKind{{Format::unknown, {"video", "videos", true}},
              ".3g2 .3gp .asf .avi .flv .insv .m2ts .m4v .mkv .mov .mp4 .mpeg .mpg .mts .ogv .vob "
              ".webm .wmv"},
    NamedKind{{Format::unknown, {"archive", "archives", true}},
              ".7z .bz2 .gz .rar .tar .tbz .tgz .txz .xz .zip .zst"},
    NamedKind{{Format::unknown, {"document", "documents"}},
              ".doc .docx .odp .ods .odt .pdf .ppt .pptx .rtf .xls .xlsx"},
    NamedKind{
        {Format::unknown, {"text", "texts"}},
        ".aae .bib .c .cfg .conf .cpp .css .csv .data .err .h .htm .html .ini .ipynb .java .js "
        ".json .jsonl .list .log .lst .m .md .md5 .names .ndjson .out .pbtxt .pp3 .prototxt .py "
        ".r .rst .sh .sha1 .sha256 .tex .toml .tsv .txt .url .xml .xmp .yaml .yml "
        "authors changelog checksums classes copying labels licence license makefile manifest "
        "md5sums notice readme sha1sums sha256sums"},
    NamedKind{
        {Format::unknown, {"file of a program", "files of programs"}},
        ".arrow .bin .ctpack .db .h5 .hdf5 .keras .lmdb .mat .npy .npz .onnx .parquet .pickle "
        ".pkl .pt .pth .safetensors .sqlite .tfrecord .tfrecords"},
    NamedKind{{Format::unknown, {"file of a system", "files of systems"}},
              "desktop.ini ehthumbs.db thumbs.db .lnk"},
};
constexpr FileKind kNoImage{Format::unknown,
                            {"no image by its name", "no image by its name", true, true}};

using KindsByName = std::map<std::string_view, const FileKind*>;

KindsByName kinds_by_name() {
  KindsByName kinds;
  for (const NamedKind& one : kKinds) {
    for (std::string_view rest = one.names; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      kinds.emplace(rest.substr(0, end), &one.kind);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return kinds;
}

template <class Predicate>
std::string words_but(std::string_view name, Predicate left_out) {
  auto words = words_of(name);
  std::erase_if(words, left_out);
  return join(words, " ");
}

}  // namespace

PartName part_name(std::string_view folder) {
  std::set<Part> parts;
  bool alone = true;
  for (const std::string& word : words_of(folder)) {
    if (const auto part = part_of_compound(word)) {
      parts.insert(*part);
    } else {
      alone &= is_data_word(word);
    }
  }
  if (parts == std::set{Part::train, Part::validation}) return {Part::train, alone};
  if (parts.size() != 1) return {};
  return {*parts.begin(), alone};
}

bool is_data_name(std::string_view folder) {
  const auto words = words_of(folder);
  return !std::ranges::all_of(words, is_number) && std::ranges::all_of(words, is_data_word);
}

bool is_image_name(std::string_view folder) {
  return is_data_name(folder) && std::ranges::any_of(words_of(folder), is_image_word);
}

bool names_data(std::string_view folder) {
  return std::ranges::any_of(words_of(folder), is_data_noun);
}

std::string without_numbers(std::string_view folder) {
  return words_but(folder,
                   [](const std::string& word) { return is_number(word) || word.size() == 1; });
}

std::string without_part_words(std::string_view folder) {
  return words_but(folder,
                   [](const std::string& word) { return part_of_compound(word).has_value(); });
}

bool is_system_folder(std::string_view name) {
  static const Words kNames{// Synology, QNAP, NetApp
                            "@eadir", "#recycle", "#snapshot", "@recycle", "@recently-snapshot",
                            "~snapshot", "@tmp", "@sharebin",
                            // Windows
                            "$recycle.bin", "system volume information", "found.000",
                            // Unix, macOS, Python
                            "lost+found", "__macosx", "network trash folder", "temporary items",
                            "thevolumesettingsfolder", "__pycache__"};
  return name.starts_with('.') || kNames.contains(lower_case(name));
}

bool is_output_file(std::string_view name) {
  static const Words kNames{"metrics.jsonl", "environment.json", "cells.json", "MANIFEST"};
  return kNames.contains(name) || name.starts_with("events.out.tfevents") ||
         name.ends_with(".safetensors");
}

bool may_be_output(std::string_view name) {
  static const Words kEndings{".json", ".jsonl", ".csv", ".tsv",  ".txt", ".log",
                              ".out",  ".err",   ".md",  ".html", ".onnx"};
  const std::size_t ending = std::min(name.rfind('.'), name.size());
  return is_output_file(name) || kEndings.contains(name.substr(ending));
}

const FileKind& kind_of_name(std::string_view path) {
  static const KindsByName kinds = kinds_by_name();
  const std::string name = lower_case(path.substr(path.rfind('/') + 1));
  if (const auto whole = kinds.find(name); whole != kinds.end() && !name.starts_with('.')) {
    return *whole->second;
  }
  const std::size_t dot = std::min(name.rfind('.'), name.size());
  const auto found = kinds.find(std::string_view(name).substr(dot));
  return found == kinds.end() ? kNoImage : *found->second;
}

bool is_image_file_name(std::string_view path) {
  return kind_of_name(path).format != Format::unknown;
}

std::string image_endings() {
  std::vector<std::string> endings;
  for (const NamedKind& one : kKinds) {
    if (one.kind.format != Format::unknown) endings.emplace_back(one.names);
  }
  return join(endings, " ");
}

std::string label_in_name(std::string_view name) {
  const std::size_t ending = name.rfind('.');
  if (ending == 0 || ending == std::string_view::npos) return {};
  const std::size_t number = name.rfind('.', ending - 1);
  if (number == std::string_view::npos || number == 0) return {};
  const std::string_view digits = name.substr(number + 1, ending - number - 1);
  const bool all_digits = !digits.empty() && std::ranges::all_of(digits, is_digit);
  return all_digits ? std::string(name.substr(0, number)) : std::string();
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

}  // namespace cputrain::datasets

#pragma once

#include <string>
#include <string_view>

#include "data/dataset.h"
#include "datasets/decode/decode.h"

/// What names of folders and files mean where a data set is a folder.
namespace cputrain::datasets {

/// The part of a split that a folder's name claims. `evaluation` ("eval") validates where nothing
/// else does, and is a test part else; `prediction` is for images without labels.
enum class Part { none, train, validation, evaluation, test, prediction };

struct PartName {
  Part part = Part::none;
  bool alone =
      false;  ///< no other word in the name but those of data ("set", "images") and numbers
};

/// By words, in any case: "TRAIN_SET", "seg_val", "dataset-train", "testImages", "train2017". A
/// name with words of two parts claims none, except that "train_val" is for training.
PartName part_name(std::string_view folder);

/// Whether the name has words of data and numbers only: "images", "JPEGImages", "img_256".
bool is_data_name(std::string_view folder);

/// Whether such a name means "images" or the like: "images", "JPEGImages", not "raw".
bool is_image_name(std::string_view folder);

/// Whether one of the words is a noun of data: "images_001", "fold2", "HAM10000_images_part_1".
bool names_data(std::string_view folder);

/// The words of a name in lower case, with blanks between them, without numbers and single letters.
std::string without_numbers(std::string_view folder);

/// The same with numbers, but without the words that name parts: "cat" of "train_cat".
std::string without_part_words(std::string_view folder);

/// Folders of systems and servers, at any depth: "@eaDir", "#recycle", "$RECYCLE.BIN", "__MACOSX",
/// "lost+found" and their like, in any case, and all names that begin with a dot.
bool is_system_folder(std::string_view name);

/// Whether cputrain or a writer of TensorBoard events leaves such a file in its output folder.
bool is_output_file(std::string_view name);

/// Whether such a file may lie in an output folder beside these: tables, logs, weights.
bool may_be_output(std::string_view name);

/// What a file is by its name, whatever it holds.
struct FileKind {
  Format format = Format::unknown;  ///< of images that are looked at
  data::UnreadReason reason{};      ///< of all others
};
const FileKind& kind_of_name(std::string_view path);

/// Whether the name ends in one of the endings of images that are looked at, any case. What a file
/// is depends on its content.
bool is_image_file_name(std::string_view path);
/// These endings, for messages: ".avif .bmp ...".
std::string image_endings();

/// "cat" of Kaggle's "cat.17.jpg"; empty when the name has another form.
std::string label_in_name(std::string_view name);

/// In lower case, letters of ASCII only.
std::string lower_case(std::string_view);

}  // namespace cputrain::datasets

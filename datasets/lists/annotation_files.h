#pragma once

#include <string>
#include <vector>

#include "datasets/folders/image_files.h"

/// Where people keep annotation files, and the images that these name.
namespace cputrain::datasets {

/// The annotation files of a folder of images, of its own folder `annotations` or of the one beside
/// it, as --data names them: "coco:D/annotations/instances_train2017.json,D/...val2017.json".
/// Empty where there are none.
std::string find_annotations(const std::string& folder);

/// The same, or another text where there are none.
std::string annotations_or(const std::string& folder, const std::string& other);

/// The first file named like train2017.json in the folder or in its folder `annotations`; of
/// several years the last. Empty where there is none.
std::string find_yearly_json(const std::string& folder, const std::string& part);

/// The folder that the paths of an annotation file are below: the one that holds most of the first
/// images. Looked at are the folder of the file, folders beside it and in it that are named by the
/// part or `images` (COCO has `annotations` beside `train2017`), and `usual`, which it is where no
/// image is found.
std::string folder_of_images(const std::string& json, const std::string& usual, const ImageFiles&);

/// The folder of a file, "." for one without a folder.
std::string folder_of(const std::string& file);

}  // namespace cputrain::datasets

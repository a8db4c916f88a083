#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "datasets/open.h"
#include "tests/datasets/made_files.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {

/// A folder in which tests lay out data sets, and what opening them gives.
class OpenTest : public ::testing::Test {
 protected:
  void add(const std::string& path) { write_bytes(folder_.path() / path, image_); }
  void add_class(const std::string& path, int count) {
    for (int i = 0; i < count; ++i) add(path + "/" + std::to_string(i) + ".png");
  }
  std::string path(const std::string& below = "") const {
    return below.empty() ? folder_.path().string() : (folder_.path() / below).string();
  }
  void add_text(const std::string& path, const std::string& text) {
    write_bytes(folder_.path() / path, bytes_of(text));
  }
  void add_folder(const std::string& path) {
    std::filesystem::create_directories(folder_.path() / path);
  }
  data::DataSource open(const std::string& spec, double split = 0.1) const {
    return open_data({.spec = spec,
                      .validation_split = split,
                      .seed = 5,
                      .allow_empty_classes = allow_empty_classes_,
                      .list_unread = true});
  }
  data::DataSource open_here(double split = 0.1) const { return open(path(), split); }

  /// Opens and returns the message of the error, which must have this exit code.
  std::string error(const std::string& spec, ExitCode code = ExitCode::data) const {
    try {
      open(spec);
    } catch (const Error& caught) {
      EXPECT_EQ(caught.code(), code) << caught.what();
      return caught.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  /// The path below the folder, links as they are.
  std::string below(const std::string& path) const {
    return std::filesystem::path(path).lexically_relative(folder_.path()).string();
  }

  std::vector<std::string> names(const data::DataSource& source) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < source.dataset->size(); ++i) {
      names.push_back(
          below(source.dataset->name(i)) + " " +
          source.dataset->classes()[static_cast<std::size_t>(source.dataset->label(i))]);
    }
    return names;
  }

  /// The names of the classes, sorted by their numbers.
  std::vector<std::string> classes() const { return open_here().dataset->classes(); }

  /// Files below the folder in a part, sorted as the data set has them.
  std::vector<std::string> part(const data::DataSource& source,
                                const std::vector<std::uint32_t>& samples) const {
    std::vector<std::string> files;
    for (const std::uint32_t sample : samples) {
      files.push_back(below(source.dataset->name(sample)));
    }
    return files;
  }

  /// "notes.txt: text", sorted.
  static std::vector<std::string> unread(const data::DataSource& source) {
    std::vector<std::string> lines;
    for (const data::UnreadFile& file : source.unread) {
      lines.push_back(file.path + ": " + std::string(file.reason->one));
    }
    std::ranges::sort(lines);
    return lines;
  }

  void expect_refused(const std::vector<std::string>& words) const {
    const std::string message = error(path());
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << word << " is not in: " << message;
    }
  }

  bool allow_empty_classes_ = false;
  testing::TemporaryFolder folder_;
  Bytes image_ = png_of(smooth_image(4, 4));
};

}  // namespace cputrain::datasets

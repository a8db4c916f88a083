// Files of a checkpoint that are not what they should be: all ranks say which file and what of it.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "checkpoint/folder.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/state_file.h"
#include "core/error.h"
#include "tests/checkpoint/rank_jobs.h"

namespace cputrain::training {
namespace {

using weights::safetensors::OutTensor;
namespace fs = std::filesystem;

class HostileFiles : public RankJobs {
 protected:
  HostileFiles() {
    job_ = {"hostile", flags("adam", kBatchNorm), floats, 2};
    whole_ = folder("whole");
    train(job_, 4, whole_);
  }

  /// A copy to be damaged.
  fs::path damaged() {
    const fs::path copied = folder("damaged" + std::to_string(copies_++));
    fs::copy(whole_, copied, fs::copy_options::recursive);
    return copied;
  }

  void expect_refusal(const fs::path& at, const std::vector<std::string>& words) {
    try {
      resume(job_, at);
      ADD_FAILURE() << words.front() << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data) << error.what();
      for (const std::string& word : words) {
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      }
    }
  }

  /// Writes a file of tensors anew, with one of them changed and more behind; none stays out.
  void change(const fs::path& path,
              const std::function<std::optional<OutTensor>(OutTensor)>& changed,
              std::vector<OutTensor> tensors = {}) {
    weights::safetensors::Metadata metadata;
    {
      const weights::TensorFile file = weights::safetensors::open(path);
      metadata = file.metadata();
      for (const auto& tensor : file.tensors()) {
        OutTensor made{tensor.name, tensor.extents,
                       [values = file.read_floats(tensor)] { return values; }};
        if (auto kept = changed(std::move(made))) tensors.push_back(std::move(*kept));
      }
    }
    weights::safetensors::write(path, metadata, std::move(tensors));
  }

  /// Replaces a text of the same length in a file.
  static void replace(const fs::path& path, const std::string& from, const std::string& to) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    std::string all = text.str();
    ASSERT_NE(all.find(from), std::string::npos) << from;
    all.replace(all.find(from), from.size(), to);
    std::ofstream(path, std::ios::binary) << all;
  }

  RankJob job_;
  fs::path whole_;
  int copies_ = 0;
};

TEST_F(HostileFiles, MissingAndCutOnes) {
  for (const char* file : {checkpoint::kModelName, checkpoint::kOptimizerName,
                           checkpoint::kRanksName, checkpoint::kStateName}) {
    fs::path at = damaged();
    fs::remove(at / file);
    expect_refusal(at, {file});
    at = damaged();
    fs::resize_file(at / file, fs::file_size(at / file) - 7);
    expect_refusal(at, {file});
  }
}

TEST_F(HostileFiles, TensorsThatAreMissingOrTooMany) {
  const std::string tensor = "dense/kernel", other = "dense/kernel/m";
  fs::path at = damaged();
  change(at / checkpoint::kModelName, [&](OutTensor t) {
    return t.name == tensor ? std::nullopt : std::optional(std::move(t));
  });
  expect_refusal(at, {checkpoint::kModelName, "has no tensor " + tensor});
  at = damaged();
  change(at / checkpoint::kOptimizerName, [&](OutTensor t) {
    if (t.name == other) t.name = "dense/kernel/w";
    return std::optional(std::move(t));
  });
  expect_refusal(at, {checkpoint::kOptimizerName, "has no tensor " + other});
  for (const char* file :
       {checkpoint::kModelName, checkpoint::kOptimizerName, checkpoint::kRanksName}) {
    at = damaged();
    replace(at / file, "\"__metadata__\"", "\"zzz/metadata\"");
    expect_refusal(at, {file});
  }
  for (const char* range : {"factors/0-4x", "factors/4-4", "factors/-4", "factors/0,4"}) {
    const OutTensor more{range, {4}, [] { return std::vector<float>(4); }};
    at = damaged();
    change(at / checkpoint::kRanksName, std::identity(), {more});
    expect_refusal(at, {checkpoint::kRanksName, range});
  }
}

TEST_F(HostileFiles, OtherShapesAndTypes) {
  const auto flat = [](OutTensor t) {
    std::size_t count = 1;
    for (const std::size_t n : t.extents) count *= n;
    t.extents = {count, 1};
    return std::optional(std::move(t));
  };
  for (const char* file :
       {checkpoint::kModelName, checkpoint::kOptimizerName, checkpoint::kRanksName}) {
    const fs::path at = damaged();
    change(at / file, flat);
    expect_refusal(at, {file});
  }
  const fs::path at = damaged();
  replace(at / checkpoint::kOptimizerName, "\"F32\"", "\"I32\"");
  expect_refusal(at, {checkpoint::kOptimizerName, "of type I32"});
}

TEST_F(HostileFiles, ImageCountsThatAreNegativeOrNonfinite) {
  for (const float images :
       {-1.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const fs::path at = damaged();
    change(at / checkpoint::kRanksName, [&](OutTensor t) {
      if (t.name == "own_images") t.values = [images] { return std::vector{6.0f, images}; };
      return std::optional(std::move(t));
    });
    expect_refusal(at, {checkpoint::kRanksName, "images"});
  }
}

TEST_F(HostileFiles, StatesOfAnotherForm) {
  const std::string name = checkpoint::kStateName;
  const auto with = [&](const std::string& from, const std::string& to) {
    const fs::path at = damaged();
    replace(at / name, from, to);
    return at;
  };
  expect_refusal(with("\"format\": 2", "\"format\": 3"), {name, "another version"});
  expect_refusal(with("\"steps\": 4", "\"steps\": -4"), {name, "progress: steps"});
  expect_refusal(with("\"plateau\"", "\"plattau\""), {name, "progress: plateau"});
  EXPECT_THROW(checkpoint::read_facts(with("{", "[")), Error);
}

/// What no program can have found changes nothing.
TEST_F(HostileFiles, TunedMethodsAreLeftAlone) {
  const fs::path at = damaged();
  replace(at / checkpoint::kStateName, "\"findings\": \"\"", "\"findings\": \"zzz q\"");
  EXPECT_EQ(resume(job_, at)[1].weights, resume(job_, whole_)[1].weights);
}

}  // namespace
}  // namespace cputrain::training

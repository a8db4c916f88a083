#include "training/run/run_logs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

using testing::text_of;

/// A run's folder with logs, and things that are none.
class LogMarks : public ::testing::Test {
 protected:
  LogMarks() {
    fs::create_directory(path("train"));
    fs::create_directory(path("validation"));
    for (const char* name :
         {"metrics.jsonl", "training.csv", "mlperf.log", "history.json", "config.json",
          "notes.jsonl", kTrain, kValidation, "train/mine.txt", "ckpt-000000005"}) {
      add(name, "old\n");
    }
  }

  fs::path path(const std::string& name) const { return run_.path() / name; }
  void add(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::app) << text;
  }
  std::string refused(const Json& marks) const {
    return testing::refusal_of(ExitCode::data, [&] { cut_logs(run_.path(), marks); });
  }

  static constexpr const char* kTrain = "train/events.out.tfevents.1.host.2.0";
  static constexpr const char* kValidation = "validation/events.out.tfevents.1.host.2.0";
  static constexpr const char* kLater = "train/events.out.tfevents.9.host.8.0";
  testing::TemporaryFolder run_;
};

TEST_F(LogMarks, AreThoseOfLogsThatGrow) {
  add("metrics.jsonl", "more\n");
  EXPECT_EQ(log_marks(run_.path()), (Json{{"metrics.jsonl", 9},
                                          {"mlperf.log", 4},
                                          {kTrain, 4},
                                          {"training.csv", 4},
                                          {kValidation, 4}}));
  EXPECT_EQ(log_marks(path("none")), Json::object());
}

TEST_F(LogMarks, CutWhatCameLaterAndLeaveTheRest) {
  const Json marks = log_marks(run_.path());
  for (const char* name : {"metrics.jsonl", kTrain, kValidation, "history.json", "notes.jsonl"}) {
    add(name, "later\n");
  }
  add(kLater, "later\n");
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(cut_logs(run_.path(), marks).empty());
    EXPECT_EQ(log_marks(run_.path()), marks);
    EXPECT_EQ(text_of(path("metrics.jsonl")), "old\n");
    EXPECT_EQ(text_of(path("history.json")), "old\nlater\n");
    EXPECT_EQ(text_of(path("notes.jsonl")), "old\nlater\n");
    EXPECT_FALSE(fs::exists(path(kLater)));
    EXPECT_TRUE(fs::exists(path("train/mine.txt")));
  }
  EXPECT_NO_THROW(sync_logs(run_.path()));
}

TEST_F(LogMarks, LogsThatLostSomethingAreNamed) {
  const Json marks = log_marks(run_.path());
  fs::resize_file(path("metrics.jsonl"), 1);
  fs::remove(path("training.csv"));
  add("mlperf.log", "later\n");
  const auto warnings = cut_logs(run_.path(), marks);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(warnings[0].starts_with("metrics.jsonl has lost 3 ")) << warnings[0];
  EXPECT_TRUE(warnings[1].starts_with("training.csv is missing")) << warnings[1];
  EXPECT_EQ(text_of(path("metrics.jsonl")), "");  // what follows begins a line
  EXPECT_EQ(text_of(path("mlperf.log")), "old\n");
}

TEST_F(LogMarks, LogsThatLostSomethingEndWithAWholeLine) {
  add("metrics.jsonl", "one\ntwo\n");
  const Json marks = log_marks(run_.path());
  fs::resize_file(path("metrics.jsonl"), fs::file_size(path("metrics.jsonl")) - 2);
  EXPECT_EQ(cut_logs(run_.path(), marks).size(), 1u);
  EXPECT_TRUE(text_of(path("metrics.jsonl")).ends_with("one\n"));
}

TEST_F(LogMarks, OfAHostileFileCutNothing) {
  const Json before = log_marks(run_.path());
  const std::string events = "events.out.tfevents.1.host.2.0";
  const std::vector<std::string> names{"config.json",
                                       "../metrics.jsonl",
                                       "/etc/passwd",
                                       "",
                                       "train",
                                       "train/mine.txt",
                                       "train/",
                                       "train/../" + events,
                                       "train/" + events + "/../../config.json",
                                       "other/" + events,
                                       events,
                                       "train//" + events,
                                       "ckpt-000000005",
                                       "train/" + events + std::string("\0x", 2)};
  for (const auto& name : names) {
    EXPECT_NE(refused({{"metrics.jsonl", 0}, {name, 0}}).find("is no log"), std::string::npos)
        << name;
  }
  const std::vector<Json> sizes{
      -1, 0.0, 1.5, "4", nullptr, true, Json::array(), UINT64_MAX, std::uint64_t{1} << 63};
  for (const Json& size : sizes) {
    EXPECT_NE(refused({{"mlperf.log", 0}, {"metrics.jsonl", size}}).find("cannot be so long"),
              std::string::npos)
        << size;
  }
  for (const Json& marks : {Json(), Json::array(), Json("metrics.jsonl"), Json(3)}) {
    EXPECT_NE(refused(marks).find("no object"), std::string::npos) << marks;
  }
  EXPECT_EQ(log_marks(run_.path()), before);
  EXPECT_EQ(text_of(path("config.json")), "old\n");
}

// A pipe that a person put there is nobody's to cut, nor does it make anybody wait.
TEST_F(LogMarks, LeavePipesAlone) {
  Json marks = log_marks(run_.path());
  fs::remove(path("training.csv"));
  ASSERT_EQ(::mkfifo(path("training.csv").c_str(), 0600), 0);
  EXPECT_FALSE(log_marks(run_.path()).contains("training.csv"));
  marks.erase("training.csv");
  EXPECT_TRUE(cut_logs(run_.path(), marks).empty());
  EXPECT_NO_THROW(sync_logs(run_.path()));
  EXPECT_TRUE(fs::is_fifo(path("training.csv")));
}

// Whoever may write in the folder may have put a link to somebody's file there.
TEST_F(LogMarks, LeaveWhatLinksLeadToAlone) {
  const testing::TemporaryFolder other;
  const Json marks{{"training.csv", 1}, {"train/events.out.tfevents.1.host", 1}};
  std::ofstream(other.path() / "target") << "all of it";
  std::ofstream(other.path() / "events.out.tfevents.1.host") << "all of it";
  for (const bool whole_folder : {false, true}) {
    fs::remove(path("training.csv"));
    fs::remove_all(path("train"));
    fs::create_symlink(other.path() / "target", path("training.csv"));
    if (whole_folder) {
      fs::create_directory_symlink(other.path(), path("train"));
    } else {
      fs::create_directory(path("train"));
      fs::create_symlink(other.path() / "target", path("train/events.out.tfevents.1.host"));
    }
    EXPECT_FALSE(log_marks(run_.path()).contains("training.csv"));
    const auto warnings = cut_logs(run_.path(), marks);
    ASSERT_EQ(warnings.size(), 2u);
    for (const std::string& warning : warnings) {
      EXPECT_NE(warning.find("is a link"), std::string::npos) << warning;
    }
    EXPECT_NO_THROW(sync_logs(run_.path()));
    EXPECT_EQ(fs::file_size(other.path() / "target"), 9u);
    EXPECT_EQ(fs::file_size(other.path() / "events.out.tfevents.1.host"), 9u);
  }
}

TEST(LogMarksOfNothing, CutNothing) {
  const testing::TemporaryFolder run;
  EXPECT_TRUE(cut_logs(run.path(), Json::object()).empty());
  EXPECT_NO_THROW(sync_logs(run.path()));
}

}  // namespace
}  // namespace cputrain::training

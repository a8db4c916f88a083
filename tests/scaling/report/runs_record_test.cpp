// scaling/report/trainings/run_record.h: folders as killed, broken and hostile trainings leave
// them.

#include "scaling/report/trainings/run_record.h"

#include <gtest/gtest.h>

#include <fstream>

#include "system/file_lock.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::report {
namespace {

constexpr const char* kFirst =
    R"({"type":"epoch","epoch":1,"steps":4,"images":100,"seconds":10,"loss":0.7,)"
    R"("val_loss":0.6,"val_accuracy":0.8,"val_seconds":1,"settled":{"steps":1}})"
    "\n";
constexpr const char* kSecond =
    R"({"type":"epoch","epoch":2,"steps":4,"images":100,"seconds":5,"loss":0.5,)"
    R"("val_loss":0.5,"val_accuracy":0.9,"val_seconds":1,"settled":{"steps":4}})"
    "\n";
constexpr const char* kThird =
    R"({"type":"epoch","epoch":3,"steps":4,"images":100,"seconds":4,"loss":0.4,)"
    R"("val_loss":0.6,"val_accuracy":0.9,"val_seconds":1,"settled":{"steps":2}})"
    "\n";
constexpr const char* kFinished = R"({"type":"summary","outcome":"finished","seconds":23})"
                                  "\n";

class RunFolders : public ::testing::Test {
 protected:
  RunFolders() : run(folder.path() / "run") {
    std::filesystem::create_directory(run);
    write("config.json",
          R"({"model":"dogcat","data":"/d/photos","image-size":64,"batch":"20","epochs":9,)"
          R"("seed":7,"optimizer":"sgd","lr":0.01,"momentum":0.9,"verbose":"2"})");
    write("environment.json",
          R"({"started":"2026-11-25T22:40:39+0000","ranks":2,"threads_of_rank_0":3,)"
          R"("machine":{"cpu":"EPYC","cores":4}})");
  }
  void write(const char* file, const std::string& text) { std::ofstream(run / file) << text; }
  RunRecord with(const std::string& lines) {
    write("metrics.jsonl", lines);
    return read_run(run);
  }

  const testing::TemporaryFolder folder;
  const std::filesystem::path run;
};

TEST_F(RunFolders, SayTheirGpus) {
  EXPECT_EQ(with(kFirst).devices.count, 0);
  write("environment.json", R"({"emulated":true,"gpus":{"count":2,"name":"H100"}})");
  const RunRecord r = with(kFirst);
  EXPECT_EQ(r.devices.count, 2);
  EXPECT_EQ(r.devices.name, "H100");
  EXPECT_TRUE(r.devices.emulated);
}

TEST_F(RunFolders, AreReadWhole) {
  const RunRecord r = with(std::string(kFirst) + kSecond + kThird + kFinished);
  EXPECT_EQ(r.name, "run");
  EXPECT_EQ(r.rule, "sgd 0.01, momentum 0.9");
  EXPECT_EQ(r.machine, "EPYC, 4 cores");
  EXPECT_EQ(r.batch, 20);  // a flag that a person gave is a text
  EXPECT_EQ(r.ranks, 2);
  EXPECT_EQ(r.threads, 3);
  EXPECT_EQ(r.seed, 7);
  EXPECT_EQ(r.planned_epochs, 9);
  EXPECT_FALSE(r.configuration.contains("seed"));
  EXPECT_FALSE(r.configuration.contains("verbose"));
  ASSERT_TRUE(r.best());
  EXPECT_EQ(r.best()->epoch, 2);  // the first that had 0.9
  EXPECT_EQ(r.best()->seconds, 15);
  EXPECT_EQ(r.first_with(0.75)->seconds, 10);
  EXPECT_FALSE(r.first_with(0.95));
  EXPECT_EQ(r.images_per_second(), 20);  // of the second epoch: the others tried algorithms
  EXPECT_FALSE(r.includes_trials());
  EXPECT_EQ(r.total_seconds(), 23);
  EXPECT_EQ(r.outcome, Outcome::finished);
  EXPECT_TRUE(r.troubles.empty());
}

TEST_F(RunFolders, SayWhichEpochsTheirWeightsAreOf) {
  const auto kept = [&](const std::string& more, const std::string& outcome = "finished") {
    return with(std::string(kFirst) + kSecond + kThird + R"({"type":"summary","outcome":")" +
                outcome + R"(","epochs":3,"best_epoch":2)" + more + "}\n");
  };
  const std::string best = R"(,"training":{"end":{"epochs":9,"save-best":true}})";
  const std::string stopped =
      R"(,"early_stopped":true,"training":{"end":{"epochs":9,"early-stopping":1}})";
  EXPECT_FALSE(kept(best).weights_epoch || kept(best).best_epoch);  // without files
  write("weights.safetensors", "");
  EXPECT_FALSE(kept(stopped).weights_epoch);  // the best was deleted, or could not be written
  EXPECT_FALSE(kept("", "interrupted").weights_epoch);
  EXPECT_EQ(kept("").weights_epoch, 3);
  write("best.safetensors", "");
  EXPECT_EQ(kept(best).weights_epoch, 3);
  EXPECT_EQ(kept(best).best_epoch, 2);
  EXPECT_EQ(kept(stopped).weights_epoch, 2);
  for (const char* none : {"", R"(,"training":3)", R"(,"training":{"end":[]})"}) {
    EXPECT_EQ(kept(none).weights_epoch, 3);
    EXPECT_FALSE(kept(none).best_epoch);  // of an earlier start
  }
  EXPECT_FALSE(with(std::string(kFirst) + kSecond).weights_epoch);  // killed
}

TEST_F(RunFolders, SpeedIncludesTrialsWhereNothingElseIsThere) {
  const RunRecord r = with(std::string(kFirst) + kFinished);
  EXPECT_EQ(r.images_per_second(), 10);
  EXPECT_TRUE(r.includes_trials());
  EXPECT_FALSE(with(kFinished).images_per_second());
}

TEST_F(RunFolders, WhatIsComputedFromKeptFeaturesIsNoSpeedOfTheNetwork) {
  const auto epoch = [](int number, double seconds, int kept) {
    return R"({"type":"epoch","epoch":)" + std::to_string(number) +
           R"(,"steps":4,"images":100,"loss":0.5,"settled":{"steps":4},"seconds":)" +
           std::to_string(seconds) + R"(,"from_features":)" + std::to_string(kept) + "}\n";
  };
  const RunRecord kept = with(epoch(1, 10, 3) + epoch(2, 0.1, 100) + epoch(3, 0.3, 100) +
                              epoch(4, 0.2, 100) + kFinished);
  EXPECT_EQ(kept.images_per_second(), 10);  // three images of the first were twins of others
  EXPECT_NEAR(kept.seconds_from_features().value(), 0.2, 1e-12);
  // A resume begins without features: its first epoch is the network's, too.
  EXPECT_EQ(
      with(epoch(1, 10, 0) + epoch(2, 0.1, 100) + epoch(3, 5, 0) + kFinished).images_per_second(),
      20);
  const RunRecord none = with(epoch(1, 10, 0) + epoch(2, 5, 0) + kFinished);
  EXPECT_EQ(none.images_per_second(), 20);
  EXPECT_FALSE(none.seconds_from_features());
  // Two views of an image: neither epoch is all of one kind.
  EXPECT_FALSE(with(epoch(2, 5, 50) + kFinished).images_per_second());
}

TEST_F(RunFolders, TellHowTheyEnded) {
  const std::string begun = kFirst;
  const auto ended = [&](const char* more) {
    return with(begun + R"({"type":"summary","seconds":9,"outcome":)" + more + "}\n").outcome;
  };
  EXPECT_EQ(ended(R"("interrupted")"), Outcome::interrupted);
  EXPECT_EQ(ended(R"("finished","early_stopped":true)"), Outcome::stopped_early);
  EXPECT_EQ(ended(R"("finished","time_to_accuracy":{"seconds":3})"), Outcome::reached_target);
  EXPECT_EQ(ended(R"("finished","time_to_accuracy":null)"), Outcome::finished);
  EXPECT_EQ(with(begun).outcome, Outcome::no_end);
  EXPECT_EQ(with("").outcome, Outcome::no_figures);
  // It went on after it was interrupted, and was killed then.
  const std::string summary = R"({"type":"summary","outcome":"interrupted","seconds":9})";
  const std::string resume = R"({"type":"resume","step":4,"epoch":2})";
  const RunRecord resumed = with(begun + summary + "\n" + resume + "\n");
  EXPECT_EQ(resumed.outcome, Outcome::no_end);
  EXPECT_EQ(resumed.resumed, 1);
  EXPECT_EQ(resumed.total_seconds(), 11);  // of the epoch that ended and its validation
}

TEST_F(RunFolders, AreStoppedWithinAnEpochThatDidNotValidate) {
  const RunRecord r =
      with(std::string(kFirst) +
           R"({"type":"epoch","epoch":2,"steps":1,"images":25,"seconds":2,"loss":0.65})"
           "\n"
           R"({"type":"summary","outcome":"interrupted","seconds":13})"
           "\n");
  EXPECT_EQ(r.epochs.back().train.loss, 0.65);
  EXPECT_EQ(r.val_loss(), 0.6);
  EXPECT_EQ(r.outcome, Outcome::interrupted);
}

TEST_F(RunFolders, TellWhereALossIsNaN) {
  const std::string step =
      R"({"type":"step","step":5,"epoch":2,"images":20,"loss":null,"nan":true})";
  const RunRecord failed = with(kFirst + step + "\n");
  EXPECT_EQ(failed.outcome, Outcome::not_a_number);
  EXPECT_EQ(failed.where, "step 5");
  const RunRecord validation = with(
      R"({"type":"epoch","epoch":1,"steps":4,"images":80,"seconds":1,"loss":0.5,"val_loss":null,)"
      R"("nan":true,"val_accuracy":0.5})"
      "\n");
  EXPECT_EQ(validation.outcome, Outcome::not_a_number);
  EXPECT_EQ(validation.where, "epoch 1");
  EXPECT_FALSE(validation.best());  // nothing beside a loss that is no number
  // A step that --on-nan skip passed over is no end.
  const std::string skipped =
      R"({"type":"step","step":5,"epoch":2,"images":20,"skipped":true,"loss":null})";
  EXPECT_EQ(with(kFirst + skipped + "\n" + kSecond + kFinished).outcome, Outcome::finished);
}

TEST_F(RunFolders, TellWhoIsAtWorkAndWhereItCanGoOn) {
  for (const char* name : {"ckpt-000000004", "ckpt-000000008"})
    std::filesystem::create_directory(run / name);
  std::ofstream(run / "ckpt-000000004" / "MANIFEST") << "x";
  EXPECT_EQ(with(kFirst).checkpoint, 4);  // the other has no list of files
  const auto lock = system::FileLock::take(run / ".lock", system::FileLock::Kind::exclusive);
  ASSERT_TRUE(lock);
  EXPECT_EQ(with(kFirst).outcome, Outcome::running);
}

TEST_F(RunFolders, NameWhatCannotBeRead) {
  RunRecord r = with(std::string(kFirst) + R"({"type":"step","st)");
  EXPECT_EQ(
      r.troubles,
      (std::vector<std::string>{"metrics.jsonl: its last line is cut off (the others count)"}));
  r = with(std::string(kFirst) + "nonsense\n[]\n" + R"({"type":"epoch","epoch":-1})" + "\n" +
           kSecond + kFinished);
  EXPECT_EQ(r.troubles,
            (std::vector<std::string>{
                "metrics.jsonl: line 2 is no JSON object (3 such lines; the others count)"}));
  EXPECT_EQ(r.best()->accuracy, 0.9);
  r = with(kSecond);  // the line of the first epoch is lost
  EXPECT_EQ(r.best()->epoch, 2);
  EXPECT_FALSE(r.best()->seconds);
  write("config.json", R"({"batch": -1, "model": ["x"], "lr": "fast", "epochs": 1e99})");
  write("environment.json", "[]");
  r = with(kFirst);
  EXPECT_FALSE(r.batch || r.planned_epochs || r.ranks);
  EXPECT_EQ(r.troubles, std::vector<std::string>{"environment.json: it is no JSON object"});
  std::filesystem::remove(run / "metrics.jsonl");
  r = read_run(run);
  EXPECT_EQ(r.outcome, Outcome::no_figures);
  EXPECT_EQ(r.troubles.size(), 2u);
  EXPECT_TRUE(is_run_folder(run));
  std::filesystem::remove(run / "config.json");
  EXPECT_FALSE(is_run_folder(run));
}

TEST_F(RunFolders, GoBackWhereTheirFilesDo) {
  const RunRecord r = with(std::string(kFirst) + kThird + kSecond + kFinished);
  ASSERT_EQ(r.epochs.size(), 2u);
  EXPECT_EQ(r.epochs.back().epoch, 2);
}

}  // namespace
}  // namespace cputrain::report

// The reference of the command line, and help that is made from it.

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <tuple>

#include "cli/command_line.h"
#include "cli/flags/foreign_words.h"
#include "cli/help_text.h"
#include "composition/program.h"
#include "core/error.h"
#include "core/text.h"
#include "system/print.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::cli {
namespace {

const CommandLineChoices kChoices =
    composition::command_line_choices({{"cpu", {Precision::f32, Precision::bf16}},
                                       {"reference", {Precision::f32, Precision::f64}},
                                       {"cuda", {Precision::exact}}});

std::string message_of(const std::vector<std::string>& words) {
  return testing::refused(ExitCode::usage, [&] { parse_command_line(words, {}, kChoices); });
}

std::string help_of(const std::vector<std::string>& words, std::size_t columns = 80) {
  CommandLineChoices choices = kChoices;
  choices.columns = columns;
  return std::get<std::string>(parse_command_line(words, {}, choices));
}

/// How often a flag stands where an entry of a list begins.
int entries_of(const std::string& help, const FlagEntry& flag) {
  int count = 0;
  for (const std::string& line : split(help, '\n')) {
    count += line == "  " + flag.spelling() || line.starts_with("  " + flag.spelling() + " ");
  }
  return count;
}

std::vector<std::string> words_of(const CommandEntry& command) {
  std::vector<std::string> words{command.name};
  if (!command.topic.empty()) words.push_back(command.topic);
  return words;
}

TEST(HelpText, IsShortAndHelpAllListsEveryFlagOfTheCommand) {
  EXPECT_NE(help_of({"--help"}).find("predict"), std::string::npos);
  const std::string train = help_of({"train", "--help-all"});
  for (const char* flag : {"--batch", "--limit-train", "--threads", "--overwrite", "--config"}) {
    EXPECT_NE(train.find(flag), std::string::npos) << flag;
  }
  EXPECT_EQ(help_of({"predict", "--help-all"}).find("--batch"), std::string::npos);
  EXPECT_NE(help_of({"bench", "--help"}).find("allreduce"), std::string::npos);
  EXPECT_NE(help_of({"bench", "step", "--help"}).find("--repeat"), std::string::npos);
}

TEST(Reference, EveryFlagIsWhole) {
  for (const CommandEntry& command : command_reference(kChoices)) {
    std::set<std::string> seen;
    for (const FlagEntry& flag : command.flags) {
      const std::string place = command.full_name() + " --" + flag.name;
      EXPECT_TRUE(seen.insert(flag.name).second) << place;
      EXPECT_FALSE(flag.help.empty()) << place;
      EXPECT_FALSE(flag.group.empty()) << place;
      EXPECT_EQ(flag.meta.empty(), !flag.takes_value) << place;
      EXPECT_EQ(flag.standard.find("]["), std::string::npos) << place;
      EXPECT_FALSE(flag.help.ends_with(".")) << place;
      for (const std::string& sentence : split(flag.help, '.')) {
        EXPECT_LT(split(sentence, ' ').size(), 30u) << place;
      }
    }
  }
}

TEST(Reference, CommonFlagsAreFlagsOfTheCommandAndFew) {
  for (const CommandEntry& command : command_reference(kChoices)) {
    EXPECT_EQ(command.flags.empty(), !command.topics.empty()) << command.full_name();
    EXPECT_LE(command.common.size(), 16u) << command.full_name();
    EXPECT_TRUE(!command.flags.empty() || command.common.empty()) << command.full_name();
    for (const std::string& name : command.common) {
      const auto found = std::ranges::find(command.flags, name, &FlagEntry::name);
      ASSERT_NE(found, command.flags.end()) << command.full_name() << " --" << name;
      EXPECT_TRUE(found->common);
    }
  }
}

TEST(Reference, DefaultsAreTakenFromTheBracketsAtTheEnd) {
  const CommandEntry train = command_entry("train", "", kChoices);
  const auto flag = [&](const std::string& name) {
    return *std::ranges::find(train.flags, name, &FlagEntry::name);
  };
  EXPECT_EQ(flag("validation-split").standard, "0.1");
  EXPECT_EQ(flag("data").standard, "synthetic");
  EXPECT_NE(flag("data").help.find("coco:TRAIN.json[,VAL.json]"), std::string::npos);
  EXPECT_EQ(flag("clip-norm").standard, "");
  EXPECT_EQ(flag("backend").choices, (std::vector<std::string>{"cpu", "reference", "cuda"}));
  EXPECT_EQ(flag("batch").aliases, std::vector<std::string>{"batch-size"});
  EXPECT_EQ(flag("lr").aliases, std::vector<std::string>{"learning-rate"});
  EXPECT_EQ(flag("shuffle").spelling(), "--[no-]shuffle");
  EXPECT_EQ(std::ranges::count(train.flags, std::string("no-shuffle"), &FlagEntry::name), 0);
}

/// As a person types them: words between blanks. `train` and its weights need not be there.
TEST(Reference, EveryExampleIsAcceptedByTheCommandThatItIsOf) {
  for (const CommandEntry& command : command_reference(kChoices)) {
    EXPECT_FALSE(command.examples.empty()) << command.full_name();
    for (const auto& [example, does] : command.examples) {
      std::vector<std::string> words = split(example, ' ');
      if (words.front() == "mpirun") words.erase(words.begin(), words.begin() + 3);
      ASSERT_EQ(words.front(), "cputrain") << example;
      words.erase(words.begin());
      try {
        const auto parsed = parse_command_line(words, {}, kChoices);
        ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Command>>(parsed)) << example;
      } catch (const Error& error) {
        ADD_FAILURE() << example << ": " << error.what();
      }
    }
  }
}

TEST(Help, NoLineIsWiderThanItMayBe) {
  for (const std::size_t columns : {60u, 80u, 120u}) {
    std::vector<std::string> texts{help_of({"--help"}, columns)};
    for (const CommandEntry& command : command_reference(kChoices)) {
      for (const char* flag : {"--help", "--help-all"}) {
        std::vector<std::string> words = words_of(command);
        words.push_back(flag);
        texts.push_back(help_of(words, columns));
      }
    }
    for (const std::string& text : texts) {
      for (const std::string& line : split(text, '\n')) EXPECT_LE(line.size(), columns) << line;
    }
  }
}

TEST(Help, HelpAllHasEveryFlagOnceAndHelpTheCommonOnes) {
  for (const CommandEntry& command : command_reference(kChoices)) {
    if (!command.topics.empty()) continue;
    std::vector<std::string> words = words_of(command);
    words.push_back("--help");
    const std::string few = help_of(words);
    words.back() = "--help-all";
    const std::string all = help_of(words);
    std::size_t shown = 0;
    for (const FlagEntry& flag : command.flags) {
      EXPECT_EQ(entries_of(all, flag), 1) << command.full_name() << " --" << flag.name;
      shown += static_cast<std::size_t>(entries_of(few, flag));
      if (flag.common) {
        EXPECT_EQ(entries_of(few, flag), 1) << command.full_name() << flag.name;
      }
    }
    const std::string more = std::to_string(command.flags.size() - shown) +
                             " more flags: cputrain " + command.full_name() + " --help-all";
    EXPECT_EQ(few.find(more) == std::string::npos, command.all_common()) << few;
  }
}

TEST(Help, DefaultsStandInBracketsAndLongPhrasesHang) {
  const std::string text = help_of({"train", "--help-all"});
  EXPECT_NE(
      text.find("  --label-smoothing X     mix X of all classes into the labels of training [0]\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("  --[no-]shuffle          take the images"), std::string::npos) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("\n  --weight-decay X +take [^\n]+\n {26}\\S")));
}

TEST(Help, OfTrainingBeginsWithFineTuningAndFitsAScreenAndAHalf) {
  const std::string few = help_of({"train", "--help"});
  EXPECT_LE(split(few, '\n').size(), 60u) << few;
  const CommandEntry train = command_entry("train", "", kChoices);
  EXPECT_EQ(train.examples.front().first,
            "cputrain --model efficientnet-lite0 --weights imagenet --freeze all-but-head --data "
            "photos");
  EXPECT_EQ(few.find("--backend"), std::string::npos);
}

TEST(Help, ShortHelpHasTheFirstClauseOfAPhrase) {
  const std::string few = help_of({"train", "--help"}), all = help_of({"train", "--help-all"});
  EXPECT_NE(few.find("such as\n                          flip,shear:0.2 [the model's]\n"),
            std::string::npos)
      << few;
  EXPECT_EQ(few.find("cutout:PIXELS"), std::string::npos);
  EXPECT_NE(all.find("cutout:PIXELS"), std::string::npos);
}

TEST(Help, WhatDevelopersNeedComesLast) {
  for (const CommandEntry& command : command_reference(kChoices)) {
    bool behind = false;
    for (const FlagEntry& flag : command.flags) {
      const bool is_theirs = flag.group == CommandEntry::kDevelopers;
      behind = behind || is_theirs;
      EXPECT_TRUE(is_theirs || !behind || flag.group == CommandEntry::kGeneral)
          << command.full_name() << " --" << flag.name;
      EXPECT_FALSE(is_theirs && flag.common) << command.full_name() << " --" << flag.name;
    }
  }
  const std::string all = help_of({"train", "--help-all"});
  const std::size_t heading = all.find("\nFor developers:\n");
  ASSERT_NE(heading, std::string::npos) << all;
  for (const char* flag : {"end-with", "settled-steps", "prefetch", "data-on-device", "sharding"}) {
    EXPECT_GT(all.find(std::string("\n  --") + flag), heading) << flag;
  }
}

TEST(Help, AProgramWithoutAWordHelpsAndTrainsNothing) {
  EXPECT_EQ(help_of({}), help_of({"--help"}));
  const auto parsed = parse_command_line({}, {{"CPUTRAIN_BATCH", "8"}}, kChoices);
  EXPECT_TRUE(std::holds_alternative<std::string>(parsed));
}

TEST(Help, IsThatOfTheCommandThatIsNamed) {
  EXPECT_EQ(help_of({"help", "predict"}), help_of({"predict", "--help"}));
  EXPECT_EQ(help_of({"help", "bench", "step"}), help_of({"bench", "step", "-h"}));
  EXPECT_EQ(help_of({"help"}), help_of({"--help"}));
  EXPECT_EQ(help_of({"--batch", "8", "--help"}), help_of({"train", "--help"}));
  EXPECT_EQ(help_of({"--help-all"}), help_of({"train", "--help-all"}));
  EXPECT_NE(help_of({"predict", "--help"}).find("Usage: cputrain predict [FLAGS] IMAGE..."),
            std::string::npos);
  EXPECT_NE(help_of({"data", "--help"}).find("synth"), std::string::npos);
  EXPECT_NE(message_of({"help", "predct"}).find("did you mean predict"), std::string::npos);
  EXPECT_NE(message_of({"help", "bench", "stp"}).find("did you mean step"), std::string::npos);
}

TEST(Help, CallsTheProgramAsItWasCalled) {
  CommandLineChoices choices = kChoices;
  choices.program = "./cputrain";
  const auto text = std::get<std::string>(parse_command_line({"--help"}, {}, choices));
  EXPECT_NE(text.find("Usage: ./cputrain"), std::string::npos);
  EXPECT_NE(text.find("mpirun -np 4 ./cputrain --data photos"), std::string::npos);
}

TEST(Help, HintsCallTheProgramAsItWasCalled) {
  CommandLineChoices choices = kChoices;
  choices.program = "./cputrain";
  for (const auto& [words, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--gpus", "2"}, "mpirun -np N ./cputrain --backend"},
           {{"predict", "--weights", "w"}, ": ./cputrain predict"}}) {
    try {
      parse_command_line(words, {}, choices);
      ADD_FAILURE() << words.front();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  }
}

TEST(Help, WrapsTextsAndCommands) {
  EXPECT_EQ(system::wrapped("one two three", 0, 7), "one two\nthree");
  EXPECT_EQ(system::wrapped("one two three", 4, 11), "one two\n    three");
  EXPECT_EQ(system::wrapped("unbreakable", 4, 10), "unbreakable");
  EXPECT_EQ(wrapped_command({"cputrain", "--data", "photos", "--epochs", "20"}, 2, 30),
            "  cputrain --data photos \\\n    --epochs 20");
}

TEST(Hints, FlagsOfOtherFrameworksAreCalledSoHere) {
  for (const auto& [word, says] : std::vector<std::pair<std::string, std::string>>{
           {"--base_lr=0.1", "use --lr"},
           {"--num-epochs", "use --epochs"},
           {"--num-gpus=2", "mpirun -np N cputrain --backend cuda"},
           {"-v", "use --verbose 3"},
           {"--train-dir", "--data DIR"},
           {"--nproc-per-node", "mpirun -np N"},
           {"--pretrained", "use --weights with a file or the folder of a run"},
           {"--compile", "it is not needed"},
           {"--wandb", "wandb sync RUN"},
           {"--mlflow", "mlflow.log_metrics"},
           {"--tensorboard", "tensorboard --logdir RUN"},
           {"--hub", "use --weights imagenet"},
           {"--multi-label", "train a network for each label"},
           {"-batch", "did you mean --batch?"},
           {"--bacth", "did you mean --batch?"}}) {
    EXPECT_NE(message_of({word, "8"}).find(says), std::string::npos) << message_of({word, "8"});
  }
  for (const auto& [command, word, says] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"export", "--tflite", "onnx2tf -i FILE"},
           {"export", "--openvino", "which OpenVINO reads"},
           {"export", "--int8", "onnxruntime.quantization"},
           {"export", "--opset", "of opset 13"},
           {"export", "--format", "use --onnx FILE, --safetensors FILE"},
           {"predict", "--threshold", "--csv FILE and --json FILE have the probability"},
           {"predict", "--gradcam", "cputrain eval --page FILE"},
           {"eval", "--auc", "area under the ROC curve"},
           {"eval", "--multi-label", "each image has one class here"}}) {
    const std::string message = message_of({command, word, "8"});
    EXPECT_NE(message.find(says), std::string::npos) << message;
    EXPECT_EQ(message.find("did you mean"), std::string::npos) << message;
  }
  EXPECT_EQ(message_of({"sweep", "-np", "4"}).find("mpirun"), std::string::npos);
  EXPECT_NE(message_of({"sweep", "-np", "4"}).find("did you mean --np?"), std::string::npos);
}

TEST(Hints, OnlyFlagsThatTheCommandHasAreNamed) {
  EXPECT_EQ(message_of({"export", "--base-lr", "1"}).find("--lr"), std::string::npos);
  EXPECT_NE(message_of({"predict", "--epochs", "1"}).find("it is a flag of train, tune, sweep"),
            std::string::npos)
      << message_of({"predict", "--epochs", "1"});
  const std::set<std::string> none;
  EXPECT_EQ(hint_for_flag("base-lr", none, "cputrain"), "");
}

TEST(Hints, ValuesOfOtherFrameworks) {
  EXPECT_NE(message_of({"--backend", "gpu"}).find("did you mean cuda?"), std::string::npos);
  EXPECT_NE(message_of({"sweep", "--backend", "gpu"}).find("did you mean cuda?"),
            std::string::npos);
  EXPECT_EQ(message_of({"--precision", "fp32"}),
            "--precision fp32: must be one of float, bf16, exact, double; did you mean float?");
  EXPECT_NE(message_of({"--backend", "cpuu"}).find("did you mean cpu?"), std::string::npos);
  for (const auto& [flag, value, says] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"--optimizer", "adam-w", "; did you mean adamw?"},
           {"--monitor", "val_accuracy", "; did you mean accuracy?"},
           {"--monitor", "val_loss", "; did you mean loss?"},
           {"--optimizer", "nesterov", "; use sgd:momentum=0.9,nesterov"},
           {"--optimizer", "nadam", "; did you mean adam?"},
           {"--schedule", "OneCycleLR", "; use cosine with --warmup-epochs"},
           {"--schedule", "cosine_annealing:0.1", "; did you mean cosine?"},
           {"--schedule", "multistep", "; use piecewise:EPOCH:FACTOR"},
           {"--compress", "top-k", "; did you mean topk?"}}) {
    const std::string message = message_of({flag, value});
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }
  EXPECT_EQ(message_of({"--schedule", "cosine:2"}).find("did you mean"), std::string::npos);
}

TEST(Hints, FirstWordsOfOtherFrameworks) {
  for (const auto& [word, says] : std::vector<std::pair<std::string, std::string>>{
           {"evaluate", "; use eval: cputrain eval --weights RUN"},
           {"test", "; use eval"},
           {"val", "; use eval"},
           {"fit", "; use train"},
           {"models", "cputrain train --help lists them"},
           {"completion", "come with the package"},
           {"epochs=3", "; flags begin with two hyphens: --epochs=3"},
           {"predct", "; did you mean predict?"}}) {
    EXPECT_NE(message_of({word}).find(says), std::string::npos) << message_of({word});
  }
}

TEST(Hints, OfCommandsThatReadWeights) {
  const auto says = [](const std::vector<std::string>& words, const std::string& part) {
    std::vector<std::string> all{"predict", "--weights", "w"};
    all.insert(all.end(), words.begin(), words.end());
    return message_of(all).find(part) != std::string::npos;
  };
  EXPECT_TRUE(says({"--batch-size", "8"}, "use --micro-batch N"));
  EXPECT_TRUE(says({"--model", "x"}, "use --weights"));
  EXPECT_TRUE(says({"--output", "x.csv"}, "use --csv FILE, or --json FILE"));
  EXPECT_TRUE(says({"--source", "x.jpg"}, "images stand without a flag"));
  EXPECT_NE(message_of({"eval", "runs/a"}).find("--weights runs/a"), std::string::npos);
  EXPECT_NE(message_of({"predict", "a.jpg"}).find("needs --weights"), std::string::npos);
}

TEST(Hints, WordsThatAreFolders) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_NE(message_of({path}).find("use --data " + path), std::string::npos);
  EXPECT_NE(message_of({"train", path}).find("--data " + path), std::string::npos);
  std::ofstream(folder.path() / "file") << "text";
  for (std::vector<std::string> words :
       {std::vector<std::string>{"train"}, {"sweep"}, {"simulate"}, {"report", path}}) {
    words.insert(words.end(), {"--out", path + "/file"});
    const std::string message = message_of(words);
    EXPECT_NE(message.find("--out " + path + "/file: is a file"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace cputrain::cli

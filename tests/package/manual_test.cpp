// Manual page and completions, as cputrain_manual writes them.

#include <gtest/gtest.h>

#include "cli/help_text.h"
#include "cli/manual/manual_files.h"
#include "composition/program.h"
#include "core/text.h"

namespace cputrain::cli {
namespace {

const CommandLineChoices kChoices =
    composition::command_line_choices({{"cpu", {Precision::f32, Precision::bf16}},
                                       {"reference", {Precision::f32, Precision::f64}},
                                       {"cuda", {Precision::exact}}});

/// The text from one mark on, up to the next one.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  return text.substr(from, text.find(end, from + begin.size()) - from);
}

std::string in_man_page(const std::string& spelling) {
  return "\\fB" + replaced(spelling, "-", "\\-") + "\\fR";
}

CommandEntry made_up(FlagEntry flag) {
  CommandEntry command;
  command.name = "train";
  command.usage = "cputrain [train] [FLAGS]";
  command.flags = {std::move(flag)};
  return command;
}

FlagEntry flag(const std::string& name, const std::string& meta, const std::string& help) {
  FlagEntry entry;
  entry.name = name;
  entry.meta = meta;
  entry.help = help;
  entry.group = "Group";
  entry.takes_value = !meta.empty();
  return entry;
}

TEST(Manual, EveryFlagOfEveryCommandIsInEachFile) {
  const auto commands = command_reference(kChoices);
  const std::string man = man_page(commands), bash = bash_completion(commands),
                    zsh = zsh_completion(commands);
  int flags = 0;
  for (const CommandEntry& command : commands) {
    if (!command.topics.empty()) continue;
    std::string name = command.full_name();
    const std::string in_man = name == "train" ? between(man, ".SH FLAGS OF TRAIN\n", ".SH")
                                               : between(man, ".SS Flags of " + name + "\n", ".S");
    const std::string in_bash = between(bash, "\n" + name + "|flags|", "\n");
    const std::string in_zsh =
        between(zsh, "\n_cputrain_" + replaced(name, " ", "_") + "() {", "\n}");
    for (const FlagEntry& entry : command.flags) {
      ++flags;
      EXPECT_NE(in_man.find(in_man_page(entry.spelling())), std::string::npos)
          << name << " " << entry.name;
      for (const std::string& word : spellings_of(entry)) {
        EXPECT_NE((in_bash + " ").find(word), std::string::npos) << name << " " << word;
        EXPECT_NE(in_zsh.find("'" + word + (entry.takes_value ? "=[" : "[")), std::string::npos)
            << name << " " << word;
      }
    }
  }
  EXPECT_GT(flags, 200);
}

TEST(Manual, FilesAreThoseThatAreInstalled) {
  std::vector<std::string> paths;
  for (const auto& [path, text] : manual_files(command_reference(kChoices))) {
    paths.push_back(path);
    EXPECT_TRUE(text.ends_with('\n')) << path;
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"bash/cputrain", "man/cputrain.1", "zsh/_cputrain"}));
}

TEST(Manual, NamesDefaultsChoicesAndOtherWords) {
  FlagEntry entry = flag("way", "NAME", "how it goes");
  entry.standard = "shm";
  entry.choices = {"shm", "ring"};
  entry.aliases = {"the-way"};
  const std::string man = man_page({made_up(entry)});
  EXPECT_NE(man.find(".TP\n\\fB\\-\\-way\\fR \\fINAME\\fR\nhow it goes\n(one of shm, ring)\n"
                     "(default: shm)\nAlso \\fB\\-\\-the\\-way\\fR.\n"),
            std::string::npos)
      << man;
  entry.help = "shm or ring";  // which says so already
  EXPECT_EQ(man_page({made_up(entry)}).find("(one of"), std::string::npos);
}

TEST(Manual, NothingInTextsIsTakenForMacros) {
  const std::string man = man_page({made_up(flag("odd", "", ".so /etc/passwd \\fBx --out"))});
  EXPECT_NE(man.find("\n\\&.so /etc/passwd \\efBx \\-\\-out\n"), std::string::npos) << man;
  const std::string quote = man_page({made_up(flag("odd", "", "'x"))});
  EXPECT_NE(quote.find("\n\\&'x\n"), std::string::npos);
}

TEST(Completion, ShellsTakeNothingInTextsForTheirOwn) {
  FlagEntry entry = flag("odd", "A:B", "it's [here]: $(x)");
  entry.choices = {"a:b"};
  EXPECT_NE(
      zsh_completion({made_up(entry)}).find("'--odd=[it'\\''s \\[here\\]\\: $(x)]:A\\:B:(a\\:b)'"),
      std::string::npos);
  EXPECT_NE(bash_completion({made_up(entry)}).find("train|--odd|one||a:b\n"), std::string::npos);
}

TEST(Completion, ValuesAreThoseOfTheFlag) {
  EXPECT_EQ(values_of(flag("x", "", "")), FlagValues{});
  EXPECT_EQ(values_of(flag("x", "N", "")), FlagValues{});
  EXPECT_EQ(values_of(flag("x", "FILE", "")), (FlagValues{{}, FlagValues::kFiles, false}));
  EXPECT_EQ(values_of(flag("x", "DIR", "")), (FlagValues{{}, FlagValues::kFolders, false}));
  EXPECT_EQ(values_of(flag("x", "none|six", "")), (FlagValues{{"none", "six"}, "", false}));
  EXPECT_EQ(values_of(flag("x", "NAME|FILE", "")), (FlagValues{{}, FlagValues::kFiles, false}));
  FlagEntry list = flag("x", "NAME,...", "");
  list.choices = {"a", "b"};
  EXPECT_EQ(values_of(list), (FlagValues{{"a", "b"}, "", true}));
}

TEST(Completion, AFlagWhoseValuesDifferByCommandIsAskedForByCommand) {
  FlagEntry one = flag("way", "a|b", ""), other = flag("way", "c|d", "");
  CommandEntry train = made_up(one), sweep = made_up(other);
  sweep.name = "sweep";
  const std::string bash = bash_completion({train, sweep});
  EXPECT_NE(bash.find("train|--way|one||a b\n"), std::string::npos) << bash;
  EXPECT_NE(bash.find("sweep|--way|one||c d\n"), std::string::npos) << bash;
}

}  // namespace
}  // namespace cputrain::cli

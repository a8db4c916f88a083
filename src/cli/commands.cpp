#include "cli/commands.h"

#include "core/error.h"

namespace cputrain::cli {
namespace {

class GroupCommand final : public CommandWith<> {
 public:
  explicit GroupCommand(CommandEntry entry) : CommandWith({}), entry_(std::move(entry)) {}
  CommandEntry help() const override { return entry_; }
  void add_flags(Flags&, const CommandLineChoices&) override {}
  ExitCode run(const Services&) override {
    fail(ExitCode::internal, "a command without its topic was run");
  }

 private:
  CommandEntry entry_;
};

}  // namespace

std::unique_ptr<Command> make_group(CommandEntry entry) {
  return std::make_unique<GroupCommand>(std::move(entry));
}

std::vector<std::unique_ptr<Command>> make_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  for (MakeCommand* make : kCommands) commands.push_back(make());
  return commands;
}

}  // namespace cputrain::cli

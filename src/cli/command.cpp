#include "cli/command.h"

#include "cli/weights_choice.h"

namespace cputrain::cli {

void Command::choose_files(bool leads, const training::Services& services) {
  choose_weights(*this, leads, services.read_keras);
}

namespace {

class GroupCommand final : public CommandWith<> {
 public:
  explicit GroupCommand(CommandEntry entry) : CommandWith({}), entry_(std::move(entry)) {}
  CommandEntry help() const override { return entry_; }
  void add_flags(Flags&, const CommandLineChoices&) override {}
  ExitCode run(const training::Services&) override {
    fail(ExitCode::internal, "a command without its topic was run");
  }

 private:
  CommandEntry entry_;
};

}  // namespace

std::unique_ptr<Command> make_group(CommandEntry entry) {
  return std::make_unique<GroupCommand>(std::move(entry));
}

std::vector<std::unique_ptr<Command>> make_commands(const CommandLineChoices& choices) {
  std::vector<std::unique_ptr<Command>> commands;
  for (const MakeCommand& make : choices.commands) commands.push_back(make());
  return commands;
}

}  // namespace cputrain::cli

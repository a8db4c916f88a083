// Questions to a real GPU: see README.md.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "cuda/probes/answers.h"
#include "cuda/probes/child.h"
#include "cuda/probes/groups.h"

namespace cputrain::cuda::probes {
namespace {

constexpr int kFailed = 1, kWrongUse = 2, kNotWritten = 74, kSkipped = 77;
constexpr std::chrono::seconds kMostOfAGroup{8}, kMostOfAll{25};
// How this program starts itself for one group.
constexpr const char *kAsk = "--ask", *kHold = "--hold-context", *kLook = "--look";

constexpr const char* kHelp =
    R"(Asks a GPU what an emulated one cannot answer:  probes [--json FILE] [GROUP...]
Prints one line for each answer, "name: answer". Each group of questions has a process of its own,
so that one which fails does not cost the others. Changes no settings of the GPU.

  --json FILE  writes the answers to FILE, too; with - the array alone is standard output
  --help       prints this

Ends with 0 where all groups have answered, 1 where one has not, 77 where there is no GPU. A file
that cannot be written is 74, a wrong word is 2. tests/cuda/probes/README.md has the questions.
Groups, all of them unless some are named:
)";

struct Words {
  std::vector<Group> chosen;
  std::string json;
  bool help = false;
};

struct WrongWords : std::runtime_error {
  using std::runtime_error::runtime_error;
};

const Group& group_named(const std::string& name) {
  const auto found = std::find_if(groups().begin(), groups().end(),
                                  [&](const Group& group) { return group.name == name; });
  if (found != groups().end()) return *found;
  throw WrongWords("unknown word " + name + "; --help names the groups");
}

Words parsed(const std::vector<std::string>& arguments) {
  Words said;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--help" || arguments[i] == "-h") {
      said.help = true;
    } else if (arguments[i] == "--json") {
      if (++i == arguments.size()) throw WrongWords("--json needs a file, or -");
      said.json = arguments[i];
    } else {
      said.chosen.push_back(group_named(arguments[i]));
    }
  }
  if (said.chosen.empty()) said.chosen = groups();
  return said;
}

class Journal {
 public:
  explicit Journal(std::string json) : json_(std::move(json)) {}

  void add(const Answer& answer) {
    answers_.push_back(answer);
    (json_ == "-" ? std::cerr : std::cout) << printed(answer) << std::endl;
  }

  /// After each group: what ends this program early does not cost the answers so far.
  void keep() const {
    if (json_.empty() || json_ == "-") return;
    const std::string beside = json_ + ".tmp";
    std::ofstream file(beside);
    file << json_of(answers_) << std::flush;
    file.close();
    std::error_code error;
    if (file) std::filesystem::rename(beside, json_, error);
    if (!file || error) {
      throw std::runtime_error(json_ + " cannot be written; name another file after --json");
    }
  }

  void end() const {
    keep();
    if (json_ == "-") std::cout << json_of(answers_) << std::flush;
  }

 private:
  std::string json_;
  std::vector<Answer> answers_;
};

/// Whether the group's process ended well.
bool ask(const Group& group, Clock::time_point end, Journal& journal) {
  const Clock::time_point until = std::min(end, Clock::now() + kMostOfAGroup);
  const auto failed = [&](const std::string& why) {
    journal.add({.name = group.name, .text = "no answer: " + why});
    return false;
  };
  if (Clock::now() >= end) return failed("the time for all groups was over");
  Child child({kAsk, group.name});
  std::string line;
  Child::Read read = Child::Read::line;
  while ((read = child.read_line(line, until)) == Child::Read::line) {
    journal.add(received(line, group.name));
  }
  if (read == Child::Read::late) return failed("it did not end in time, and was ended");
  const auto code = child.exit_code(until);
  if (!code) return failed("its process did not end");
  return *code == 0 || failed(words("its process ended with %d", *code));
}

/// Why there is no device, asked in a process of its own: a driver may do anything.
std::string why_none() {
  Child child({kLook});
  std::string line;
  if (child.read_line(line, Clock::now() + kMostOfAGroup) == Child::Read::line) return line;
  return "the CUDA driver does not answer";
}

/// Without a process that uses it the driver puts a GPU to sleep, and waking it up takes seconds.
/// So one holds a context meanwhile, where several are allowed.
void wait_for_keeper(Child& keeper) {
  std::string line;
  static_cast<void>(keeper.read_line(line, Clock::now() + kMostOfAGroup));
}

int ask_all(const Words& said) {
  Journal journal(said.json);
  journal.keep();  // a file that cannot be written is known now
  if (const std::string why = why_none(); !why.empty()) {
    journal.add({.name = "skipped", .text = "no device: " + why});
    journal.end();
    return kSkipped;
  }
  Child keeper({kHold});
  wait_for_keeper(keeper);
  const Clock::time_point end = Clock::now() + kMostOfAll;
  bool good = true;
  for (const Group& group : said.chosen) {
    good = ask(group, end, journal) && good;
    journal.keep();
  }
  journal.end();
  return good ? 0 : kFailed;
}

/// What this program does in the processes that it starts.
int in_child(const std::string& what, const std::string& name) {
  if (what == kLook) std::cout << why_nothing_to_ask() << std::endl;
  if (what == kHold) hold_context();
  if (what == kAsk) group_named(name).ask();
  return 0;
}

void print_help() {
  std::cout << kHelp;
  for (const Group& group : groups()) std::printf("  %-17s %s\n", group.name, group.what);
}

int run(const std::vector<std::string>& arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  if (first == kAsk || first == kHold || first == kLook) {
    try {
      return in_child(first, arguments.back());
    } catch (const std::exception& e) {
      std::cout << sent({.name = arguments.back(), .text = e.what()}) << std::endl;
      return kFailed;
    }
  }
  const Words said = parsed(arguments);
  if (!said.help) return ask_all(said);
  print_help();
  return 0;
}

}  // namespace
}  // namespace cputrain::cuda::probes

int main(int argc, char** argv) {
  using namespace cputrain::cuda::probes;
  try {
    return run({argv + 1, argv + argc});
  } catch (const WrongWords& e) {
    std::cerr << "probes: " << e.what() << '\n';
    return kWrongUse;
  } catch (const std::exception& e) {
    std::cerr << "probes: " << e.what() << '\n';
    return kNotWritten;
  }
}

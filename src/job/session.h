#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "job/services.h"
#include "job/training_flags.h"
#include "system/clock.h"

namespace cputrain {

/// What every command that computes works with: ranks, their threads and a backend.
struct Session {
  std::unique_ptr<Communicator> communicator;
  Machine machine;
  int threads = 1;                     ///< of this rank
  int most_threads = 1;                ///< of any rank: for choices that all make alike
  JobPlacement plan;                   ///< of all ranks
  std::vector<std::string> placement;  ///< the plan, a line a kind of host; warnings after it
  std::unique_ptr<Backend> backend;
  Stopwatch since_start;
  bool quiet = false;  ///< --verbose 0: warnings and errors alone

  bool leads() const { return communicator->rank() == 0; }
  const RankPlan& place() const {
    return plan.ranks[static_cast<std::size_t>(communicator->rank())];
  }
};

/// Error(usage) where this process cannot have the threads that it needs.
Session start_session(const TrainingFlags&, const Services&);

/// Threads of this process beside those that compute.
int threads_beside(const TrainingFlags&, const Session&);

/// A line on standard error from rank 0, unless it is quiet: standard output is for results.
void say(const Session&, const std::string& line);

/// "warning: ..." on standard error from rank 0, quiet or not.
void warn(const Session&, const std::string& what);

/// The first of the ranks' texts that is not empty: what one of them has met, all know. Collective.
std::string first_text(const Session&, const std::string& mine);

/// What was found as data, and what is odd about it.
void say_data(const Session&, const DataSource&);
/// The latter alone.
void say_warnings(const Session&, const DataSource&);

/// A line on standard error such as "Decoding 12,000/22,500 - ETA: 0:21", redrawn on a terminal,
/// else every 30 s. Silent on ranks other than 0 and where the session is quiet.
Progress progress_line(const Session&, const std::string& verb);

/// Decodes with a progress line on standard error; damaged files are named there.
DecodedData decode_with_progress(const Session&, const Services&, const TrainingFlags&,
                                 const DataSource&, Shape image, Resize);

/// The machine's limits for all ranks together, measured while all of them work. Collective.
Limits measure_together(const Session&);

/// How many images a rank computes at once: what was asked, else 8 on one thread and 14 a thread up
/// to 32 on several, with several ranks 16; twice the threads at least; 4 where ranks are many
/// times more than hardware threads.
int micro_batch_size(const TrainingFlags&, const Session&);

/// A program for evaluation only, with its weights (zeros at first) in the backend's memory.
struct Inference {
  OwnedArray memory;
  std::unique_ptr<Program> program;

  const Array& weights() const { return memory.array(); }
};

Inference make_inference(const Session&, const Graph&, std::vector<int> sizes);

/// Fills it from a weight file and warns, on standard error, of weights that are no numbers. Rank 0
/// only. Error(data).
void load_to_use(const std::string& file, const Inference&);

/// Throws Error(disagree) where the ranks' texts differ; rank 0 says before it who has which.
void check_agreement(const Session&, const std::string& what, const std::string& mine);

/// Writes text to FILE, or to standard output for "-". Rank 0 only.
void write_result(const Session&, const std::string& file, const std::string& text);

}  // namespace cputrain

#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/pulse.h"
#include "comm/watch/findings.h"
#include "comm/watch/narrator.h"
#include "system/signals.h"
#include "system/usage/work_meter.h"
#include "system/usage/write_queue.h"

/// What a rank finds out about itself: where its work is, what it lacks, and whether its storage
/// answers. Storage that does not is named, and no reason for a job to survive a signal.
namespace cputrain::watch {

/// Something that this process writes, on a thread of its own.
struct Writing {
  std::string what;  ///< "a checkpoint"
  const system::WorkMeter* meter;
  std::shared_ptr<const system::DiskWrites> disk{};  ///< that it goes to; null: not known
};

/// What a rank that writes has its watch look after. All is borrowed.
struct StorageDuty {
  std::filesystem::path folder;
  std::vector<Writing> writings;
  system::WriteQueue* logs;             ///< where it is full, steps wait for its lines
  const system::SignalWatch* signals;   ///< null: no signal can end it
  std::function<std::string()> newest;  ///< the newest whole checkpoint; touches no storage
};

/// What waits for storage, and for how long.
struct StorageSilence {
  std::vector<std::string> what{};
  double seconds = 0;
  bool keeps_steps = false;
  double still = 0;  ///< the part of `seconds` since the disk last completed a write
  /// Seconds since a writer at work got on; infinite where none was lately. A thread that waits for
  /// it is as idle.
  double idle = std::numeric_limits<double>::infinity();
};

/// What becomes of a job that is asked to end while storage is silent.
enum class Farewell {
  none,
  announced,  ///< to be printed once: the job will end
  now,
};

/// A job that is asked to end leaves storage so many seconds in which nothing gets on; after a
/// second signal as many fewer.
inline constexpr double kStorageGrace = 20, kStorageGraceAfterTwo = 2;
inline constexpr double kBusyOthers = 10 * kStorageGrace;

/// A writer that uses no CPU time, and would not if it had one, waits for storage, which may be
/// slow and get on. Where its disk cannot be told from others, what these complete counts for
/// kBusyOthers seconds. Times are seconds of the caller's clock.
class StorageAccount {
 public:
  explicit StorageAccount(std::vector<Writing>);
  StorageSilence look(double now);
  /// What becomes of the job, for which so many signals have come that ask it to end.
  Farewell farewell(const StorageSilence&, int signals, double now);

 private:
  struct Known {
    Writing writing;
    std::optional<double> cpu{};  ///< when it was last looked at
    std::uint64_t completed = 0;  ///< writes of its disk, then
    double since = 0, still_since = 0;
  };
  std::vector<Known> known_;
  double moved_ = 0;                   ///< when a writer last got on
  std::optional<double> at_work_{};    ///< when one was last at work
  std::optional<double> signalled_{};  ///< when the first signal was seen
  bool announced_ = false;
};

/// What is printed about it: when it was silent for the time of the warning, each minute, and when
/// it answers again. The place is the rank's own.
class StorageNarrator {
 public:
  StorageNarrator(std::filesystem::path folder, int rank, std::string host, const Limits&);
  std::optional<Word> hear(const StorageSilence&, const comm::Place&, double now);

 private:
  Word word_of(const char* event, const std::string& line, double seconds,
               const comm::Place&) const;

  std::string folder_;
  int rank_;
  std::string host_;
  double warns_after_;
  std::optional<double> told_{};  ///< when it was last printed
  double began_ = 0;
};

/// Where an account learns what this process lacks.
struct Surroundings {
  std::function<std::vector<system::ThreadState>()> threads;  ///< of this process
  std::function<bool()> launcher_stands;  ///< whether a signal has stopped what started the ranks
};
/// As the kernel shows them. A process that no launcher started has none.
Surroundings real_surroundings();

/// What a rank reports of itself, from its pulse, the CPU time that it uses, and what its threads
/// lack. Made by the working thread, for the watch's.
class OwnAccount {
 public:
  OwnAccount(std::shared_ptr<comm::Pulse>, const Limits&, Surroundings = real_surroundings());
  /// `now` in seconds of a clock that does not go back.
  Report look(double now);

 private:
  bool uses_cpu(double seconds);
  system::Shortage shortage(double seconds);
  Cause lack_of(const system::Shortage&, double seconds) const;
  void look_closer(double now);

  std::shared_ptr<comm::Pulse> pulse_;
  const double sample_;
  const Surroundings surroundings_;
  const int working_thread_;
  std::uint64_t moves_ = 0;
  double since_ = 0, busy_ = 0, fair_ = 0, sampled_ = 0, process_ = 0, working_ = 0;
  Cause lacks_ = Cause::none;
  std::vector<system::ThreadState> threads_{};  ///< at the last look; none while work gets on
};

}  // namespace cputrain::watch

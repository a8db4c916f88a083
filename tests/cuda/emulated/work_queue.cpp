#include "emulated/work_queue.h"

#include <algorithm>
#include <utility>

#include "emulated/fault.h"

namespace cputrain::emulated {

WorkPointer WorkQueue::put(std::function<void()> run, const std::vector<WorkPointer>& after) {
  auto work = std::make_shared<Work>();
  work->run = std::move(run);
  work->number = next_number_++;
  for (const WorkPointer& before : after) {
    if (!before || before->done) continue;
    before->followers.push_back(work);
    ++work->missing;
  }
  ++left_;
  if (work->missing == 0) {
    ready_.push_back(work);
  } else {
    waiting_.push_back(work);
  }
  return work;
}

WorkPointer WorkQueue::put_meeting(std::function<void()> run, int parties) {
  auto work = std::make_shared<Work>();
  work->run = std::move(run);
  work->number = next_number_++;
  work->missing = parties;
  missing_parties_ += parties;
  ++left_;
  waiting_.push_back(work);
  return work;
}

void WorkQueue::arrive(const WorkPointer& meeting, const std::vector<WorkPointer>& after) {
  if (meeting->done) return;  // it was dropped
  --missing_parties_;
  for (const WorkPointer& before : after) {
    if (!before || before->done) continue;
    before->followers.push_back(meeting);
    ++meeting->missing;
  }
  if (--meeting->missing == 0) ready_.push_back(meeting);
}

bool WorkQueue::can_go_on() const {
  if (!ready_.empty()) return true;
  if (missing_parties_ == 0) throw Fault("streams wait for each other for ever");
  return false;
}

WorkPointer WorkQueue::take() {
  const auto earlier = [](const WorkPointer& a, const WorkPointer& b) {
    return a->number < b->number;
  };
  auto chosen = ready_.begin();
  switch (settings().order) {
    case Order::forward:
      chosen = std::min_element(ready_.begin(), ready_.end(), earlier);
      break;
    case Order::reverse:
      chosen = std::max_element(ready_.begin(), ready_.end(), earlier);
      break;
    case Order::random:
      chosen += static_cast<std::ptrdiff_t>(random_() % ready_.size());
      break;
  }
  std::swap(*chosen, ready_.back());
  WorkPointer work = std::move(ready_.back());
  ready_.pop_back();
  return work;
}

void WorkQueue::run_one() {
  const WorkPointer work = take();
  work->done = true;  // also where it fails: nobody must wait for it
  --left_;
  if (work->run) std::exchange(work->run, nullptr)();
  work->ended = std::chrono::steady_clock::now();
  for (const WorkPointer& follower : work->followers) {
    if (--follower->missing == 0) ready_.push_back(follower);
  }
  work->followers.clear();
}

bool WorkQueue::run_until(const WorkPointer& target) {
  try {
    while (target && !target->done) {
      if (!can_go_on()) return false;
      run_one();
    }
  } catch (...) {
    drop_all();
    throw;
  }
  if (left_ == 0) waiting_.clear();
  return true;
}

void WorkQueue::run_all() {
  try {
    while (left_ > 0 && can_go_on()) run_one();
  } catch (...) {
    drop_all();
    throw;
  }
  if (left_ == 0) waiting_.clear();
}

void WorkQueue::drop_all() {
  for (const WorkPointer& work : ready_) work->done = true;
  for (const auto& waiting : waiting_) {
    if (const WorkPointer work = waiting.lock()) {
      work->done = true;
      work->followers.clear();
    }
  }
  for (const WorkPointer& work : ready_) work->followers.clear();
  ready_.clear();
  waiting_.clear();
  left_ = 0;
  missing_parties_ = 0;
}

}  // namespace cputrain::emulated

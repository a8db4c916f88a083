#include "datasets/loader/decoding_cache.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "core/error.h"
#include "datasets/loader/flaw_tally.h"

namespace cputrain::datasets {
namespace {

/// Less than what computes: on a core that both want, about a tenth of the time is theirs.
void stand_back() {
  constexpr int kNice = 10;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);  // a thread's, in Linux
}

class DecodingCache final : public data::FillingCache {
 public:
  DecodingCache(const data::DataSource& source, const data::DecodeRequest& request,
                std::vector<std::uint32_t> images, Range mine, const CacheView& view)
      : data_(*source.dataset),
        exif_(source.exif),
        image_(request.image),
        resize_(request.resize),
        images_(std::move(images)),
        begin_(mine.begin),
        view_(view) {
    for (int i = 0; i < std::max(request.threads, 1); ++i) {
      threads_.emplace_back([this] { decode_ahead(); });
    }
  }

  ~DecodingCache() override { DecodingCache::stop(); }

  const std::uint8_t* find(std::uint32_t sample) const override {
    const std::size_t position = position_of(sample);
    const bool there = view_.is_read(position) &&
                       view_.result(position).status == data::ReadStatus::ok;
    return there ? view_.pixels(position).data() : nullptr;
  }

  const std::uint8_t* decode(std::uint32_t sample, std::span<std::uint8_t> space) override {
    const std::size_t position = position_of(sample);
    if (view_.claim(position)) read(position);
    if (view_.is_read(position)) {
      const data::ReadResult result = view_.result(position);
      if (result.status == data::ReadStatus::ok) return view_.pixels(position).data();
      fail(ExitCode::data, text_of(position, result));
    }
    // Somebody else is at it, who may be a process that is gone.
    const data::ReadResult result = data_.read(images_[position], image_, resize_, space);
    if (result.status == data::ReadStatus::ok) return space.data();
    fail(ExitCode::data, text_of(position, result));
  }

  bool complete() const override { return view_.count_read() == images_.size(); }

  std::string damage() const override {
    if (const auto position = view_.damaged()) return text_of(*position, view_.result(*position));
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  std::vector<std::string> flaws() const override {
    FlawTally tally(data_);
    for (std::size_t i = 0; i < images_.size(); ++i) tally.add(images_[i], view_.flaw(i));
    return tally.warnings();
  }

  void stop() override {
    next_ = images_.size();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::size_t position_of(std::uint32_t sample) const {
    const auto found = std::ranges::lower_bound(images_, data_.view(sample).image);
    return static_cast<std::size_t>(found - images_.begin());
  }

  void read(std::size_t position) {
    read_claimed(data_, images_[position], position, image_, resize_, exif_, view_);
  }

  std::string text_of(std::size_t position, const data::ReadResult& result) const {
    return fmt::format("'{}' cannot be read: {} ({}); look with 'cputrain data check'",
                       data_.name(images_[position]), data::status_name(result.status),
                       result.detail);
  }

  /// This rank's share first, then what others have left.
  void decode_ahead() {
    stand_back();
    try {
      for (std::size_t i; (i = next_.fetch_add(1)) < images_.size();) {
        const std::size_t position = (begin_ + i) % images_.size();
        if (view_.claim(position)) read(position);
      }
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      failure_ = error.what();
    }
  }

  const data::Dataset& data_;
  const data::Exif exif_;
  const Shape image_;
  const data::Resize resize_;
  const std::vector<std::uint32_t> images_;
  const std::size_t begin_;
  const CacheView view_;
  std::atomic<std::size_t> next_{0};
  mutable std::mutex mutex_;
  std::string failure_;  // guarded by mutex_: of a file that is another one by now
  std::vector<std::thread> threads_;  // last: they use the others
};

}  // namespace

std::shared_ptr<data::FillingCache> fill_meanwhile(const data::DataSource& source,
                                                   const data::DecodeRequest& request,
                                                   std::vector<std::uint32_t> images, Range mine,
                                                   const CacheView& view) {
  return std::make_shared<DecodingCache>(source, request, std::move(images), mine, view);
}

}  // namespace cputrain::datasets

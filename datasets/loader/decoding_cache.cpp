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
  DecodingCache(const CacheReader& reader, Range mine, int threads)
      : images_(reader.images.begin(), reader.images.end()),
        reader_{reader.data, images_, reader.forms, reader.exif, reader.view},
        begin_(mine.begin) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { decode_ahead(); });
  }

  ~DecodingCache() override { DecodingCache::stop(); }

  const std::uint8_t* find(std::uint32_t sample) const override {
    const std::size_t position = position_of(sample);
    return view().keeps(position) && is_good(position) ? view().pixels(position).data() : nullptr;
  }

  const std::uint8_t* decode(std::uint32_t sample, std::span<std::uint8_t> space) override {
    const std::size_t position = position_of(sample);
    if (view().claim(position)) {
      const std::uint8_t* pixels = read_claimed(position, space);
      require_good(position, view().result(position));
      return pixels;
    }
    if (view().is_read(position)) {
      require_good(position, view().result(position));
      if (view().keeps(position)) return view().pixels(position).data();
    }
    // It is not kept, or somebody else is at it, who may be a process that is gone.
    require_good(position, read_beside(position, space));
    return space.data();
  }

  void read_rest() override {
    std::vector<std::uint8_t> space(reader_.forms.form.kept_shape().size());
    try {
      for (std::size_t i = 0; i < images_.size(); ++i) {
        const std::size_t position = (begin_ + i) % images_.size();
        if (!view().is_read(position)) look_at(position, space);
      }
    } catch (const std::exception& error) {
      note_failure(error.what());
    }
  }

  bool keeps_all() const override { return view().keeps_all(); }
  bool complete() const override { return view().count_read() == images_.size(); }

  std::string damage() const override {
    if (const auto position = view().damaged()) return text_of(*position, view().result(*position));
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  bool has_changed() const override { return changed_; }

  std::vector<std::string> flaws() const override {
    FlawTally tally(reader_.data);
    for (std::size_t i = 0; i < images_.size(); ++i) tally.add(images_[i], view().flaw(i));
    return tally.warnings();
  }

  void stop() override {
    next_ = images_.size();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  const CacheView& view() const { return reader_.view; }
  std::size_t position_of(std::uint32_t sample) const {
    return reader_.position_of(reader_.data.view(sample).image);
  }
  bool is_good(std::size_t position) const {
    return view().is_read(position) && view().result(position).status == data::ReadStatus::ok;
  }

  void require_good(std::size_t position, const data::ReadResult& result) const {
    if (result.status != data::ReadStatus::ok) fail(ExitCode::data, text_of(position, result));
  }

  std::string text_of(std::size_t position, const data::ReadResult& result) const {
    return fmt::format("'{}' cannot be read: {} ({}); look with 'cputrain data check'",
                       reader_.data.name(images_[position]), word_of(result.status), result.detail);
  }

  const std::uint8_t* read_claimed(std::size_t position, std::span<std::uint8_t> space) {
    try {
      return reader_.read_claimed(position, space).data();
    } catch (...) {  // it was found, and cannot be asked for now
      changed_ = true;
      throw;
    }
  }

  /// What is not claimed: it was read before, or another thread is at it.
  data::ReadResult read_beside(std::size_t position, std::span<std::uint8_t> space) {
    data::ReadResult result;
    try {
      result = reader_.read(position, space);
    } catch (...) {
      changed_ = true;
      throw;
    }
    if (result.status != data::ReadStatus::ok && is_good(position)) changed_ = true;
    return result;
  }

  void decode_ahead() {
    stand_back();
    try {
      for (std::size_t i; (i = next_.fetch_add(1)) < images_.size();) {
        const std::size_t position = (begin_ + i) % images_.size();
        if (view().keeps(position) && view().claim(position)) read_claimed(position, {});
      }
    } catch (const std::exception& error) {
      note_failure(error.what());
    }
  }

  /// One that somebody else is at, who may be gone, is read beside that.
  void look_at(std::size_t position, std::span<std::uint8_t> space) {
    if (view().claim(position)) {
      read_claimed(position, space);
    } else if (!view().is_read(position)) {
      require_good(position, read_beside(position, space));
    }
  }

  void note_failure(const char* text) {
    const std::lock_guard lock(mutex_);
    failure_ = text;
  }

  const std::vector<std::uint32_t> images_;
  const CacheReader reader_;
  const std::size_t begin_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> changed_{false};
  mutable std::mutex mutex_;
  std::string failure_;               // guarded by mutex_: of a file that is another one by now
  std::vector<std::thread> threads_;  // last: they use the others
};

}  // namespace

std::shared_ptr<data::FillingCache> make_decoding_cache(const CacheReader& reader, Range mine,
                                                        int threads) {
  return std::make_shared<DecodingCache>(reader, mine, threads);
}

}  // namespace cputrain::datasets

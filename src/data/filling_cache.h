#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cputrain::data {

/// Decoded images of a node that come while a training goes on: each when it is first needed, or
/// before that, by threads of its own. Its ranks fill it together. Some may not be kept, and are
/// decoded whenever they are needed. From any thread, and no call waits for another thread or rank.
class FillingCache {
 public:
  virtual ~FillingCache() = default;

  /// Pixels of the image that a sample shows; null while they are not there, or not kept.
  virtual const std::uint8_t* find(std::uint32_t sample) const = 0;
  /// The same where they are not there: decodes them into the cache, or into `space` where it does
  /// not keep them or somebody else is at it. Error(data) for a damaged image.
  virtual const std::uint8_t* decode(std::uint32_t sample, std::span<std::uint8_t> space) = 0;

  /// Reads what nobody has read yet, whether it is kept or not: what no micro-batch has asked for
  /// may be damaged, too. Behind it damage() knows of all that was there when it was called.
  virtual void read_rest() = 0;

  virtual bool keeps_all() const = 0;
  /// Whether each image was decoded once, or found to be damaged.
  virtual bool complete() const = 0;
  /// An image of the node that cannot be read, and why; empty while none is known. Where complete()
  /// was true before, empty means that there is none.
  virtual std::string damage() const = 0;
  /// Whether a file that was whole before was another one, or none, when this rank read it again:
  /// that is no damage which leaves an image out.
  virtual bool has_changed() const = 0;
  /// Once it is complete: warnings of classes whose images show little (Flaw).
  virtual std::vector<std::string> flaws() const = 0;

  /// Ends its threads. Images may still be asked for.
  virtual void stop() = 0;
};

}  // namespace cputrain::data

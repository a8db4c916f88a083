#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/names.h"
#include "core/shape.h"
#include "data/resize.h"

namespace cputrain::data {

/// --data as it is written: a word and what it is applied to ("cifar10:DIR"), or a path alone.
struct DataSpec {
  std::string word;  ///< "cifar10", "coco", ..., "synthetic"; empty before a path alone
  std::vector<std::string> parts;  ///< paths, several of coco; of synthetic the number, if any
};

inline constexpr const char* kSynthetic = "synthetic";

DataSpec parse_data_spec(const std::string& text);

/// Whether images of the data may be photographs with an EXIF orientation.
bool may_have_exif(const std::string& text);

/// The same data from any working folder: paths begin at the root (absolute_path()).
std::string absolute_data_spec(const std::string& text);

/// How reading one sample went. The reasons are those `data check` counts.
enum class ReadStatus { ok, unreadable, empty, not_an_image, truncated, too_large, unsupported };
/// For people, and keys in JSON.
constexpr auto names(ReadStatus) {
  return std::to_array<Name<ReadStatus>>({{ReadStatus::ok, "ok"},
                                          {ReadStatus::unreadable, "unreadable"},
                                          {ReadStatus::empty, "empty"},
                                          {ReadStatus::not_an_image, "not an image"},
                                          {ReadStatus::truncated, "truncated"},
                                          {ReadStatus::too_large, "too large"},
                                          {ReadStatus::unsupported, "unsupported"}});
}

struct ReadResult {
  ReadStatus status = ReadStatus::ok;
  std::string detail;   ///< the decoder's own words, when not ok
  bool warned = false;  ///< decoded, but the decoder complained
  bool turned = false;  ///< its EXIF orientation is not upright, whether that was applied or not
};

/// A sample that is left out, and why.
struct BadSample {
  std::string name;
  ReadResult result;
};

/// Why an image that can be read shows a network nothing, or something else than people see.
/// `in_alpha` and `low_bits` are causes of the first two that only the file shows.
enum class Flaw : std::uint8_t { none, one_colour, nearly_black, in_alpha, low_bits, unturned };
/// Keys in JSON.
constexpr auto names(Flaw) {
  return std::to_array<Name<Flaw>>({{Flaw::none, "none"},
                                    {Flaw::one_colour, "one colour"},
                                    {Flaw::nearly_black, "nearly black"},
                                    {Flaw::in_alpha, "one colour without alpha"},
                                    {Flaw::low_bits, "low bits of 16"},
                                    {Flaw::unturned, "not turned"}});
}
/// What such images are: they "are of one colour alone".
std::string_view flaw_text(Flaw);
/// What to try.
std::string_view flaw_remedy(Flaw);

/// How a file holds an image, as far as reading drops something of it.
struct StoredAs {
  bool alpha = false;
  int bits = 8;  ///< in a sample
};

/// The flaw of an image as it was read, RGB bytes; `none` for one that could not be read. Stops at
/// the first pixels that differ and are bright enough, so it costs next to nothing for a
/// photograph.
Flaw flaw_of(const ReadResult&, std::span<const std::uint8_t> rgb, Exif, StoredAs = {});

/// What `data check` wants to know of one sample beyond whether it can be read.
struct SampleFacts {
  ReadResult result;
  std::uint64_t content = 0;     ///< hash of the bytes as stored: equal for copies of one image
  bool wrong_extension = false;  ///< named as another format than it is
  Flaw flaw = Flaw::none;
};

/// What a sample shows: the image of a sample that is not turned, and how it is turned.
struct View {
  std::uint32_t image = 0;
  Turn turn = Turn::none;
};

/// The one form in which a data set has images that need no decoding and are not kept in memory:
/// read() gives them in it, whenever they are asked for.
struct ReadyForm {
  Shape image;
  Resizing resize{};
  std::optional<Exif> exif{};  ///< nothing where both make the same pixels
};

/// Random access to labelled images. Reading is const and safe from many threads, and its outcome
/// depends on the sample alone, so every rank decides alike which files are bad.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::size_t size() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;
  virtual int label(std::size_t index) const = 0;
  /// A name a person can find again: a path, or "t10k-images-idx3-ubyte.gz[17]".
  virtual std::string name(std::size_t index) const = 0;
  /// Decodes, converts to RGB, resizes to `image` and writes H*W*3 bytes to dst. Error(data) where
  /// a file that was listed as a whole is another one by now.
  virtual ReadResult read(std::size_t index, Shape image, const Resizing& resize,
                          std::span<std::uint8_t> dst) const = 0;
  /// Decodes at the stored size and looks closer than read() does.
  virtual SampleFacts inspect(std::size_t index) const = 0;
  /// SampleFacts::content without a look at the image; nothing where it cannot be read.
  virtual std::optional<std::uint64_t> content(std::size_t index) const {
    const SampleFacts facts = inspect(index);
    return facts.result.status == ReadStatus::ok ? std::optional(facts.content) : std::nullopt;
  }
  /// All bytes of the file that holds the image and nothing else; empty where there is none.
  virtual std::vector<std::uint8_t> file(std::size_t) const { return {}; }
  /// A hash of what the data set consists of (names, sizes, labels), compared between ranks.
  virtual std::uint64_t fingerprint() const = 0;
  /// The same of the data that this was packed from.
  virtual std::uint64_t origin() const { return fingerprint(); }

  /// Several samples may show one image; then it is read once.
  virtual View view(std::size_t index) const {
    return {static_cast<std::uint32_t>(index), Turn::none};
  }
  virtual std::optional<ReadyForm> ready_form() const { return std::nullopt; }
};

/// Why a file is not read: what it is by its name, or where it lies. One of each is in the program.
struct UnreadReason {
  std::string_view one;      ///< "video", "broken link"; of a file, for people and in JSON
  std::string_view several;  ///< "videos"
  bool missed = false;       ///< someone may take it for an image of the data: no text, for example
  bool tells_endings = false;  ///< the kind has many, and they say more than its name
};

/// A file that was found beside the images and is not read.
struct UnreadFile {
  std::string path;            ///< below the folder of the data
  const UnreadReason* reason;  ///< null where it is read
};

/// "RAW photographs (.cr2, .dng) 12, SVG 3, no image by its name 5", the most frequent first; empty
/// for none.
std::string unread_by_kind(const std::vector<UnreadFile>&);

/// A data set and which of its samples are for training and for validation.
struct DataSource {
  std::unique_ptr<Dataset> dataset;
  std::vector<std::uint32_t> train, validation;  ///< indices, ascending
  /// A part that training neither learns from nor validates with: `eval` takes it first.
  std::vector<std::uint32_t> test;
  std::string validation_name, test_name;  ///< what these parts are, for messages; or empty
  bool own_validation =
      false;                ///< the data has a part that validates; else seed and split choose it
  std::size_t ignored = 0;  ///< files that are not read
  std::vector<UnreadFile> unread;          ///< these, where they were asked for
  std::vector<std::string> warnings;       ///< what may be wrong with the data, a sentence each
  std::vector<std::string> empty_classes;  ///< classes without an image, where they are allowed
  bool allow_empty_classes = false;        ///< decoding may find more of them
  Exif exif = Exif::apply;                 ///< how the data set reads photographs
  std::vector<std::string> containers;     ///< paths of files that hold many images each
  std::string description;                 ///< for the log: what was found and how it is split
};

/// Decoded images of a node that come while a training goes on: each when it is first needed, or
/// before that, by threads of its own. Its ranks fill it together. Some may not be kept, and are
/// decoded whenever they are needed. From any thread, and no call waits for another thread or rank.
class FillingCache {
 public:
  virtual ~FillingCache() = default;

  /// Pixels of the image that a sample shows; null while they are not there, or not kept.
  virtual const std::uint8_t* find(std::uint32_t sample) const = 0;
  /// The same where they are not there: decodes them into the cache, or into `space` where it does
  /// not keep them or another thread or rank is at it. Error(data) for a damaged image.
  virtual const std::uint8_t* decode(std::uint32_t sample, std::span<std::uint8_t> space) = 0;

  /// Reads what was not read yet, whether it is kept or not: what no micro-batch has asked for
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

/// Images of one size, damaged ones left out: in memory that all ranks of a node share, where they
/// may still be coming, or in the data set, to be read when they are needed. It must outlive them.
struct ImageSet {
  Shape image;     ///< as the network is given them
  int larger = 1;  ///< they are kept at so many times its sides, to be cut from
  std::vector<const std::uint8_t*> pixels;  ///< one pointer an image, H*W*3 bytes, not turned
  const Dataset* stored = nullptr;          ///< has them instead of `pixels`
  /// Brings what `pixels` points to, or gives what is not kept; null where all is there.
  FillingCache* filling = nullptr;
  bool on_disk = false;     ///< `pixels` point into a file, which is read as they are touched
  bool judged = true;       ///< all images were read once: damaged ones are not among them
  std::vector<Turn> turns;  ///< one an image; empty where none is turned
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> samples;  ///< index in the data set

  std::size_t size() const { return stored ? samples.size() : pixels.size(); }
  /// How images lie in `pixels`.
  Shape kept() const { return {image.height * larger, image.width * larger, image.channels}; }
  /// The pixels of image i, not turned, where they lie in memory already; else null.
  const std::uint8_t* ready(std::size_t i) const;
  /// The same: where they lie, or read into `space`, H*W*3 bytes. Error(data) where they are not
  /// what they were, or are damaged.
  const std::uint8_t* pixels_of(std::size_t i, std::span<std::uint8_t> space) const;
};

/// A small image as a file, for a page.
struct Thumbnail {
  std::string type;  ///< "image/png"
  std::vector<std::byte> file;
  int width = 0, height = 0;
};

}  // namespace cputrain::data

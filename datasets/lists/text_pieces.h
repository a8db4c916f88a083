#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>

/// Texts that are too long to be in memory at once.
namespace cputrain::datasets {

/// The next piece of a text, valid until the next call; empty at the end.
using TextPieces = std::function<std::string_view()>;

/// The pieces of a file of at most 2 GiB. Error(data) naming the file, with `purpose` as the reason
/// why it matters; also where the file is cut while it is read.
TextPieces pieces_of_file(const std::string& path, const std::string& purpose);

/// The same of a text in memory, with so many bytes each.
TextPieces pieces_of(std::string_view text, std::size_t bytes = std::string_view::npos);

/// The characters of all pieces, to be read once; the default is their end.
class PieceIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  PieceIterator() = default;
  explicit PieceIterator(const TextPieces& pieces) : pieces_(&pieces) { refill(); }

  reference operator*() const { return *place_; }
  PieceIterator& operator++() {
    if (++place_ == end_) refill();
    return *this;
  }
  bool operator==(const PieceIterator& other) const { return place_ == other.place_; }

 private:
  void refill() {
    const std::string_view piece = (*pieces_)();
    place_ = piece.empty() ? nullptr : piece.data();
    end_ = place_ + piece.size();
  }

  const TextPieces* pieces_ = nullptr;
  const char *place_ = nullptr, *end_ = nullptr;
};

}  // namespace cputrain::datasets

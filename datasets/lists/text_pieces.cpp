#include "datasets/lists/text_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "datasets/formats/container_file.h"

namespace cputrain::datasets {
namespace {

constexpr std::size_t kMaxListBytes = std::size_t{2} << 30;

class FilePieces {
 public:
  FilePieces(const std::string& path, const std::string& purpose) : file_(path, purpose) {}

  std::size_t size() const { return file_.size(); }

  std::string_view next() {
    constexpr std::size_t kPiece = std::size_t{1} << 18;
    piece_.resize(std::min(kPiece, file_.size() - done_));
    file_.read(done_, {reinterpret_cast<std::uint8_t*>(piece_.data()), piece_.size()});
    done_ += piece_.size();
    return piece_;
  }

 private:
  ContainerFile file_;
  std::string piece_;
  std::size_t done_ = 0;
};

}  // namespace

TextPieces pieces_of_file(const std::string& path, const std::string& purpose) {
  const auto file = std::make_shared<FilePieces>(path, purpose);
  if (file->size() > kMaxListBytes) {
    fail(ExitCode::data, fmt::format("'{}' has more than 2 GiB ({}, which needs no more); check "
                                     "what it is",
                                     path, purpose));
  }
  return [file] { return file->next(); };
}

TextPieces pieces_of(std::string_view text, std::size_t bytes) {
  return [text, bytes]() mutable {
    const std::string_view piece = text.substr(0, bytes);
    text.remove_prefix(piece.size());
    return piece;
  };
}

}  // namespace cputrain::datasets

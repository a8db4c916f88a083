#include "system/terminal/redrawn_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "system/tell.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

class RedrawnLines : public ::testing::Test {
 protected:
  ~RedrawnLines() override { std::fclose(stream_); }

  std::string written() const {
    std::ostringstream text;
    text << std::ifstream(folder_.path() / "lines", std::ios::binary).rdbuf();
    return text.str();
  }

  const testing::TemporaryFolder folder_;
  std::FILE* stream_ = std::fopen((folder_.path() / "lines").c_str(), "w");
  std::optional<std::size_t> columns_;
  RedrawnLine line_{stream_, [this] { return columns_; }};
};

TEST_F(RedrawnLines, CoverWhatWasThere) {
  line_.draw("longer");
  line_.draw("short");
  line_.finish("end");
  line_.finish("next");
  EXPECT_EQ(written(), "\rlonger\rshort \rend  \n\rnext\n");
}

TEST_F(RedrawnLines, AreCutToTheWidthOfTheMoment) {
  columns_ = 9;
  line_.draw("0123456789");
  columns_ = 5;  // the window was resized
  line_.draw("01");
  line_.draw("0123456789");
  line_.finish("results stay whole");
  EXPECT_EQ(written(), "\r01234567\r01  \r0123\rresults stay whole\n");
}

// Each of these letters takes two columns.
TEST_F(RedrawnLines, CountColumnsNotBytes) {
  columns_ = 6;
  line_.draw("\u732b\u732b\u732b");
  line_.draw("a");
  EXPECT_EQ(written(), "\r\u732b\u732b \ra    ");
}

TEST_F(RedrawnLines, EndBeforeOtherLines) {
  line_.leave();
  line_.draw("bar");
  line_.leave();
  line_.leave();
  line_.draw("bar");
  EXPECT_EQ(written(), "\rbar\n\rbar");
}

TEST_F(RedrawnLines, WithoutAnEndAreTakenOnce) {
  take_unended_line();
  line_.draw("bar");
  EXPECT_EQ(take_unended_line(), 3U);
  EXPECT_EQ(take_unended_line(), 0U);
  line_.draw("bar");
  line_.leave();
  EXPECT_EQ(take_unended_line(), 0U);
  line_.draw("bar");
  line_.finish("end");
  EXPECT_EQ(take_unended_line(), 0U);
}

/// A terminal in the place of standard error, until it is read.
class Terminal {
 public:
  Terminal() : ours_(::posix_openpt(O_RDWR | O_NOCTTY)), before_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::grantpt(ours_), 0);
    EXPECT_EQ(::unlockpt(ours_), 0);
    const int theirs = ::open(::ptsname(ours_), O_RDWR | O_NOCTTY);
    EXPECT_GE(::dup2(theirs, STDERR_FILENO), 0);
    ::close(theirs);
  }
  ~Terminal() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(ours_);
  }

  std::string read() const {
    char text[256];
    const ssize_t size = ::read(ours_, text, sizeof text);
    return std::string(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  }

 private:
  int ours_, before_;
};

TEST(Tell, TakesThePlaceOfALineWithoutAnEnd) {
  take_unended_line();
  const Terminal terminal;
  ::setenv("TERM", "dumb", 1);
  RedrawnLine line(stderr, [] { return std::nullopt; });
  line.draw("a bar");
  tell("one");
  tell("two");
  line.draw("bar");
  tell("longer");
  EXPECT_EQ(terminal.read(), "\ra bar\rone  \r\ntwo\r\n\rbar  \rlonger\r\n");
}

}  // namespace
}  // namespace cputrain::system

#include "system/print.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

class RedrawnLines : public ::testing::Test {
 protected:
  ~RedrawnLines() override { std::fclose(stream_); }

  std::string written() const { return testing::text_of(folder_.path() / "lines"); }

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
  line_.draw("longer");
  line_.finish("end\nin two lines");
  EXPECT_EQ(written(), "\rlonger\rshort \rend  \n\rnext\n\rlonger\rend   \nin two lines\n");
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

/// A terminal in the place of standard error.
class Terminal {
 public:
  Terminal() : ours_(::posix_openpt(O_RDWR | O_NOCTTY)), before_(::dup(STDERR_FILENO)) {
    if (ours_ < 0 || ::grantpt(ours_) != 0 || ::unlockpt(ours_) != 0) return;
    const int theirs = ::open(::ptsname(ours_), O_RDWR | O_NOCTTY);
    is_open_ = theirs >= 0 && ::dup2(theirs, STDERR_FILENO) >= 0;
    ::close(theirs);
  }
  ~Terminal() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(ours_);
  }

  bool is_open() const { return is_open_; }

  void set_columns(unsigned short columns) const {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::ioctl(ours_, TIOCSWINSZ, &size), 0);
  }

  /// What was written, which comes as late as the system likes: as many bytes as are expected, and
  /// fewer after ten seconds.
  std::string read(std::size_t expected) const {
    std::string text;
    pollfd ready{ours_, POLLIN, 0};
    char some[256];
    while (text.size() < expected && ::poll(&ready, 1, 10000) > 0) {
      const ssize_t size = ::read(ours_, some, sizeof some);
      if (size <= 0) break;
      text.append(some, static_cast<std::size_t>(size));
    }
    return text;
  }

 private:
  int ours_, before_;
  bool is_open_ = false;
};

/// Messages beside a bar on one terminal.
class Messages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!terminal_.is_open()) GTEST_SKIP() << "there are no pseudo-terminals here";
  }

  const Terminal terminal_;
  RedrawnLine line_{stderr, [] { return std::nullopt; }};
};

TEST_F(Messages, TakeThePlaceOfALineWithoutAnEnd) {
  line_.draw("a bar");
  tell("one");
  tell("two");
  line_.draw("bar");
  tell("longer");
  line_.leave();  // the message has ended its line
  line_.draw("bar");
  line_.leave();
  line_.finish("results");
  tell("end");
  const std::string expected =
      "\ra bar\rone  \r\ntwo\r\n\rbar\rlonger\r\n\rbar\r\n\rresults\r\nend\r\n";
  EXPECT_EQ(terminal_.read(expected.size()), expected);
}

TEST_F(Messages, CountColumnsAndNoColours) {
  line_.draw("a bar of progress");
  tell("warning: \u732b");
  const bool coloured = shows_colours(STDERR_FILENO);
  const std::string word = coloured ? "\x1b[33mwarning:\x1b[0m" : "warning:";
  const std::string expected = "\ra bar of progress\r" + word + " \u732b      \r\n";
  EXPECT_EQ(terminal_.read(expected.size()), expected);
}

TEST_F(Messages, AreWrappedAtWordsAndTakeThePlaceOfABar) {
  terminal_.set_columns(20);
  line_.draw("a bar of progress");
  tell("warning: one two three four five");
  tell("  1 two three four five");
  const std::string word = shows_colours(STDERR_FILENO) ? "\x1b[33mwarning:\x1b[0m" : "warning:";
  const std::string expected = "\ra bar of progress\r" + word +
                               " one two \r\n  three four five\r\n  1 two three\r\n"
                               "    four five\r\n";
  EXPECT_EQ(terminal_.read(expected.size()), expected);
}

/// Words that come from outside on their way to people.
TEST(Outlets, EscapeWhatIsPutInAndKeepTheirOwnLines) {
  const std::string name = "x\nAll is well\x1b[2J";
  EXPECT_EQ(formatted("{}: {}\n", name, 3), "x\\nAll is well\\x1b[2J: 3\n");
  EXPECT_EQ(formatted("{:>6}|{:<4}|{:.2f}", "a\tb", std::string_view("\xe7\x8c\xab"), 1.5),
            "  a\\tb|\xe7\x8c\xab  |1.50");
  ::testing::internal::CaptureStdout();
  print("{}\n{}\n", name, "ok");
  print_lines("one\ntwo\x1b\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "x\\nAll is well\\x1b[2J\nok\none\ntwo\\x1b\n");
  ::testing::internal::CaptureStderr();
  tell("warning: " + name + std::string("\0z", 2));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: x\\nAll is well\\x1b[2J\\x00z\n");
}

}  // namespace
}  // namespace cputrain::system

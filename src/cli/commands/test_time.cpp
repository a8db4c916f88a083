#include "cli/commands/test_time.h"

namespace cputrain::commands {

void add_test_time_flag(cli::Flags& f, TestTime& looks) {
  f.choice("tta", all_words<TestTime>(),
           "flip: predict by the mean of the probabilities of each image and of its mirror image "
           "[none]",
           [&looks](const std::string& word) { looks = parse_word<TestTime>("tta", word); });
}

}  // namespace cputrain::commands

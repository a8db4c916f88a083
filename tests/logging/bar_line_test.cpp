#include "logging/reporters.h"

#include <gtest/gtest.h>

namespace cputrain::logging {
namespace {

const BarLine kLine{.step = 70,
                    .steps = 140,
                    .time = " - ETA: 1:02:03",
                    .loss = " - loss: 0.1234",
                    .accuracy = " - accuracy: 0.5678"};

TEST(BarLine, IsKerasWhereThereIsRoom) {
  const std::string whole =
      " 70/140 [==============>...............] - ETA: 1:02:03 - loss: 0.1234 - accuracy: 0.5678";
  EXPECT_EQ(running_line(kLine, std::nullopt), whole);
  EXPECT_EQ(running_line(kLine, whole.size()), whole);
}

TEST(BarLine, GivesWayInTheOrderOfTheTable) {
  EXPECT_EQ(running_line(kLine, 79),
            " 70/140 [=========>..........] - ETA: 1:02:03 - loss: 0.1234 - accuracy: 0.5678");
  // 67 columns hold a bar of eight signs beside all values; without the accuracy it grows again.
  EXPECT_EQ(running_line(kLine, 67),
            " 70/140 [===>....] - ETA: 1:02:03 - loss: 0.1234 - accuracy: 0.5678");
  EXPECT_EQ(running_line(kLine, 66),
            " 70/140 [============>.............] - ETA: 1:02:03 - loss: 0.1234");
  EXPECT_EQ(running_line(kLine, 47), " 70/140 - ETA: 1:02:03 - loss: 0.1234");
  EXPECT_EQ(running_line(kLine, 36), " 70/140 - ETA: 1:02:03");
  EXPECT_EQ(running_line(kLine, 10), " 70/140 - ETA: 1:02:03");
}

TEST(BarLine, IsNeverLongerThanItsRoom) {
  for (std::size_t space = 22; space < 130; ++space) {
    const std::string line = running_line(kLine, space);
    EXPECT_LE(line.size(), space) << line;
    EXPECT_NE(line.find("ETA: 1:02:03"), std::string::npos) << line;
  }
}

TEST(BarLine, ResultsStayWhateverTheRoom) {
  const std::string values = " - 42s 214ms/step - loss: 2.0179 - accuracy: 0.2585";
  EXPECT_EQ(finished_line(9, 9, values, std::nullopt),
            "9/9 [==============================]" + values);
  EXPECT_EQ(finished_line(9, 9, values, 70), "9/9 [=============]" + values);
  EXPECT_EQ(finished_line(9, 9, values, 40), "9/9" + values);
}

}  // namespace
}  // namespace cputrain::logging

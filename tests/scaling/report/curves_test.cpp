// scaling/report/trainings/run_record.h: images seen are counted by hand.
#include "scaling/report/trainings/run_record.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scaling_cells.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::report {
namespace {

TEST(Curves, TakesStepsAndLeavesOutTheRest) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  std::ofstream(file) << R"({"type":"step","step":1,"images":128,"loss":0.7,"accuracy":0.5})"
                         "\n"
                      << R"({"type":"epoch","step":1,"images":9,"loss":9,"accuracy":9})"
                         "\n"
                      << "not json\n[1]\n\xff\xfe\n"
                      << R"({"type":"step","step":2,"images":128,"loss":null,"accuracy":0.5})"
                         "\n"
                      << R"({"type":"step","step":3,"images":128,"loss":0.6,"accuracy":0.75})"
                         "\n"
                      << R"({"type":"step","step":4,"images":12,"loss":0.5,"accuracy":1})"
                         "\n"
                      << R"({"type":"step","step":5,"images":128,"lo)";
  const Curve curve = read_curve(file);
  EXPECT_EQ(curve.images, (std::vector<double>{128, 384, 396}));
  EXPECT_EQ(curve.loss, (std::vector<double>{0.7, 0.6, 0.5}));
  EXPECT_EQ(curve.accuracy, (std::vector<double>{0.5, 0.75, 1}));
  EXPECT_TRUE(read_curve(folder.path() / "absent").images.empty());
  std::ofstream(file) << R"({"type":"step","step":1,"images":128,"loss":0.7,"accuracy":0.5})"
                         "\n"
                      << std::string(1'100'000, ' ') + "\n"
                      << R"({"type":"step","step":2,"images":128,"loss":0.7,"accuracy":0.5})";
  EXPECT_EQ(read_curve(file).images, (std::vector<double>{128}));  // a longer line than any of ours
}

// Lines of steps 1, 3 and 4: step 2 counts as long as step 3.
TEST(Curves, SecondsAddUpAndNeedThoseOfEveryLine) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  const auto line = [](int step, const char* seconds) {
    return R"({"type":"step","images":8,"loss":1,"accuracy":0,"step":)" + std::to_string(step) +
           seconds + "}\n";
  };
  std::ofstream(file) << line(1, R"(,"seconds":2)") << line(3, R"(,"seconds":0.5)")
                      << line(4, R"(,"seconds":0.25)");
  EXPECT_EQ(read_curve(file).seconds, (std::vector<double>{2, 3, 3.25}));
  std::ofstream(file) << line(1, R"(,"seconds":2)") << line(2, "");
  EXPECT_TRUE(read_curve(file).seconds.empty());
  EXPECT_EQ(read_curve(file).images.size(), 2u);
}

TEST(Curves, ThinsEvenlyAndKeepsBothEnds) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  std::ofstream stream(file);
  for (int i = 1; i <= 101; ++i) {
    stream << R"({"type":"step","step":)" << i
           << R"(,"images":1,"loss":1,"accuracy":0})"
              "\n";
  }
  stream.close();
  EXPECT_EQ(read_curve(file, 5).images, (std::vector<double>{1, 26, 51, 76, 101}));
}

TEST(Curves, AreOfTheFirstCellsAndSayHowManyAreLeftOut) {
  const testing::TemporaryFolder folder;
  for (const char* run : {"a", "b"}) std::filesystem::create_directory(folder.path() / run);
  const std::string step = R"({"type":"step","step":1,"images":8,"loss":0.5,"accuracy":0})";
  std::ofstream(folder.path() / "a" / "metrics.jsonl") << step;
  std::ofstream(folder.path() / "b" / "metrics.jsonl") << "{}";
  std::vector<cells::Cell> cells;
  for (std::size_t batch = 1; batch <= kMostCurves + 4; ++batch) {
    cells.push_back(testing::cell(1, 1, batch, 1));
    cells.back().runs = {"a"};
  }
  cells[0].runs = {"b"};  // has no steps
  cells[1].runs = {"absent"};
  cells.back().runs = {"absent"};
  CellSource all = testing::source(cells);
  all.folder = folder.path();
  const ScalingTable table = make_scaling_table({all}, {});
  const Curves curves = curves_of(table);
  ASSERT_EQ(curves.shown.size(), 300u);
  EXPECT_EQ(curves.left_out, 1u);
  EXPECT_EQ(curves.shown.front().cell->cell.batch, 3u);
  EXPECT_EQ(curves.shown.back().cell->cell.batch, 302u);
  EXPECT_EQ(curves.shown.back().curve.loss, std::vector<double>{0.5});
}

std::string step(int step, int images, int seen = 0) {
  std::string line =
      R"({"type":"step","step":)" + std::to_string(step) + R"(,"images":)" + std::to_string(images);
  if (seen > 0) line += R"(,"images_seen":)" + std::to_string(seen);
  return line + R"(,"loss":0.5,"accuracy":0.5})";
}

std::vector<double> seen_after(const std::vector<std::string>& lines) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  std::ofstream stream(file);
  for (const std::string& line : lines) stream << line << "\n";
  stream.close();
  return read_curve(file).images;
}

using Seen = std::vector<double>;

TEST(CurveImages, AreWhatTheLinesSay) {
  EXPECT_EQ(seen_after({step(5, 4, 18), step(10, 4, 34)}), (Seen{18, 34}));
  EXPECT_EQ(seen_after({step(2, 4), step(3, 2), step(5, 4)}), (Seen{8, 10, 18}));
  EXPECT_EQ(seen_after({step(1, 4, 4), step(2, 4), step(3, 2)}), (Seen{4, 8, 10}));
  EXPECT_EQ(seen_after({step(1, 4, 9), step(2, 4, 7)}), (Seen{9, 9}));  // none goes back
}

TEST(CurveImages, OfAFileThatGoesBackTheLaterLinesHold) {
  EXPECT_EQ(seen_after({step(1, 4), step(2, 4), step(3, 4), step(2, 5), step(3, 2)}),
            (Seen{4, 9, 11}));
  EXPECT_EQ(seen_after({step(1, 4), step(2, 4), step(1, 5)}), (Seen{5}));
}

TEST(CurveImages, ALossThatIsNotFiniteIsNoPointButCounts) {
  EXPECT_EQ(
      seen_after({step(1, 4), R"({"type":"step","step":2,"images":6,"loss":null,"accuracy":0})",
                  step(3, 2)}),
      (Seen{4, 12}));
}

TEST(CurveImages, DamagedLinesDoNoHarm) {
  EXPECT_EQ(seen_after({R"({"type":"step","step":"1","images":4,"loss":1,"accuracy":0})",
                        R"({"type":"step","step":1,"images":-4,"loss":1,"accuracy":0})", step(1, 4),
                        R"({"type":"step","step":1e400,"images":4})",
                        R"({"type":"step","step":2,"images":4,"loss":1,"accuracy":0})"}),
            (Seen{4, 8}));
}

}  // namespace
}  // namespace cputrain::report

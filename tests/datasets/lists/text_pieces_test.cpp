#include "datasets/lists/text_pieces.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "datasets/lists/annotation_tables.h"
#include "datasets/lists/list_table.h"
#include "tests/datasets/made_files.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

/// Rows with their lines, or the message of a refusal.
std::string table(const TextPieces& text) {
  std::string rows;
  try {
    read_table(text, "list.csv", [&](const ListRow& row) {
      rows += std::to_string(row.line) + ":";
      for (const std::string& field : row.fields) rows += " [" + field + "]";
      rows += "\n";
    });
  } catch (const Error& error) {
    rows += error.what();
  }
  return rows;
}

std::string tables(const TextPieces& text) {
  try {
    std::string members;
    const AnnotationTables tables = read_tables(text);
    for (std::size_t i = 0; i < tables.images.size(); ++i) {
      members += std::to_string(tables.images[i]) + " " + std::string(tables.files[i]) + "\n";
    }
    return members;
  } catch (const WrongAnnotations& wrong) {
    return wrong.problem;
  }
}

TEST(TextPieces, ListsAreReadTheSameHoweverTheyAreCut) {
  const std::string rows = "\xEF\xBB\xBF# by hand\r\n\r\npath,label\r\n\"a, \r\nb.png\",c\"\"at\r";
  EXPECT_EQ(table(pieces_of("\xEF\xBB\xBF# x\r\n\r\npath,label\r\n\"a,\r\n\"\"b.png\",cat\rc,d")),
            "3: [path] [label]\n4: [a,\r\n\"b.png] [cat]\n6: [c] [d]\n");
  for (const std::string& text :
       {std::string("\xEF\xBB\xBF# x\r\n\r\npath,label\r\n\"a,\r\n\"\"b.png\",cat\rc,d"),
        std::string("a\tb\n\rc\td\r\r\n"), std::string("a,b\r\nc,\"d"), std::string("a,b\r\nc\r\n"),
        std::string("a,b\nc\0,d", 8),
        std::string("\xFF\xFE"
                    "a\0,\0",
                    6),
        std::string("\n\0a\0", 4), rows}) {
    const std::string whole = table(pieces_of(text));
    for (std::size_t bytes = 1; bytes <= text.size(); ++bytes) {
      EXPECT_EQ(table(pieces_of(text, bytes)), whole) << bytes << " bytes of " << text;
    }
  }
}

TEST(TextPieces, AnnotationsAreReadTheSameHoweverTheyAreCut) {
  const std::string good =
      R"({"x": ["\\", "\"[{", -1.5e3, true], "images": [{"file_name": "\u00e9\"", "id": 12}]})";
  EXPECT_EQ(tables(pieces_of(good)), "12 \xC3\xA9\"\n");
  for (const std::string& text : {good, good.substr(0, 60), good + "]", std::string()}) {
    const std::string whole = tables(pieces_of(text));
    for (std::size_t bytes = 1; bytes <= text.size(); ++bytes) {
      EXPECT_EQ(tables(pieces_of(text, bytes)), whole) << bytes << " bytes of " << text;
    }
  }
}

TEST(TextPieces, LimitsHoldAcrossPieces) {
  for (const std::size_t bytes : {std::size_t{1000}, std::size_t{1} << 20}) {
    for (const std::string& line : {"#" + std::string(2'000'000, 'x'), std::string(2'000'000, ' '),
                                    "\"" + std::string(2'000'000, 'x')}) {
      const std::string said = table(pieces_of("a.png,cat\n" + line + "\n", bytes));
      EXPECT_NE(said.find("line 2: a row of more than 1,048,576 bytes"), std::string::npos) << said;
    }
    const std::string text = "{\"x\":\"" + std::string(4'200'000, '\\') + "\"}";
    EXPECT_EQ(tables(pieces_of(text, bytes)),
              "holds a text of more than 4,194,304 bytes at byte 6");
  }
}

TEST(TextPieces, AFileThatIsCutWhileItIsReadIsAnError) {
  const testing::TemporaryFolder folder;
  const fs::path path = folder.path() / "list.csv";
  write_bytes(path, bytes_of(std::string(1'000'000, 'x')));
  const TextPieces pieces = pieces_of_file(path.string(), "it names the images");
  const std::size_t first = pieces().size();
  ASSERT_GT(first, 0u);
  ASSERT_LT(first, 600'000u) << "memory stays small";
  fs::resize_file(path, 700'000);
  const std::string said = testing::refused(ExitCode::data, [&] {
    while (!pieces().empty()) continue;
  });
  EXPECT_NE(said.find(path.string()), std::string::npos) << said;
  EXPECT_NE(said.find("has become shorter"), std::string::npos) << said;
}

}  // namespace
}  // namespace cputrain::datasets

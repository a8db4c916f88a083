// What goes into a report from files of others: escapes, published tables, differences.

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "scaling/report/forms/document.h"
#include "scaling/report/forms/escapes.h"
#include "scaling/report/reference_table.h"
#include "scaling/report/scaling_document.h"
#include "scaling/report/sweep_difference.h"
#include "tests/support/scaling_cells.h"

namespace cputrain::report {
namespace {

TEST(Escapes, HtmlAndScripts) {
  EXPECT_EQ(html_escape("<b a=\"x\" c='y'>&\n"), "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp; ");
  EXPECT_EQ(html_escape("a\u2028b\u202ec\u0085d\u20ac"), "a b c d\u20ac");
  EXPECT_EQ(script_json(R"({"a":"</script><!--&"})"),
            R"({"a":"\u003c/script\u003e\u003c!--\u0026"})");
  EXPECT_EQ(script_json(R"({"a":"x\u202ey\u001bz\u00e9\\u202e\ud83d\udc31\u2067"})"),
            R"({"a":"x y z\u00e9\\u202e\ud83d\udc31 "})");
}

// Control Sequence Introducer, the first and last of its kind, marks of direction; what is beside
// them stays.
TEST(Escapes, NothingControlsATerminalOrTurnsText) {
  EXPECT_EQ(markdown_escape("a\u009b31m\u0080\u009f\u00a0\x1b"), "a 31m  \u00a0 ");
  EXPECT_EQ(markdown_escape("\u200d\u200e\u200f\u2010"), "\u200d  \u2010");
  EXPECT_EQ(markdown_escape("\u061b\u061c\u061d"), "\u061b \u061d");
  EXPECT_EQ(markdown_escape("caf\xe9 \xe7\x8c\xab \x7f"), "caf  \xe7\x8c\xab  ");
}

TEST(Escapes, Markdown) {
  EXPECT_EQ(markdown_escape("a|b*c_d`e[f]<g>\\h\ni"), "a\\|b\\*c\\_d\\`e\\[f\\]\\<g\\>\\\\h i");
  EXPECT_EQ(markdown_escape("1 (2) + 3"), "1 (2) + 3");
}

TEST(Escapes, Latex) {
  EXPECT_EQ(latex_escape("50 % of $x_1 & #2 {y} ~^"),
            "50 \\% of \\$x\\_1 \\& \\#2 \\{y\\} \\textasciitilde{}\\textasciicircum{}");
  EXPECT_EQ(latex_escape("\\input{x}"), "\\textbackslash{}input\\{x\\}");
  EXPECT_EQ(latex_escape("--np [1] *"), "-{}-np {[}1{]} {*}");
  EXPECT_EQ(latex_escape("2 × 1 \xe2\x82\xac"), "2 $\\times$ 1 ?");
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Csv, IsColumnsOfObjects) {
  Csv csv({{"name"}, {"least", "/range/0"}, {"on"}, {"parts"}, {"seconds", "/best/seconds"}});
  csv.add({{"on", true}, {"name", "a,b"}, {"range", {0.5, 2}}, {"parts", {"x", "y"}}, {"more", 1}});
  csv.add({{"name", nullptr}, {"range", nullptr}, {"on", false}, {"best", {{"seconds", 12}}}});
  csv.add({{"name", "=1\n"}, {"range", {-0.5}}, {"parts", {"@x", "y"}}});
  EXPECT_EQ(csv.text(),
            "name,least,on,parts,seconds\r\n"
            "\"a,b\",0.5,1,x; y,\r\n"
            ",,0,,12\r\n"
            "'=1\\n,-0.5,,'@x; y,\r\n");
}

struct Pet {
  std::string name;
  std::optional<double> weight;
};

TEST(Table, OfThingsHasAColumnWhereOneOfThemHasIt) {
  const auto weight = [](const Pet& p, DocumentTable& table) {
    Entry entry{p.weight ? "heavy" : "", "", p.weight ? 0 : table.note("not weighed")};
    entry.value = p.weight;
    return entry;
  };
  const auto never = [](const Pet&, DocumentTable&) { return Entry{"?"}; };
  const auto table_with = [&](std::vector<Pet> pets) {
    return report::table_of<Pet>(
        "Pets", "name", pets, &Pet::name,
        {{"age", never, false}, {"weight", weight, false}, {"kind", never}});
  };
  const DocumentTable two = table_with({{"a", 3.0}, {"b", {}}});
  EXPECT_EQ(two.head, (std::vector<std::string>{"weight", "kind"}));
  EXPECT_EQ(two.rows[1].label, "b");
  EXPECT_EQ(two.rows[1].entries[0].note, 1);
  EXPECT_EQ(two.rows[1].entries.size(), 2u);
  EXPECT_TRUE(two.sortable);
  const DocumentTable none = table_with({{"b", {}}});
  EXPECT_EQ(none.head, std::vector<std::string>{"kind"});
  EXPECT_TRUE(none.notes.empty()) << "of a column that is not there";
}

TEST(Page, SaysWhyThereIsNoPlotAndScriptsComeWithPlotsOnly) {
  Document document{"t", {}, {}, {{"a", "A", {}, {"seconds"}, {}, {}}}};
  PageParts parts{"", "tables();", "own();", "", ""};
  const std::string without = html(document, "{}", parts);
  EXPECT_TRUE(has(without, "Plot: n/a (this program was built without Chart.js"));
  EXPECT_FALSE(has(without, "own()"));
  EXPECT_TRUE(has(without, "tables();}());</script>"));  // tables are there without plots, too
  parts.library = "library()";
  parts.library_licence = "MIT";
  const std::string with = html(document, "{}", parts);
  EXPECT_TRUE(has(with, "data-plot=\"seconds\"") && has(with, "library()") && has(with, "MIT"));
  EXPECT_TRUE(has(with, "tables();own();}());</script>"));  // one function: nothing is global
  document.sections[0].plots.clear();
  EXPECT_FALSE(has(html(document, "{}", parts), "library()"));
}

TEST(Page, CardPicturesAndShadesHaveTheirTextsEscaped) {
  DocumentTable table;
  table.rows = {{"a", {{"3", "0.75", 0, 3, "", 0.75}, {"1"}}, false}};
  Section section{"a", "A", {}, {}, {table}, {}};
  section.pictures.push_back({"image/png", "abc", 4, 2, "is <a>", "x\" onload=\"alert(1)"});
  Document document{"t", {}, {}, {section}};
  document.card = Card{"<s>", "0.9", "of <&>", {{"machine", "<m>"}}, "x '<c>'"};
  const std::string page = html(document, "{}", PageParts{});
  for (const char* text :
       {"<table class=\"figures shaded\">",
        "<td style=\"--shade:0.750\" data-value=\"3\">3 <small>",
        "<img src=\"data:image/png;base64,YWJj\" width=\"4\" height=\"2\" "
        "alt=\"x&quot; onload=&quot;alert(1)\">",
        "<figcaption>is &lt;a&gt;<small>x&quot; onload=", "<p class=\"subject\">&lt;s&gt;</p>",
        "<p class=\"figure\">0.9</p>", "of &lt;&amp;&gt;", "<dt>machine</dt><dd>&lt;m&gt;</dd>",
        "<code>x &#39;&lt;c&gt;&#39;</code>", "img-src data:"}) {
    EXPECT_TRUE(has(page, text)) << text;
  }
}

TEST(Escapes, Base64IsThatOfTheStandard) {  // RFC 4648, section 10
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe"), "//4=");
}

std::string refused(const std::string& text) {
  try {
    parse_reference(text, "x.csv");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.what();
  }
  return "was read";
}

TEST(ReferenceTable, ColumnsMayStandInAnyOrder) {
  const ReferenceTable t = parse_reference(
      "batch, note,seconds_per_epoch ,cpus\r\n128,x,878,1\r\n\r\n256,,N/A,1\r\n", "x");
  EXPECT_EQ(t.at(128, 1), 878);
  EXPECT_FALSE(t.at(256, 1));
  EXPECT_TRUE(t.seconds.contains({256, 1}));
  EXPECT_FALSE(t.seconds.contains({512, 1}));
}

TEST(ReferenceTable, FieldsAreQuotedAsSpreadsheetsDoIt) {
  const ReferenceTable t = parse_reference(
      "\xef\xbb\xbf"
      "cpus,\"a \"\"note\"\", or none\",\"batch\",seconds_per_epoch\r\n"
      "1, \"1,2,\"\"3\"\"\" ,\"128\",878\r\n2,5\" disk,128,\"\"\r\n",
      "x");
  EXPECT_EQ(t.at(128, 1), 878);
  EXPECT_EQ(t.seconds.size(), 2u);
  EXPECT_FALSE(t.at(128, 2));
  EXPECT_EQ(
      parse_reference("\xef\xbb\xbf# model=dogcat\ncpus,batch,seconds_per_epoch\n1,2,3\n", "x")
          .model,
      "dogcat");
}

TEST(ReferenceTable, ReadsTheReportOfOneSeries) {
  std::vector<cells::Cell> cells{testing::cell(1, 1, 128, 100), testing::cell(2, 1, 128, 62.5),
                                 testing::absent(4, 128, "no \"room\", said the host")};
  cells[0].command = "./cputrain train --augment flip,six";
  const ScalingTable table = make_scaling_table({testing::source(cells)}, {});
  const ReferenceTable t = parse_reference(table_csv(table, std::nullopt), "report.csv");
  EXPECT_EQ(t.cpus, (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(t.at(128, 1), 100);
  EXPECT_EQ(t.at(128, 2), 62.5);
  EXPECT_FALSE(t.at(128, 4));
}

TEST(ReferenceTable, RefusesWhatIsOddAndNamesTheLine) {
  const std::string head = "cpus,batch,seconds_per_epoch\n";
  for (const auto& [line, word] : std::vector<std::pair<std::string, std::string>>{
           {"0,128,1", "cpus must be"},
           {"1,1.5,1", "batch must be"},
           {"1,128,-1", "seconds_per_epoch must be"},
           {"1,128,nan", "seconds_per_epoch must be"},
           {"1,128,inf", "seconds_per_epoch must be"},
           {"1,128,1e400", "seconds_per_epoch must be"},
           {"1,128", "2 fields"},
           {"1,128,\"5", "does not close"},
           {"1,\"128\"8,5", "text between a closing quote"},
           {"1,99999999999999999999,1", "batch must be"},
           {"1,128,5\n1,128,5", "second time"}}) {
    const std::string message = refused(head + line);
    EXPECT_NE(message.find(word), std::string::npos) << message;
    EXPECT_NE(message.find(line.find('\n') == std::string::npos ? "line 2" : "line 3"),
              std::string::npos)
        << message;
  }
  EXPECT_NE(refused("").find("no figures"), std::string::npos);
  EXPECT_NE(refused(head).find("no figures"), std::string::npos);
  EXPECT_NE(refused("cpus,batch\n1,2\n").find("no column seconds_per_epoch"), std::string::npos);
  EXPECT_NE(refused("cpus,cpus,batch,seconds_per_epoch\n").find("two columns"), std::string::npos);
}

TEST(ReferenceTable, IdenticalRowsNeedTwoTimes) {
  const std::string head = "cpus,batch,seconds_per_epoch\n";
  const auto pairs = [&](const std::string& rows) {
    return identical_rows(parse_reference(head + rows, "x"));
  };
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(pairs("1,1,\n2,1,8\n4,1,5\n1,2,\n2,2,8\n4,2,5\n1,3,9\n2,3,8\n4,3,5\n"),
            (Pairs{{1, 2}}));
  EXPECT_EQ(pairs("1,1,8\n1,2,8\n"), Pairs{});
  EXPECT_EQ(pairs("1,1,8\n2,1,5\n1,2,8\n2,2,6\n"), Pairs{});
}

cells::Cell repeated(std::size_t batch, std::vector<double> repeats) {
  cells::Cell c;
  c.batch = batch;
  c.status = cells::CellStatus::measured;
  c.seconds_per_epoch = repeats[repeats.size() / 2];
  c.repeats = std::move(repeats);
  return c;
}

TEST(Difference, AVerdictNeedsAnIntervalThatLeavesOutOne) {
  cells::CellTable before, after;
  cells::Cell absent = repeated(5, {1});
  absent.status = cells::CellStatus::absent;
  absent.seconds_per_epoch.reset();
  absent.reason = "memory";
  before.cells = {repeated(1, {100, 101, 102}), repeated(2, {100, 101, 102}),
                  repeated(3, {90, 101, 112}),  repeated(4, {100}),
                  repeated(5, {100, 101}),      repeated(6, {1, 2})};
  after.cells = {absent, repeated(4, {50}), repeated(3, {95, 106, 117}),
                 repeated(2, {110, 111, 112}), repeated(1, {90, 91, 92})};
  const auto differences = compare_sweeps(before, after);
  ASSERT_EQ(differences.size(), 5u);
  const Verdict expected[] = {Verdict::faster, Verdict::slower, Verdict::no_difference_shown,
                              Verdict::absent, Verdict::absent};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(differences[i].verdict, expected[i]) << i;
  EXPECT_NEAR(differences[0].ratio->of_means, std::cbrt(90.0 * 91 * 92 / (100 * 101 * 102)), 1e-12);
  EXPECT_EQ(differences[3].interval(), nullptr);
  EXPECT_EQ(differences[3].why, "too few repeats: an interval needs two of each");
  const Document document =
      difference_document(differences, {{}, before, "old"}, {{}, after, "new"});
  EXPECT_EQ(document.summary.at(0),
            "Of 5 cells in both, 1 is faster in new, 1 is slower, 1 shows no difference, and 2 are "
            "n/a, with the reason below the table.");
  EXPECT_EQ(differences[4].why, "memory");
}

// A flag tells cells apart where one of the two sweeps has several values of it; what holds for all
// of a sweep is what the comparison may be about.
TEST(Difference, CellsOfManyAxesFindTheirOwn) {
  const auto with = [](std::map<std::string, std::string> axes, double seconds) {
    cells::Cell cell = repeated(2, {seconds, seconds * 1.01});
    cell.axes = std::move(axes);
    return cell;
  };
  cells::CellTable before, after;
  before.cells = {with({{"allreduce", "auto"}}, 10), with({{"allreduce", "ring"}}, 20),
                  with({{"allreduce", "tree"}}, 30)};
  after.cells = {with({{"allreduce", "ring"}, {"lr", "0.1"}}, 40), with({{"lr", "0.1"}}, 50)};
  after.options = {{"lr", "0.1"}};
  const auto differences = compare_sweeps(before, after);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_NEAR(differences[0].ratio->of_means, 5, 1e-9);  // who says nothing has the usual one
  EXPECT_NEAR(differences[1].ratio->of_means, 2, 1e-9);
  EXPECT_EQ(differences[1].before.axes.at("allreduce"), "ring");
  EXPECT_EQ(conditions_that_differ(before, after).back(), "They differ in --lr: not said and 0.1.");
  EXPECT_NE(difference_csv(differences).find(",ring,"), std::string::npos);
}

TEST(Difference, OtherWorkIsNeitherFasterNorSlower) {
  cells::CellTable before, after;
  before.cells = {repeated(1, {100, 101, 102})};
  after.cells = {repeated(1, {90, 91, 92})};
  before.model = "dogcat";
  before.image_size = 256;
  before.images_per_epoch = 22500;
  // Nobody said that it is other work; and to compare processors and builds is what this is for.
  after.machine = {.cpu = "another", .build = "another"};
  after.options = {{"precision", "bf16"}};
  EXPECT_EQ(compare_sweeps(before, after)[0].verdict, Verdict::faster);
  const auto why = [&](const cells::CellTable& other) {
    const CellDifference d = compare_sweeps(before, other).at(0);
    EXPECT_EQ(d.verdict, Verdict::absent);
    EXPECT_FALSE(d.ratio);
    return d.why;
  };
  cells::CellTable other = after;
  other.model = "vgg16";
  EXPECT_EQ(why(other), "an epoch is other work: they differ in model (dogcat and vgg16)");
  other = after;
  other.image_size = 128;
  other.images_per_epoch = 2000;
  EXPECT_EQ(why(other),
            "an epoch is other work: they differ in image size (256 and 128), images per epoch "
            "(22500 and 2000)");
}

}  // namespace
}  // namespace cputrain::report

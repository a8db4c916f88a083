// What the page of an evaluation says, with few classes and with many.

#include "scaling/report/trainings/evaluation_page.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

namespace cputrain::report {
namespace {

using training::EvaluationFacts;

/// So many classes of ten images each: of class c, c % 5 images were predicted with the next class.
EvaluationFacts facts_of(std::size_t classes) {
  EvaluationFacts facts;
  facts.model = "dogcat at 64x64";
  facts.data = "/d/photos";
  facts.part = "test";
  facts.images = 10.0 * static_cast<double>(classes);
  facts.matrix.assign(classes, std::vector<double>(classes));
  facts.classes.resize(classes);
  for (std::size_t c = 0; c < classes; ++c) {
    const auto wrong = static_cast<double>(c % 5);
    const std::size_t next = (c + 1) % classes;
    facts.classes[c].name = "c" + std::to_string(c);
    facts.classes[c].images = 10;
    facts.classes[c].correct = 10 - wrong;
    facts.classes[c].predictions += 10 - wrong;
    facts.classes[next].predictions += wrong;
    facts.matrix[c][c] = 10 - wrong;
    facts.matrix[c][next] = wrong;
    facts.correct += 10 - wrong;
  }
  facts.accuracy = facts.correct / facts.images;
  return facts;
}

std::vector<std::string> texts(const Row& row) {
  std::vector<std::string> list;
  for (const Entry& entry : row.entries) list.push_back(entry.text);
  return list;
}

using Texts = std::vector<std::string>;

TEST(EvaluationPage, HasCountsRatesRecallAndPrecision) {
  const Document document = evaluation_document(facts_of(3));
  const DocumentTable& matrix = document.sections.at(0).tables.at(0);
  EXPECT_EQ(texts(matrix.rows[1]), (Texts{"0", "9", "1"}));
  EXPECT_EQ(matrix.rows[1].entries[1].mark, "0.90");
  EXPECT_DOUBLE_EQ(*matrix.rows[1].entries[1].shade, 0.9);
  const DocumentTable& classes = document.sections.at(1).tables.at(0);
  // Class 2: 8 of 10 right; predicted 8 + 1 times. F1 = 2 * 8 / (10 + 9).
  EXPECT_EQ(texts(classes.rows[2]), (Texts{"10", "9", "8", "0.8000", "0.8889", "0.8421"}));
  EXPECT_EQ(document.card->figure, "0.9000");
  EXPECT_EQ(document.card->subject, "dogcat at 64x64, data photos");
}

/// The marks of a matrix, row after row.
Texts rates_of(const std::vector<std::vector<double>>& matrix) {
  EvaluationFacts facts = facts_of(matrix.size());
  facts.matrix = matrix;
  for (std::size_t c = 0; c < matrix.size(); ++c) {
    facts.classes[c].images = std::accumulate(matrix[c].begin(), matrix[c].end(), 0.0);
  }
  Texts marks;
  const Document document = evaluation_document(facts);
  for (const Row& row : document.sections.at(0).tables.at(0).rows) {
    for (const Entry& entry : row.entries) marks.push_back(entry.mark);
  }
  return marks;
}

TEST(EvaluationPage, PartsOfARowAddUpAsTheyAreShown) {
  EXPECT_EQ(rates_of({{199, 1}, {4, 196}}), (Texts{"0.995", "0.005", "0.020", "0.980"}));
  EXPECT_EQ(rates_of({{196, 4}, {3, 197}}), (Texts{"0.980", "0.020", "0.015", "0.985"}));
  EXPECT_EQ(rates_of({{9, 1}, {5, 5}}), (Texts{"0.90", "0.10", "0.50", "0.50"}));
  EXPECT_EQ(rates_of({{1, 1, 1}, {0, 3, 0}, {2, 2, 2}}),
            (Texts{"0.34", "0.33", "0.33", "", "1.00", "", "0.34", "0.33", "0.33"}));
  EXPECT_EQ(rates_of({{0, 0}, {1, 7}}), (Texts{"", "", "0.125", "0.875"}));
}

TEST(EvaluationPage, HasAveragesAndNoNumberForWhatIsNone) {
  EvaluationFacts facts = facts_of(2);
  facts.classes[1].images = facts.classes[1].predictions = facts.classes[1].correct = 0;
  facts.macro = loop::MacroAverages{0.75, 0.5, 0.6};
  facts.auc = 0.875;
  facts.loss = 0.0641, facts.penalty = 0.1039;
  const Document document = evaluation_document(facts);
  const DocumentTable& classes = document.sections.at(1).tables.at(0);
  EXPECT_EQ(texts(classes.rows[1]), (Texts{"0", "0", "0", "n/a", "n/a", "n/a"}));
  EXPECT_EQ(texts(classes.rows[2]), (Texts{"", "", "", "0.7500", "0.5000", "0.6000"}));
  EXPECT_TRUE(classes.rows[2].apart);
  const std::map<std::string, std::string> card(document.card->facts.begin(),
                                                document.card->facts.end());
  EXPECT_EQ(card.at("AUC"), "0.8750");
  EXPECT_EQ(card.at("macro F1"), "0.6000");
  EXPECT_EQ(card.at("loss"), "0.0641");
  EXPECT_EQ(card.at("L2 penalty"), "0.1039, not in the loss");
}

TEST(EvaluationPage, OfManyClassesTheMatrixHasThoseWithMostErrors) {
  const Document document = evaluation_document(facts_of(100));
  const Section& confusion = document.sections.at(0);
  const DocumentTable& matrix = confusion.tables.at(0);
  EXPECT_EQ(matrix.rows.size(), kMostInPageMatrix);
  // Errors of class c are its own and those of the class before: 4 + 3, 4, 3 + 2, 1 + 2, 1.
  EXPECT_EQ(matrix.rows[0].label, "c3");
  EXPECT_EQ(matrix.rows[1].label, "c4");
  EXPECT_TRUE(matrix.rows[0].entries[0].mark.empty());
  EXPECT_EQ(confusion.remarks.size(), 1u);
  EXPECT_EQ(confusion.tables.at(1).rows.at(0).label, "c4");
  EXPECT_EQ(document.sections.at(1).tables.at(0).rows.size(), 100u);
}

TEST(EvaluationPage, SaysHowManyOfTheWrongAnswersItShows) {
  const auto said = [](const EvaluationFacts& facts) {
    return evaluation_document(facts).sections.back().paragraphs.at(0);
  };
  EvaluationFacts facts = facts_of(3);  // 0 + 1 + 2 wrong predictions
  facts.surest_errors.resize(2);
  EXPECT_TRUE(said(facts).starts_with("The 2 of 3 wrong predictions with the highest"));
  facts.surest_errors.resize(3);
  EXPECT_TRUE(said(facts).starts_with("All 3 wrong predictions, the highest"));
  facts.undecided = 2;  // no image of these is shown
  facts.surest_errors.resize(1);
  EXPECT_TRUE(said(facts).starts_with("The only wrong prediction, as"));
  facts.undecided = 3;
  facts.surest_errors.clear();
  EXPECT_EQ(said(facts), "No other prediction was wrong.");
}

TEST(EvaluationPage, NamesAreBelowTheDataAndNoMatrixIsNoSection) {
  EvaluationFacts facts = facts_of(2);
  facts.matrix.clear();
  facts.surest_errors = {
      {{"image/png", {std::byte{'x'}}, 1, 1}, "/d/photos/a/<1>.jpg", "a", "b", 0.75, 0.25}};
  const Document document = evaluation_document(facts);
  EXPECT_EQ(document.sections.front().id, "classes");
  EXPECT_EQ(document.sections.front().remarks.size(), 1u);
  const Picture& picture = document.sections.back().pictures.at(0);
  EXPECT_EQ(picture.text, "predicted b (0.7500), is a (0.2500)");
  EXPECT_EQ(picture.details, "a/<1>.jpg");
  EXPECT_NE(evaluation_page(facts).find("<small>a/&lt;1&gt;.jpg</small>"), std::string::npos);
}

TEST(EvaluationPage, SaysFirstThatTrainingMayHaveLearntFromTheImages) {
  EvaluationFacts facts = facts_of(2);
  EXPECT_TRUE(evaluation_document(facts).headline.empty());
  facts.doubt = "training learnt from them";
  EXPECT_EQ(evaluation_document(facts).headline.at(0),
            "Training may have learnt from these images: training learnt from them.");
}

TEST(EvaluationPage, LongNamesWrapAndManyColumnsStandUpright) {
  EvaluationFacts facts = facts_of(2);
  EXPECT_EQ(evaluation_page(facts).find("class=\"figures shaded many\""), std::string::npos);
  facts.classes[1].name.assign(200, 'a');
  EXPECT_NE(evaluation_page(facts).find("class=\"figures shaded long\""), std::string::npos);
  EXPECT_NE(evaluation_page(facts_of(12)).find("class=\"figures shaded many\""), std::string::npos);
}

}  // namespace
}  // namespace cputrain::report

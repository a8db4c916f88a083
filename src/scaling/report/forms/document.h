#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What a report says, without the form: texts are plain, each writer escapes them for its format.
namespace cputrain::report {

/// One cell of a table. `mark` says what kind of figure it is ("scaled", "simulated") where that is
/// not a plain measurement; `note` counts from 1 in the notes of its table, 0: none.
struct Entry {
  std::string text{}, mark{};
  int note = 0;
  std::optional<double> value{};  ///< that the page sorts by; nothing: by the text
  std::string command{};          ///< that made the figure; the page shows it on request
  std::optional<double> shade{};  ///< 0 to 1: how strongly the page colours it
};

struct Row {
  std::string label{};
  std::vector<Entry> entries{};
  bool apart = false;  ///< another kind of row, such as the time that a larger batch saves

  /// Whether no entry has a text.
  bool empty() const { return std::ranges::all_of(entries, &std::string::empty, &Entry::text); }
};

struct DocumentTable {
  std::string caption{};                              ///< with the unit
  std::string corner{};                               ///< what rows and columns are
  std::vector<std::pair<std::string, int>> groups{};  ///< over so many columns each; may be empty
  std::vector<std::string> head{};                    ///< the columns' heads
  std::vector<Row> rows{};
  std::vector<std::string> notes{};  ///< Entry::note counts these from 1
  std::string shared_mark{};  ///< all figures have it: it stands in the caption, not beside each
  bool words = false;         ///< entries are sentences, not figures
  bool sortable = false;      ///< the page sorts its rows by a column, those apart excepted
  bool filterable = false;    ///< the page shows the rows that hold a text

  /// The number of a note, which is added where it is not there.
  int note(const std::string& text);

  std::map<std::string, int> numbers{};  ///< the notes', by their texts
};

/// 1234, 123, 12.3, 1.23, 0.123: three digits, and never an exponent.
std::string figure_text(double);
/// With so many decimals.
template <int kDecimals>
std::string decimals(double value) {
  return fmt::format("{:.{}f}", value, kDecimals);
}
/// What stands in the place of a figure that is not known.
inline constexpr const char* kNotKnown = "–";
/// A figure that the page sorts by its value; kNotKnown where there is none.
Entry figure_entry(std::optional<double>,
                   const std::function<std::string(double)>& text = figure_text);
/// "AMD EPYC, 2 cores"; of what is known of both.
std::string processor_text(const std::string& cpu, int cores);

/// Adds more tables, or remarks.
template <class T>
void add_all(std::vector<T>& to, std::vector<T> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// A column of a table whose rows are things of one kind.
template <class T>
struct Column {
  std::string head;  ///< with the unit
  std::function<Entry(const T&, DocumentTable&)> entry;
  bool always = true;  ///< else only where an entry has a value
};

/// A row for each of some things, with its label.
template <class T, class Things, class Label>
DocumentTable table_of(std::string caption, std::string corner, const Things& things,
                       const Label& label, const std::vector<Column<T>>& columns) {
  DocumentTable table{.caption = std::move(caption), .corner = std::move(corner)};
  std::vector<const Column<T>*> kept;
  for (const Column<T>& column : columns) {
    const auto has_value = [&](const T& thing) {
      DocumentTable notes_of_no_use;
      return column.entry(thing, notes_of_no_use).value.has_value();
    };
    if (!column.always && std::none_of(things.begin(), things.end(), has_value)) continue;
    kept.push_back(&column);
    table.head.push_back(column.head);
  }
  for (const T& thing : things) {
    Row row{.label = std::invoke(label, thing)};
    for (const Column<T>* column : kept) row.entries.push_back(column->entry(thing, table));
    table.rows.push_back(std::move(row));
  }
  table.sortable = table.rows.size() > 1;
  return table;
}

/// An image that the page holds, with what it says below it.
struct Picture {
  std::string type;  ///< "image/png"
  std::string file;  ///< its bytes
  int width = 0, height = 0;
  std::string text{}, details{};
};

struct Section {
  std::string id, title;  ///< id: a word of small letters
  std::vector<std::string> paragraphs{};
  std::vector<std::string> plots{};  ///< that the page draws here, by name
  std::vector<DocumentTable> tables{};
  std::vector<std::string> remarks{};  ///< below the tables
  bool tables_first = false;           ///< the page has them above the plots
  std::vector<Picture> pictures{};     ///< below the remarks; the page alone has them
};

/// Whether there is anything of it without plots, which the page alone has.
inline bool has_text(const Section& s) {
  return !s.paragraphs.empty() || !s.tables.empty() || !s.remarks.empty();
}

/// What a person would show to others, in one piece: the page has it at its top.
struct Card {
  std::string subject;  ///< "dogcat at 64x64, data photos"
  std::string figure;   ///< "0.9312", "312 s"
  std::string what;     ///< "best validation accuracy, in epoch 7"
  std::vector<std::pair<std::string, std::string>> facts;  ///< "machine", "AMD EPYC, 2 cores"
  std::string command;                                     ///< that made it; or empty

  /// A fact, where it is known.
  void add(const char* name, const std::string& text) {
    if (!text.empty()) facts.emplace_back(name, text);
  }
};

struct Document {
  std::string title;
  std::vector<std::string> headline{};  ///< what it comes to; first of all
  std::vector<std::string> summary{};
  std::vector<Section> sections{};
  std::optional<Card> card{};  ///< the page alone has it; tables say the same
  bool plot_first = false;     ///< the page begins with its first plot, and folds what explains it

  /// A section, where it is one and not empty.
  void add(Section section) {
    if (!section.id.empty()) sections.push_back(std::move(section));
  }
};

/// GitHub's Markdown: cells that need no HTML.
std::string markdown(const Document&);
/// A standalone LaTeX document: classes and packages of every TeX installation (article, booktabs).
std::string latex(const Document&);

/// What pages are made with.
struct PageParts {
  std::string_view style;
  std::string_view script;           ///< for card and tables, which every page has
  std::string_view plot_script;      ///< for the plots, after the former
  std::string_view library;          ///< for the plots, a script; empty: there are none
  std::string_view library_licence;  ///< that must stay with it
};
/// Those of this build, compiled in (scripts/cmake/EmbedPage.cmake).
PageParts page_parts();
/// One HTML page that loads nothing; its plots are drawn from `data_json`, one JSON value.
std::string html(const Document&, std::string_view data_json, const PageParts& = page_parts());

}  // namespace cputrain::report

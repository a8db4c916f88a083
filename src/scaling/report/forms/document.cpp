// What documents are made of, and their form that everything reads: GitHub's Markdown, which is
// headings, paragraphs, lists and tables with bars.

#include "scaling/report/forms/document.h"

#include <cmath>

#include "core/text.h"
#include "scaling/report/forms/escapes.h"

namespace cputrain::report {
namespace {

std::string markdown_entry(const Entry& entry) {
  std::string text = markdown_escape(entry.text);
  if (!entry.mark.empty()) text += " " + markdown_escape(entry.mark);
  if (entry.note > 0) text += fmt::format(" ({})", entry.note);
  return text;
}

/// Columns as wide as their widest cell, so that the source reads like a table, too.
std::string table_lines(const std::vector<std::vector<std::string>>& rows, bool words) {
  std::vector<std::size_t> widths(rows.front().size(), 3);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!words) widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    text += '|';
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      text += words || i == 0 ? fmt::format(" {:<{}} |", rows[r][i], widths[i])
                              : fmt::format(" {:>{}} |", rows[r][i], widths[i]);
    }
    text += '\n';
    if (r > 0) continue;
    text += '|';
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      text += fmt::format(" {:-<{}}{} |", "", widths[i] - 1, words || i == 0 ? '-' : ':');
    }
    text += '\n';
  }
  return text;
}

/// Markdown has one row of headings: a group's name goes before each of its columns.
std::vector<std::string> head_of(const DocumentTable& table) {
  std::vector<std::string> head{markdown_escape(table.corner)}, names;
  for (const auto& [name, columns] : table.groups) {
    for (int i = 0; i < columns; ++i) names.push_back(markdown_escape(name) + ": ");
  }
  names.resize(table.head.size());
  for (std::size_t i = 0; i < table.head.size(); ++i) {
    head.push_back(names[i] + markdown_escape(table.head[i]));
  }
  return head;
}

std::string markdown_table(const DocumentTable& table) {
  std::vector<std::vector<std::string>> rows{head_of(table)};
  for (const Row& row : table.rows) {
    auto& cells = rows.emplace_back(std::vector<std::string>{markdown_escape(row.label)});
    for (const Entry& entry : row.entries) cells.push_back(markdown_entry(entry));
  }
  std::string text = markdown_escape(table.caption) + ":\n\n" + table_lines(rows, table.words);
  for (std::size_t i = 0; i < table.notes.size(); ++i) {
    text += fmt::format("\n({}) {}\n", i + 1, markdown_escape(table.notes[i]));
  }
  return text + '\n';
}

}  // namespace

int DocumentTable::note(const std::string& text) {
  const auto [found, fresh] = numbers.emplace(text, static_cast<int>(notes.size()) + 1);
  if (fresh) notes.push_back(text);
  return found->second;
}

std::string figure_text(double value) {
  const double size = std::fabs(value);
  // Rounding first: 99.96 is 100, not 100.0.
  int places = 0;
  for (double limit = 99.95; places < 6 && size < limit; limit /= 10) ++places;
  return size == 0 ? "0" : fmt::format("{:.{}f}", value, places);
}

Entry figure_entry(std::optional<double> value, const std::function<std::string(double)>& text) {
  Entry entry{value ? text(*value) : kNotKnown};
  entry.value = value;
  return entry;
}

std::string processor_text(const std::string& cpu, int cores) {
  if (cores <= 0) return cpu;
  return cpu + (cpu.empty() ? "" : ", ") + counted(cores, "core");
}

std::string markdown(const Document& document) {
  std::string text = "# " + markdown_escape(document.title) + "\n\n";
  text += each_between(document.headline, markdown_escape, "**", "**\n\n");
  text += each_between(document.summary, markdown_escape, "", "\n\n");
  for (const Section& section : document.sections) {
    if (!has_text(section)) continue;
    text += "## " + markdown_escape(section.title) + "\n\n";
    text += each_between(section.paragraphs, markdown_escape, "", "\n\n");
    for (const DocumentTable& table : section.tables) text += markdown_table(table);
    text += each_between(section.remarks, markdown_escape, "- ", "\n");
    if (!section.remarks.empty()) text += '\n';
  }
  text.pop_back();
  return text;
}

}  // namespace cputrain::report

// Documents as LaTeX: article and booktabs, tables no wider than the line.

#include <fmt/format.h>

#include "report/document.h"
#include "report/escapes.h"

namespace cputrain {
namespace {

constexpr const char* kHead =
    "\\documentclass[10pt]{article}\n"
    "\\usepackage[T1]{fontenc}\n"
    "\\usepackage[utf8]{inputenc}\n"
    "\\usepackage[a4paper,margin=2cm]{geometry}\n"
    "\\usepackage{booktabs}\n"
    "\\usepackage{graphicx}\n"
    "% Figures shrink to the line where they are wider.\n"
    "\\newsavebox{\\figures}\n"
    "\\newcommand{\\shrunk}{\\ifdim\\wd\\figures>\\linewidth"
    "\\resizebox{\\linewidth}{!}{\\usebox{\\figures}}\\else\\usebox{\\figures}\\fi}\n";

std::string entry_text(const Entry& entry) {
  std::string text = latex_escape(entry.text);
  if (!entry.mark.empty()) text += "\\textsuperscript{" + latex_escape(entry.mark) + "}";
  if (entry.note > 0) text += fmt::format("\\textsuperscript{{{}}}", entry.note);
  return text;
}

std::string columns_of(const DocumentTable& table) {
  if (!table.words) return "l" + std::string(table.head.size(), 'r');
  // Sentences break lines: the last column takes what is left of the line.
  std::string columns = "l";
  for (std::size_t i = 0; i < table.head.size(); ++i) {
    columns += i + 1 == table.head.size() ? "p{0.6\\linewidth}" : "l";
  }
  return columns;
}

std::string group_lines(const DocumentTable& table) {
  if (table.groups.empty()) return "";
  std::string names, rules;
  std::size_t column = 2;
  for (const auto& [name, count] : table.groups) {
    names += fmt::format(" & \\multicolumn{{{}}}{{c}}{{{}}}", count, latex_escape(name));
    rules += fmt::format("\\cmidrule(lr){{{}-{}}}", column, column + count - 1);
    column += count;
  }
  return names + " \\\\\n" + rules + "\n";
}

std::string table_text(const DocumentTable& table) {
  std::string text = "\\begin{table}[!htbp]\n\\centering\n\\caption{" +
                     latex_escape(table.caption) +
                     "}\n\\begin{lrbox}{\\figures}\n\\begin{tabular}{" + columns_of(table) +
                     "}\n\\toprule\n" + group_lines(table) + latex_escape(table.corner);
  for (const std::string& head : table.head) text += " & " + latex_escape(head);
  text += " \\\\\n\\midrule\n";
  for (const Row& row : table.rows) {
    if (row.apart) text += "\\addlinespace\n";
    text += latex_escape(row.label);
    for (const Entry& entry : row.entries) text += " & " + entry_text(entry);
    text += " \\\\\n";
  }
  text += "\\bottomrule\n\\end{tabular}\n\\end{lrbox}\n\\shrunk\n";
  for (std::size_t i = 0; i < table.notes.size(); ++i) {
    text += fmt::format("\n\\footnotesize\\textsuperscript{{{}}} {}\n", i + 1,
                        latex_escape(table.notes[i]));
  }
  return text + "\\end{table}\n\n";
}

}  // namespace

std::string latex(const Document& document) {
  std::string text = std::string(kHead) + "\\begin{document}\n\\title{" +
                     latex_escape(document.title) + "}\n\\author{}\\date{}\n\\maketitle\n\n";
  for (const std::string& line : document.summary) text += latex_escape(line) + "\n\n";
  for (const Section& section : document.sections) {
    text += "\\section{" + latex_escape(section.title) + "}\n\n";
    for (const std::string& line : section.paragraphs) text += latex_escape(line) + "\n\n";
    for (const DocumentTable& table : section.tables) text += table_text(table);
    if (section.remarks.empty()) continue;
    text += "\\begin{itemize}\n";
    for (const std::string& line : section.remarks) text += "\\item{} " + latex_escape(line) + "\n";
    text += "\\end{itemize}\n\n";
  }
  // Floats wait for pages; an article of tables may have more of them than TeX keeps waiting.
  return text + "\\clearpage\n\\end{document}\n";
}

}  // namespace cputrain

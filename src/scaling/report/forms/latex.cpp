// Documents as LaTeX: article, booktabs and longtable. Nothing floats, so that no table is lost or
// waits: figures shrink to the line and come in parts that fit on a page, sentences break lines and
// pages.

#include "scaling/report/forms/document.h"
#include "scaling/report/forms/escapes.h"

namespace cputrain::report {
namespace {

constexpr const char* kLatexHead =
    "\\documentclass[10pt]{article}\n"
    "\\usepackage[T1]{fontenc}\n"
    "\\usepackage[utf8]{inputenc}\n"
    "\\usepackage[a4paper,margin=2cm]{geometry}\n"
    "\\usepackage{array}\n"
    "\\usepackage{booktabs}\n"
    "\\usepackage{longtable}\n"
    "\\usepackage{graphicx}\n"
    "\\setlength{\\LTleft}{0pt}\n"
    "% A caption without a float.\n"
    "\\makeatletter\n\\newcommand{\\tablecaption}{\\def\\@captype{table}\\caption}\n\\makeatother\n"
    "% Figures shrink to the line where they are wider.\n"
    "\\newsavebox{\\figures}\n"
    "\\newcommand{\\shrunk}{\\ifdim\\wd\\figures>\\linewidth"
    "\\resizebox{\\linewidth}{!}{\\usebox{\\figures}}\\else\\usebox{\\figures}\\fi}\n";

std::string latex_entry(const Entry& entry) {
  std::string text = latex_escape(entry.text);
  if (!entry.mark.empty()) text += "\\textsuperscript{" + latex_escape(entry.mark) + "}";
  if (entry.note > 0) text += fmt::format("\\textsuperscript{{{}}}", entry.note);
  return text;
}

/// For sentences: the label, what comes between, and the last column, which gets most of the line.
std::string word_columns(const DocumentTable& table) {
  const std::size_t between = table.head.empty() ? 0 : table.head.size() - 1;
  std::string columns = ">{\\raggedright}p{0.24\\linewidth}";
  const double each = between > 0 ? 0.16 / static_cast<double>(between) : 0;
  for (std::size_t i = 0; i < between; ++i) {
    columns += fmt::format(">{{\\raggedright}}p{{{:.3f}\\linewidth}}", each);
  }
  return columns + fmt::format(">{{\\raggedright\\arraybackslash}}p{{{:.2f}\\linewidth}}",
                               between > 0 ? 0.5 : 0.68);
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

std::string head_line(const DocumentTable& table) {
  std::string text = latex_escape(table.corner);
  for (const std::string& head : table.head) text += " & " + latex_escape(head);
  return text + " \\\\\n\\midrule\n";
}

std::string row_lines(const DocumentTable& table, std::size_t first, std::size_t last) {
  std::string text;
  for (std::size_t i = first; i < last; ++i) {
    if (table.rows[i].apart) text += "\\addlinespace\n";
    text += latex_escape(table.rows[i].label);
    for (const Entry& entry : table.rows[i].entries) text += " & " + latex_entry(entry);
    text += " \\\\\n";
  }
  return text;
}

std::string note_lines(const DocumentTable& table) {
  std::string text;
  for (std::size_t i = 0; i < table.notes.size(); ++i) {
    text += fmt::format("\n{{\\footnotesize\\textsuperscript{{{}}} {}\\par}}\n", i + 1,
                        latex_escape(table.notes[i]));
  }
  return text + "\n";
}

/// Breaks over pages, with its head on each of them.
std::string word_table(const DocumentTable& table) {
  return "\\begin{longtable}{" + word_columns(table) + "}\n\\caption{" +
         latex_escape(table.caption) + "}\\\\\n\\toprule\n" + head_line(table) +
         "\\endfirsthead\n\\toprule\n" + head_line(table) + "\\endhead\n\\bottomrule\n\\endfoot\n" +
         row_lines(table, 0, table.rows.size()) + "\\end{longtable}\n" + note_lines(table);
}

/// More lines than this do not fit on a page.
constexpr std::size_t kMostRows = 40;

std::string figure_table(const DocumentTable& table) {
  std::string text;
  for (std::size_t first = 0; first < table.rows.size(); first += kMostRows) {
    // One box: a caption stays with its figures.
    text += "\\noindent\\begin{minipage}{\\linewidth}\n\\centering\n\\tablecaption{" +
            latex_escape(table.caption) + (first > 0 ? ", continued" : "") +
            "}\n\\begin{lrbox}{\\figures}\n\\begin{tabular}{l" +
            std::string(table.head.size(), 'r') + "}\n\\toprule\n" + group_lines(table) +
            head_line(table) +
            row_lines(table, first, std::min(first + kMostRows, table.rows.size())) +
            "\\bottomrule\n\\end{tabular}\n\\end{lrbox}\n\\shrunk\n\\end{minipage}\n\n\\bigskip\n";
  }
  return text + note_lines(table);
}

}  // namespace

std::string latex(const Document& document) {
  std::string text = std::string(kLatexHead) + "\\begin{document}\n\\title{" +
                     latex_escape(document.title) + "}\n\\author{}\\date{}\n\\maketitle\n\n";
  text += each_between(document.headline, latex_escape, "\\textbf{", "}\n\n");
  text += each_between(document.summary, latex_escape, "", "\n\n");
  for (const Section& section : document.sections) {
    if (!has_text(section)) continue;
    text += "\\section{" + latex_escape(section.title) + "}\n\n";
    text += each_between(section.paragraphs, latex_escape, "", "\n\n");
    for (const DocumentTable& table : section.tables) {
      text += table.words ? word_table(table) : figure_table(table);
    }
    if (section.remarks.empty()) continue;
    text += "\\begin{itemize}\n" + each_between(section.remarks, latex_escape, "\\item{} ", "\n") +
            "\\end{itemize}\n\n";
  }
  return text + "\\end{document}\n";
}

}  // namespace cputrain::report

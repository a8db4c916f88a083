// Documents as one HTML page that loads nothing: tables in HTML, plots drawn by an embedded script.

#include "scaling/report/forms/document.h"
#include "scaling/report/forms/escapes.h"

namespace cputrain::report {
namespace {

/// The browser refuses whatever is not in the page.
constexpr const char* kHtmlHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n";

std::string html_entry(const Entry& entry) {
  std::string text = html_escape(entry.text);
  if (!entry.mark.empty()) text += " <small>" + html_escape(entry.mark) + "</small>";
  if (entry.note > 0) text += fmt::format(" <sup>{}</sup>", entry.note);
  return text;
}

/// A cell with what the scripts of tables read: data-value sorts, data-command is shown.
std::string data_cell(const Entry& entry) {
  std::string text = "<td";
  if (entry.shade) text += fmt::format(" style=\"--shade:{:.3f}\"", *entry.shade);
  if (entry.value) text += fmt::format(" data-value=\"{}\"", *entry.value);
  if (!entry.command.empty()) text += " data-command=\"" + html_escape(entry.command) + '"';
  return text + '>' + html_entry(entry) + "</td>";
}

bool is_shaded(const DocumentTable& table) {
  return std::ranges::any_of(table.rows, [](const Row& row) {
    return std::ranges::any_of(row.entries, [](const Entry& e) { return e.shade.has_value(); });
  });
}

/// More of them stand upright in their heads; those of a confusion matrix are names.
constexpr std::size_t kManyColumns = 14, kManyClasses = 8;
/// Longer labels of rows are broken into lines, so that figures stay in the window.
constexpr std::size_t kLongLabel = 24;

bool has_many(const DocumentTable& table) {
  return is_shaded(table) ? table.head.size() > kManyClasses
                          : table.filterable && table.head.size() > kManyColumns;
}

bool has_long(const DocumentTable& table) {
  return std::ranges::any_of(
      table.rows, [](const Row& row) { return !row.apart && row.label.size() > kLongLabel; });
}

std::string classes_of(const DocumentTable& table) {
  return std::string(table.words ? "words" : "figures") + (table.sortable ? " sortable" : "") +
         (table.filterable ? " filterable" : "") + (is_shaded(table) ? " shaded" : "") +
         (has_many(table) ? " many" : "") + (has_long(table) ? " long" : "");
}

std::string head_rows(const DocumentTable& table) {
  std::string text;
  if (!table.groups.empty()) {
    text += "<tr><td></td>";
    for (const auto& [name, count] : table.groups) {
      text +=
          fmt::format("<th scope=\"colgroup\" colspan=\"{}\">{}</th>", count, html_escape(name));
    }
    text += "</tr>\n";
  }
  text += "<tr><th scope=\"col\">" + html_escape(table.corner) + "</th>";
  for (const std::string& head : table.head) {
    text += "<th scope=\"col\">" + html_escape(head) + "</th>";
  }
  return text + "</tr>\n";
}

/// A long table of figures is folded away, since plots and summaries come first; one that a person
/// sorts and filters stays open.
constexpr std::size_t kMostOpenRows = 12;

std::string html_table(const DocumentTable& table) {
  const bool folded =
      !table.words && !table.sortable && !is_shaded(table) && table.rows.size() > kMostOpenRows;
  // A table that is wider than the window scrolls by itself; the keyboard reaches it, too.
  std::string text = fmt::format(
      "<div class=\"table\" tabindex=\"0\"><table "
      "class=\"{}\">\n<caption><span>{}</span></caption>\n<thead>\n{}</thead>\n<tbody>\n",
      classes_of(table), html_escape(table.caption), head_rows(table));
  for (const Row& row : table.rows) {
    text += fmt::format("<tr{}><th scope=\"row\">{}</th>", row.apart ? " class=\"apart\"" : "",
                        html_escape(row.label));
    for (const Entry& entry : row.entries) text += data_cell(entry);
    text += "</tr>\n";
  }
  text += "</tbody>\n</table></div>\n";
  if (folded) {
    text =
        "<details><summary>" + html_escape(table.caption) + "</summary>\n" + text + "</details>\n";
  }
  if (table.notes.empty()) return text;
  return text + "<ol class=\"notes\">\n" +
         each_between(table.notes, html_escape, "<li>", "</li>\n") + "</ol>\n";
}

std::string plot_text(const std::string& name, const PageParts& parts) {
  if (parts.library.empty()) {
    return "<p class=\"missing\">Plot: n/a (this program was built without Chart.js, the library "
           "that "
           "draws them: build it with -DCPUTRAIN_CHARTS=ON and libjs-chart.js)</p>\n";
  }
  return fmt::format("<div class=\"plot\" data-plot=\"{}\"></div>\n", html_escape(name));
}

std::string pictures_text(const std::vector<Picture>& pictures) {
  if (pictures.empty()) return "";
  std::string text = "<div class=\"pictures\">\n";
  for (const Picture& p : pictures) {
    text += fmt::format(
        "<figure><img src=\"data:{};base64,{}\" width=\"{}\" height=\"{}\" "
        "alt=\"{}\"><figcaption>{}<small>{}</small></figcaption></figure>\n",
        html_escape(p.type), base64(p.file), p.width, p.height, html_escape(p.details),
        html_escape(p.text), html_escape(p.details));
  }
  return text + "</div>\n";
}

/// Looks good as an image by itself, which the script makes of it.
std::string card_text(const Card& card) {
  std::string text = fmt::format(
      "<div class=\"card\" id=\"card\">\n<p class=\"subject\">{}</p>\n<p class=\"figure\">{}</p>\n"
      "<p class=\"what\">{}</p>\n<dl>\n",
      html_escape(card.subject), html_escape(card.figure), html_escape(card.what));
  for (const auto& [name, value] : card.facts) {
    text +=
        fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_escape(name), html_escape(value));
  }
  text += "</dl>\n";
  if (!card.command.empty()) text += "<code>" + html_escape(card.command) + "</code>\n";
  return text + "</div>\n";
}

std::string paragraphs_text(const std::vector<std::string>& paragraphs) {
  return each_between(paragraphs, html_escape, "<p>", "</p>\n");
}

/// What a reader opens who wants to know more; empty where there is nothing.
std::string folded_text(const char* summary, const std::vector<std::string>& paragraphs) {
  if (paragraphs.empty()) return "";
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", summary,
                     paragraphs_text(paragraphs));
}

/// The plot that the page begins with; empty where it begins with none.
std::string first_plot(const Document& document) {
  if (!document.plot_first || document.sections.empty()) return "";
  const std::vector<std::string>& plots = document.sections.front().plots;
  return plots.empty() ? "" : plots.front();
}

/// `shown`: a plot that the page has elsewhere. `folds`: plots come first, and what explains them
/// is folded below.
std::string section_text(const Section& section, const PageParts& parts, const std::string& shown,
                         bool folds) {
  std::string text = fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n", html_escape(section.id),
                                 html_escape(section.title));
  const bool below = folds && !section.plots.empty();
  if (!below) text += paragraphs_text(section.paragraphs);
  std::string plots, tables;
  for (const std::string& plot : section.plots) {
    if (plot != shown) plots += plot_text(plot, parts);
  }
  for (const DocumentTable& table : section.tables) tables += html_table(table);
  text += section.tables_first ? tables + plots : plots + tables;
  if (below) text += folded_text("About these figures", section.paragraphs);
  if (!section.remarks.empty()) {
    text += "<ul>\n" + each_between(section.remarks, html_escape, "<li>", "</li>\n") + "</ul>\n";
  }
  return text + pictures_text(section.pictures) + "</section>\n";
}

std::string contents(const Document& document) {
  std::string text = "<nav>\n";
  for (const Section& section : document.sections) {
    text += fmt::format("<a href=\"#{}\">{}</a>\n", html_escape(section.id),
                        html_escape(section.title));
  }
  return text + "</nav>\n";
}

/// The scripts are one function, so that nothing of theirs is seen outside.
std::string scripts(const Document& document, std::string_view data_json, const PageParts& parts) {
  const bool plots =
      std::ranges::any_of(document.sections, [](const Section& s) { return !s.plots.empty(); }) &&
      !parts.library.empty();
  std::string text;
  if (plots) {
    text = fmt::format(
        "<noscript><p>The plots need JavaScript; the tables hold every figure in "
        "them.</p></noscript>\n<script type=\"application/json\" id=\"figures\">{}</script>\n"
        "<!-- The plots are drawn by this library:\n{}-->\n<script>{}</script>\n",
        script_json(data_json), parts.library_licence, parts.library);
  }
  if (parts.script.empty() && !plots) return text;
  return text + fmt::format("<script>(function () {{\n'use strict';\n{}{}}}());</script>\n",
                            parts.script, plots ? parts.plot_script : "");
}

}  // namespace

std::string html(const Document& document, std::string_view data_json, const PageParts& parts) {
  const std::string title = html_escape(document.title);
  std::string text = kHtmlHead;
  text += fmt::format(
      "<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n", title,
      parts.style, title);
  const std::string first = first_plot(document);
  if (!first.empty()) text += plot_text(first, parts);
  if (document.card) text += card_text(*document.card);
  text += each_between(document.headline, html_escape, "<p class=\"headline\">", "</p>\n");
  text += first.empty() ? paragraphs_text(document.summary)
                        : folded_text("Where these figures are from", document.summary);
  text += "</header>\n" + contents(document) + "<main>\n";
  for (const Section& section : document.sections)
    text += section_text(section, parts, first, !first.empty());
  return text + "</main>\n" + scripts(document, data_json, parts) + "</body>\n</html>\n";
}

}  // namespace cputrain::report

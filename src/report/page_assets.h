#pragma once

#include <string_view>

/// What the page is made with, compiled in (scripts/cmake/EmbedPage.cmake).
namespace cputrain::report {

std::string_view page_style();
std::string_view page_script();
/// The plots of single trainings, which the script takes; it comes before it.
std::string_view page_runs();
/// Sorting and filtering of tables, and what shows the command of a figure.
std::string_view page_tables();
std::string_view page_commands();
/// The library that draws, and the licence that stays with it; empty in a build without it.
std::string_view chart_library();
std::string_view chart_licence();

}  // namespace cputrain::report

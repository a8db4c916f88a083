#pragma once

#include <string_view>

/// What pages are made with, compiled in (scripts/cmake/EmbedPage.cmake).
namespace cputrain::report {

std::string_view page_style();
/// For every page: tables that sort and filter, the command of a figure, the card as an image.
std::string_view page_script();
/// The plots, which need the library; it comes after the other script, whose functions it uses.
std::string_view page_plots();
/// The library that draws, and the licence that stays with it; empty in a build without it.
std::string_view chart_library();
std::string_view chart_licence();

}  // namespace cputrain::report

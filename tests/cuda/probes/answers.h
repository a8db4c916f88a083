#pragma once

#include <optional>
#include <string>
#include <vector>

/// What a probe found out, and the forms in which that travels and is kept.
namespace cputrain::cuda::probes {

/// How an answer compares with what the backend or its model of speed takes for granted.
enum class Verdict { none, as_assumed, differs };

struct Answer {
  std::string name{};             ///< "tf32-lower-bits", one of a kind
  std::string question{};         ///< its number in README.md, such as "E2"
  std::optional<double> value{};  ///< where the answer is a number
  std::string unit{};             ///< of the value
  Verdict verdict = Verdict::none;
  std::string text{};  ///< the answer in words
};

/// "as assumed" where `same`, else "differs".
Verdict verdict_of(bool same);
/// The same for a figure that was foreseen within a share of it; none where nothing was foreseen.
Verdict verdict_of(double value, std::optional<double> assumed, double share);

/// A string as printf makes it.
[[gnu::format(printf, 1, 2)]] std::string words(const char* format, ...);

/// One line without its end, from the process of a group to its parent. What is no such line, the
/// runtime's own words for instance, becomes an answer named after the group.
std::string sent(const Answer&);
Answer received(const std::string& line, const std::string& group);

std::string printed(const Answer&);
/// An array of objects.
std::string json_of(const std::vector<Answer>&);

}  // namespace cputrain::cuda::probes

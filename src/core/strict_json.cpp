#include "core/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <vector>

#include "core/text.h"

namespace cputrain {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxKeys = 1'000'000, kMaxEvents = 10'000'000;

/// Sees every event of the parser (about one a value) and throws where a rule is broken.
class Rules {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) throw std::runtime_error("nested too deeply");
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    const bool key = event == json::parse_event_t::key;
    if (++events_ > kMaxEvents) throw std::runtime_error("more than 10 million values");
    if (key && ++key_count_ > kMaxKeys) throw std::runtime_error("more than a million keys");
    if (key && !keys_.back().insert(parsed).second) {
      throw std::runtime_error("key " + parsed.dump() + " appears twice");
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
  std::size_t events_ = 0, key_count_ = 0;
};

}  // namespace

json parse_strict_json(const std::string& text) {
  // The parser takes a zero byte for the end and would not look at what follows.
  if (text.find('\0') != std::string::npos) throw std::runtime_error("it holds a zero byte");
  try {
    return json::parse(text, Rules{});
  } catch (const std::exception& error) {  // its words may hold bytes of the text
    throw std::runtime_error(printable(error.what()));
  }
}

}  // namespace cputrain

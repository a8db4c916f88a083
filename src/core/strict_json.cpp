#include "core/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <vector>

namespace cputrain {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;

/// Sees every event of the parser and throws where a rule is broken.
class Rules {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) throw std::runtime_error("nested too deeply");
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(parsed).second) {
      throw std::runtime_error("key " + parsed.dump() + " appears twice");
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

json parse_strict_json(const std::string& text) {
  try {
    return json::parse(text, Rules{});
  } catch (const json::exception& error) {
    throw std::runtime_error(error.what());
  }
}

}  // namespace cputrain

#include "model/layers/members.h"

#include <string>

#include "core/text.h"

namespace cputrain::model {
namespace {

Padding read_padding(const JsonFields& r) {
  const bool is_text = !r.has("padding") || r.required("padding").is_string();
  const auto padding = is_text ? value_named<Padding>(r.text("padding", "valid")) : std::nullopt;
  if (!padding) {
    r.wrong("padding must be \"valid\", \"same\" or \"half\"; a zero_pad layer gives any other");
  }
  return *padding;
}

Initializer read_init(const JsonFields& r) {
  const auto init = value_named<Initializer>(r.text("init", "glorot_uniform"));
  if (!init) r.wrong("init must be one of " + join(all_words<Initializer>(), ", "));
  return *init;
}

}  // namespace

void LayerMembers::windows(int& stride, Padding& padding) {
  may("stride", stride, 1, kMaxExtent);
  if (file()) return static_cast<void>(padding = read_padding(*file()));
  std::string word(word_of(padding));
  need("padding", word);
}

void LayerMembers::units(int& member) {
  if (!file() || file()->required("units") != "classes")
    return need("units", member, 1, kMaxExtent);
  if (!classes_) file()->wrong("units must be a number here");
  member = *classes_;
}

void LayerMembers::rarities(float& l2, int* groups, Initializer& init) {
  if (file()) {
    rare("l2", l2, 0, 1e6);
    if (groups) may("groups", *groups, 1, kMaxExtent);
    init = read_init(*file());
    return;
  }
  if (groups && *groups != 1) need("groups", *groups, 1, kMaxExtent);
  rare("l2", l2, 0, 1e6);
  std::string word(word_of(init));
  if (init != Initializer::glorot_uniform) need("init", word);
}

}  // namespace cputrain::model

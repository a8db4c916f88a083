#include "weights/formats/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace cputrain::weights {
namespace {

using Place = PickledValue::Place;
using Kind = PickledValue::Kind;

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMostValues = 4'000'000;  // 100,000 arrays take 30 each
constexpr std::size_t kLongestGlobal = 256;

[[noreturn]] void damaged(const char* what) {
  throw std::runtime_error(fmt::format("is a damaged pickle ({})", what));
}

/// The bytes of a part of a file, one after the other.
class Bytes {
 public:
  Bytes(const system::RegularFile& file, std::uint64_t begin, std::uint64_t end)
      : file_(file), at_(begin), end_(std::min(end, begin + kMostBytes)), cut_(end_ < end) {}

  std::uint64_t at() const { return at_; }

  /// None is made room for before it is known to be there.
  void read(std::span<std::byte> dst) {
    if (dst.size() > end_ - at_) too_short();
    while (!dst.empty()) {
      if (ahead_ == piece_.size()) fill();
      const std::size_t count = std::min(dst.size(), piece_.size() - ahead_);
      std::memcpy(dst.data(), piece_.data() + ahead_, count);
      ahead_ += count;
      at_ += count;
      dst = dst.subspan(count);
    }
  }
  /// A whole number, the lowest byte first.
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    read(std::as_writable_bytes(std::span(&value, 1)).first(bytes));
    return value;
  }
  std::string text(std::uint64_t length) {
    if (length > end_ - at_) too_short();
    std::string text(length, '\0');
    read(std::as_writable_bytes(std::span(text)));
    return text;
  }
  std::string line() {
    std::string text;
    for (char c = next(); c != '\n'; c = next()) {
      if (text.size() == kLongestGlobal) damaged("a name without an end");
      text += c;
    }
    return text;
  }
  char next() { return static_cast<char>(number(1)); }

 private:
  [[noreturn]] void too_short() const {
    if (cut_) throw std::runtime_error("has a pickle of over 64 MB");
    damaged("it ends too early");
  }
  void fill() {
    constexpr std::uint64_t kPiece = 1 << 16;
    piece_.resize(std::min(kPiece, end_ - at_));
    file_.read_at(at_, piece_);
    ahead_ = 0;
  }

  const system::RegularFile& file_;
  std::uint64_t at_, end_;
  bool cut_;
  std::vector<std::byte> piece_;
  std::size_t ahead_ = 0;
};

/// The machine that a pickle is a program of: a stack, marks in it, and values that are kept by
/// numbers. Each instruction makes at most one value.
class Machine {
 public:
  Machine(Bytes bytes, const std::function<bool(std::string_view)>& known)
      : bytes_(std::move(bytes)), known_(known) {
    values_.emplace_back();  // place 0 is no state
  }

  Pickled run() {
    for (std::size_t steps = 0; !stopped_; ++steps) {
      if (steps == kMostValues) throw std::runtime_error("has a pickle of over 4,000,000 parts");
      step(static_cast<unsigned char>(bytes_.next()));
    }
    const Place top = pop();
    return {std::move(values_), top, bytes_.at()};
  }

 private:
  void step(unsigned char code);
  bool constant(unsigned char code);
  bool container(unsigned char code);
  bool memo(unsigned char code);

  Place push(PickledValue value) {
    values_.push_back(std::move(value));
    stack_.push_back(static_cast<Place>(values_.size() - 1));
    return stack_.back();
  }
  void push_number(std::int64_t number) { push({.kind = Kind::number, .number = number}); }
  void push_text(std::uint64_t length) { push({.kind = Kind::text, .text = bytes_.text(length)}); }
  void push_bytes(std::uint64_t length) {
    bytes_.text(length);
    push({});
  }
  void push_list(std::vector<Place> items) {
    push({.kind = Kind::sequence, .items = std::move(items)});
  }

  std::size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  Place top() const {
    if (stack_.size() <= bottom()) damaged("its stack is empty");
    return stack_.back();
  }
  Place pop() {
    const Place place = top();
    stack_.pop_back();
    return place;
  }
  /// The uppermost `count` values.
  std::vector<Place> pop_some(std::size_t count) {
    if (stack_.size() - bottom() < count) damaged("its stack is empty");
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<Place> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    return items;
  }
  std::vector<Place> pop_to_mark() {
    if (marks_.empty()) damaged("a mark is missing");
    std::vector<Place> items = pop_some(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }

  /// Adds to the list, the set or the dict that is uppermost.
  void add(const std::vector<Place>& items, bool pairs) {
    PickledValue& to = values_[top()];
    const bool fits = pairs ? to.kind == Kind::dict || to.kind == Kind::call
                            : to.kind == Kind::sequence || to.kind == Kind::other;
    if (!fits || (pairs && items.size() % 2 != 0)) damaged("something is added to what is no list");
    if (to.kind != Kind::other) to.items.insert(to.items.end(), items.begin(), items.end());
  }

  void push_global(const std::string& module, const std::string& name) {
    std::string global = module + "." + name;
    if (!known_(global)) {
      throw std::runtime_error(
          fmt::format("names {}, and nothing of a program is run here", global));
    }
    push({.kind = Kind::global, .text = std::move(global)});
  }
  void push_global_of_stack() {
    const std::vector<Place> names = pop_some(2);
    for (const Place name : names) {
      const PickledValue& text = values_[name];
      if (text.kind != Kind::text || text.text.size() > kLongestGlobal) damaged("a wrong name");
    }
    push_global(values_[names[0]].text, values_[names[1]].text);
  }
  void push_call() {
    std::vector<Place> items = pop_some(2);
    if (values_[items[0]].kind != Kind::global) damaged("it calls what is no function");
    push({.kind = Kind::call, .items = std::move(items)});
  }
  void build() {
    const Place state = pop();
    values_[top()].state = state;
  }

  Bytes bytes_;
  const std::function<bool(std::string_view)>& known_;
  std::deque<PickledValue> values_;
  std::vector<Place> stack_;
  std::vector<std::size_t> marks_;  ///< sizes of the stack
  std::unordered_map<std::uint32_t, Place> memo_;
  bool stopped_ = false;
};

/// Numbers and texts. The letters are those of Python's pickletools.
bool Machine::constant(unsigned char code) {
  switch (code) {
    case 'N':  // NONE
      push({});
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push_number(code == 0x88 ? 1 : 0);
      return true;
    case 'J':  // BININT
      push_number(static_cast<std::int32_t>(bytes_.number(4)));
      return true;
    case 'K':  // BININT1
    case 'M':  // BININT2
      push_number(static_cast<std::int64_t>(bytes_.number(code == 'K' ? 1 : 2)));
      return true;
    case 0x8a: {  // LONG1
      const std::size_t length = bytes_.number(1);
      if (length > sizeof(std::int64_t)) {
        push_bytes(length);
        return true;
      }
      const std::uint64_t value = bytes_.number(length);
      const bool negative = length > 0 && value >> (8 * length - 1) != 0;
      const std::uint64_t sign = negative && length < 8 ? ~std::uint64_t{0} << (8 * length) : 0;
      push_number(static_cast<std::int64_t>(value | sign));
      return true;
    }
    case 'G':  // BINFLOAT
      push_bytes(8);
      return true;
    case 'C':  // SHORT_BINBYTES
    case 'B':  // BINBYTES
      push_bytes(bytes_.number(code == 'C' ? 1 : 4));
      return true;
    case 'U':   // SHORT_BINSTRING, a text of Python 2
    case 0x8c:  // SHORT_BINUNICODE
      push_text(bytes_.number(1));
      return true;
    case 'T':  // BINSTRING
    case 'X':  // BINUNICODE
      push_text(bytes_.number(4));
      return true;
    case 0x8d:  // BINUNICODE8
      push_text(bytes_.number(8));
      return true;
    default:
      return false;
  }
}

bool Machine::container(unsigned char code) {
  switch (code) {
    case '(':  // MARK
      marks_.push_back(stack_.size());
      return true;
    case ')':  // EMPTY_TUPLE
    case ']':  // EMPTY_LIST
      push_list({});
      return true;
    case 't':  // TUPLE
      push_list(pop_to_mark());
      return true;
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
      push_list(pop_some(code - 0x84));
      return true;
    case '}':  // EMPTY_DICT
      push({.kind = Kind::dict});
      return true;
    case 0x8f:  // EMPTY_SET
      push({});
      return true;
    case 'a':  // APPEND
      add(pop_some(1), false);
      return true;
    case 'e':   // APPENDS
    case 0x90:  // ADDITEMS
      add(pop_to_mark(), false);
      return true;
    case 's':  // SETITEM
      add(pop_some(2), true);
      return true;
    case 'u':  // SETITEMS
      add(pop_to_mark(), true);
      return true;
    default:
      return false;
  }
}

/// Values that are kept, and taken again.
bool Machine::memo(unsigned char code) {
  switch (code) {
    case 'q':   // BINPUT
    case 'r':   // LONG_BINPUT
    case 0x94:  // MEMOIZE
      memo_[code == 0x94 ? static_cast<std::uint32_t>(memo_.size())
                         : static_cast<std::uint32_t>(bytes_.number(code == 'q' ? 1 : 4))] = top();
      return true;
    case 'h':    // BINGET
    case 'j': {  // LONG_BINGET
      const auto found = memo_.find(static_cast<std::uint32_t>(bytes_.number(code == 'h' ? 1 : 4)));
      if (found == memo_.end()) damaged("it takes a value that it did not keep");
      stack_.push_back(found->second);
      return true;
    }
    default:
      return false;
  }
}

void Machine::step(unsigned char code) {
  if (constant(code) || container(code) || memo(code)) return;
  switch (code) {
    case 0x80:  // PROTO
      bytes_.number(1);
      return;
    case 0x95:  // FRAME: how many bytes belong together
      bytes_.number(8);
      return;
    case '.':  // STOP
      stopped_ = true;
      return;
    case 'c': {  // GLOBAL
      const std::string module = bytes_.line();
      return push_global(module, bytes_.line());
    }
    case 0x93:  // STACK_GLOBAL
      return push_global_of_stack();
    case 'R':   // REDUCE
    case 0x81:  // NEWOBJ
      return push_call();
    case 'b':  // BUILD
      return build();
    case 'Q':  // BINPERSID
      push({.kind = Kind::outside, .items = pop_some(1)});
      return;
    default:
      throw std::runtime_error(fmt::format(
          "is a pickle with the instruction {:#04x}, which no file of weights needs", code));
  }
}

}  // namespace

Pickled read_pickle(const system::RegularFile& file, std::uint64_t begin, std::uint64_t end,
                    const std::function<bool(std::string_view)>& known) {
  return Machine(Bytes(file, begin, end), known).run();
}

}  // namespace cputrain::weights

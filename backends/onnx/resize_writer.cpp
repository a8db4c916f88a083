#include "backends/onnx/resize_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace cputrain::onnx {
namespace {

using Name = std::string;

/// The graph as expressions: each call adds a node or a constant and returns its name.
class Expressions {
 public:
  explicit Expressions(::onnx::GraphProto& graph) : graph_(graph) {}

  Name op(const char* type, const std::vector<Name>& inputs) { return add(type, inputs).output(0); }
  Name op(const char* type, const std::vector<Name>& inputs, const char* attribute,
          std::int64_t value) {
    auto& node = add(type, inputs);
    auto& a = *node.add_attribute();
    a.set_name(attribute);
    a.set_type(::onnx::AttributeProto::INT);
    a.set_i(value);
    return node.output(0);
  }
  Name transpose(const Name& input, std::initializer_list<std::int64_t> order) {
    auto& node = add("Transpose", {input});
    auto& a = *node.add_attribute();
    a.set_name("perm");
    a.set_type(::onnx::AttributeProto::INTS);
    for (const std::int64_t axis : order) a.add_ints(axis);
    return node.output(0);
  }
  Name cast(const Name& input, ::onnx::TensorProto::DataType type) {
    return op("Cast", {input}, "to", type);
  }

  Name whole(std::int64_t value) {
    auto& tensor = constant(::onnx::TensorProto::INT64);
    tensor.add_int64_data(value);
    return tensor.name();
  }
  Name wholes(std::initializer_list<std::int64_t> values) {
    auto& tensor = constant(::onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor.add_int64_data(value);
    return tensor.name();
  }
  Name real(double value) {
    auto& tensor = constant(::onnx::TensorProto::DOUBLE);
    tensor.add_double_data(value);
    return tensor.name();
  }
  Name single(float value) {
    auto& tensor = constant(::onnx::TensorProto::FLOAT);
    tensor.add_float_data(value);
    return tensor.name();
  }
  /// 0, 1, ... as a column.
  Name column(int count) {
    auto& tensor = constant(::onnx::TensorProto::DOUBLE);
    tensor.add_dims(count);
    tensor.add_dims(1);
    for (int i = 0; i < count; ++i) tensor.add_double_data(i);
    return tensor.name();
  }

 private:
  ::onnx::NodeProto& add(const char* type, const std::vector<Name>& inputs) {
    auto& node = *graph_.add_node();
    node.set_op_type(type);
    node.set_name(next());
    for (const Name& input : inputs) node.add_input(input);
    node.add_output(node.name() + ":0");
    return node;
  }
  ::onnx::TensorProto& constant(::onnx::TensorProto::DataType type) {
    auto& tensor = *graph_.add_initializer();
    tensor.set_name(next());
    tensor.set_data_type(type);
    return tensor;
  }
  Name next() { return fmt::format("image/resize/{}", number_++); }

  ::onnx::GraphProto& graph_;
  int number_ = 0;
};

/// An axis of the image: `length` pixels become `resized` ones, both doubles; the input shows
/// `count`, of which place 0 is number `first`.
struct Axis {
  Name length, resized, first;
  int count;
};

class ResizeWriter {
 public:
  ResizeWriter(const model::ExportedImages& images, ::onnx::GraphProto& graph)
      : images_(images), e_(graph) {}

  Name write(const Name& input, Shape image) {
    const Name sides = e_.op("Shape", {input});
    const Name height = e_.op("Gather", {sides, e_.whole(1)});
    const Name width = e_.op("Gather", {sides, e_.whole(2)});
    const Name rows = weights(axis(height, width, image.height, image.width));
    const Name columns = weights(axis(width, height, image.width, image.height));
    const Name map = e_.cast(e_.transpose(input, {0, 3, 1, 2}), of_sums());
    Name narrow = e_.op("MatMul", {map, e_.transpose(columns, {1, 0})});
    if (is_filter()) narrow = rounded(narrow);
    const Name bytes = rounded(e_.op("MatMul", {rows, narrow}));
    return is_filter() ? e_.cast(bytes, ::onnx::TensorProto::FLOAT) : bytes;
  }

 private:
  bool is_filter() const {
    return images_.resize != "nearest" && images_.resize != "bilinear-plain";
  }
  /// Weights of 22 bits times bytes have 30, so sums of floats would round, and meet the training's
  /// ties otherwise in some values of a thousand. Those of doubles are exact in any order.
  ::onnx::TensorProto::DataType of_sums() const {
    return is_filter() ? ::onnx::TensorProto::DOUBLE : ::onnx::TensorProto::FLOAT;
  }
  Name constant(double value) {
    return is_filter() ? e_.real(value) : e_.single(static_cast<float>(value));
  }
  Name real(const Name& value) { return e_.cast(value, ::onnx::TensorProto::DOUBLE); }
  Name add(const Name& a, const Name& b) { return e_.op("Add", {a, b}); }
  Name sub(const Name& a, const Name& b) { return e_.op("Sub", {a, b}); }
  Name mul(const Name& a, const Name& b) { return e_.op("Mul", {a, b}); }
  Name div(const Name& a, const Name& b) { return e_.op("Div", {a, b}); }
  Name larger(const Name& a, const Name& b) { return e_.op("Max", {a, b}); }
  Name smaller(const Name& a, const Name& b) { return e_.op("Min", {a, b}); }
  Name clamped(const Name& value, const Name& last, const Name& zero) {
    return smaller(larger(value, zero), last);
  }
  Name where(const Name& condition, const Name& yes, const Name& no) {
    return e_.op("Where", {condition, yes, no});
  }

  Name rounded(const Name& sums) {
    const Name whole = e_.op("Floor", {add(sums, constant(0.5))});
    return clamped(whole, constant(255), constant(0));
  }

  /// datasets/pixels/fit.cpp. `side` and `other` are whole numbers.
  Axis axis(const Name& side, const Name& other, int count, int other_count) {
    Name resized;
    if (images_.fit == "pad") {
      const Name scaled = mul(div(real(side), real(other)), e_.real(other_count));
      resized = clamped(e_.op("Round", {scaled}), e_.real(count), e_.real(1));
    } else if (images_.fit == "stretch") {
      resized = e_.real(count);
    } else {
      const auto whole = [&](int pixels) {
        const auto part = std::llround(images_.part * 10'000);
        return e_.whole(std::int64_t{pixels} * 10'000 / part);
      };
      resized = real(larger(whole(count), div(mul(side, whole(other_count)), other)));
    }
    const Name first = e_.op("Round", {mul(sub(resized, e_.real(count)), e_.real(0.5))});
    return {real(side), resized, first, count};
  }

  /// [count, length]; rows that show no pixel of the image are zeros.
  Name weights(const Axis& axis) {
    Name weights = images_.resize == "nearest"          ? nearest(axis)
                   : images_.resize == "bilinear-plain" ? plain(axis)
                                                        : filter(axis);
    if (images_.fit == "pad") {
      const Name place = add(e_.column(axis.count), axis.first);
      const Name shown = e_.op("And", {e_.op("GreaterOrEqual", {place, e_.real(0)}),
                                       e_.op("Less", {place, axis.resized})});
      weights = where(shown, weights, e_.real(0));
    }
    return e_.cast(weights, of_sums());
  }

  Name pixels(const Axis& axis) { return e_.op("Range", {e_.real(0), axis.length, e_.real(1)}); }

  /// datasets/pixels/filter_taps.cpp, in the same order of operations.
  Name filter(const Axis& axis) {
    const Name half = e_.real(0.5), zero = e_.real(0), one = e_.real(1);
    const double of_filter = images_.resize == "area" ? 0.5 : images_.resize == "bicubic" ? 2 : 1;
    const Name scale = div(axis.length, axis.resized), stretch = larger(scale, one);
    const Name radius = mul(e_.real(of_filter), stretch);
    const Name centre = mul(add(add(e_.column(axis.count), axis.first), half), scale);
    const Name begin = larger(e_.op("Floor", {add(sub(centre, radius), half)}), zero);
    const Name end = smaller(e_.op("Floor", {add(add(centre, radius), half)}), axis.length);
    const Name pixel = pixels(axis);
    const Name inside =
        e_.op("And", {e_.op("GreaterOrEqual", {pixel, begin}), e_.op("Less", {pixel, end})});
    const Name weight = weight_at(mul(add(sub(pixel, centre), half), div(one, stretch)));
    const Name taken = where(inside, weight, zero);
    const Name sum = e_.op("ReduceSum", {taken, e_.wholes({1})}, "keepdims", 1);
    const Name unit = e_.real(1 << 22);  // weights of 22 bits
    return div(e_.op("Floor", {add(mul(div(taken, sum), unit), half)}), unit);
  }

  Name weight_at(const Name& place) {
    if (images_.resize == "area") {
      const Name within = e_.op("And", {e_.op("Greater", {place, e_.real(-0.5)}),
                                        e_.op("LessOrEqual", {place, e_.real(0.5)})});
      return e_.cast(within, ::onnx::TensorProto::DOUBLE);
    }
    const Name zero = e_.real(0), one = e_.real(1);
    const Name x = e_.op("Abs", {place});
    if (images_.resize == "bilinear") return larger(zero, sub(one, x));
    const Name inner = add(mul(mul(sub(mul(e_.real(1.5), x), e_.real(2.5)), x), x), one);
    const Name outer =
        mul(sub(mul(add(mul(sub(x, e_.real(5)), x), e_.real(8)), x), e_.real(4)), e_.real(-0.5));
    return where(e_.op("Less", {x, one}), inner,
                 where(e_.op("Less", {x, e_.real(2)}), outer, zero));
  }

  /// Steps are added up one by one, as Pillow does.
  Name nearest(const Axis& axis) {
    const Name zero = e_.real(0), one = e_.real(1);
    const Name step = div(axis.length, axis.resized);
    const Name number = e_.op("Range", {zero, axis.resized, one});
    const Name steps = where(e_.op("Equal", {number, zero}), mul(step, e_.real(0.5)), step);
    const Name place = e_.op("Floor", {e_.op("CumSum", {steps, e_.whole(0)})});
    const Name all = smaller(place, sub(axis.length, one));
    const Name shown =
        clamped(add(e_.column(axis.count), axis.first), sub(axis.resized, one), zero);
    const Name taken = e_.op("Gather", {all, e_.cast(shown, ::onnx::TensorProto::INT64)});
    return where(e_.op("Equal", {pixels(axis), taken}), one, zero);
  }

  /// plain_taps() in datasets/pixels/resize.cpp: places are floats.
  Name plain(const Axis& axis) {
    const auto single = [&](const Name& value) {
      return e_.cast(value, ::onnx::TensorProto::FLOAT);
    };
    const Name half = e_.single(0.5f), zero = e_.single(0), one = e_.single(1);
    const Name scale = div(single(axis.length), single(axis.resized));
    const Name number = single(add(e_.column(axis.count), axis.first));
    const Name place = sub(mul(add(number, half), scale), half);
    const Name below = e_.op("Floor", {place}), fraction = sub(place, below);
    const Name last = sub(single(axis.length), one), pixel = single(pixels(axis));
    const auto at = [&](const Name& where_it_is, const Name& weight) {
      return where(e_.op("Equal", {pixel, clamped(where_it_is, last, zero)}), weight, zero);
    };
    return real(add(at(below, sub(one, fraction)), at(add(below, one), fraction)));
  }

  const model::ExportedImages& images_;
  Expressions e_;
};

}  // namespace

std::string write_resize(const model::ExportedImages& images, Shape image, const std::string& input,
                         ::onnx::GraphProto& graph) {
  return ResizeWriter(images, graph).write(input, image);
}

}  // namespace cputrain::onnx

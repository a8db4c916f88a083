#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/selftest/cases.h"
#include "compute/selftest_case.h"
#include "core/precision.h"

/// `selftest`: what a backend computes, case by case, beside plain loops in double, each case
/// twice. The cases here know the contracts of compute/ alone, so every backend has them; it may
/// add cases of its kernels (Own).
namespace cputrain::selftest {

/// One way to compute: the backend's options, and what they are tested with.
struct Way {
  std::string name{};  ///< stands behind that of the precision
  std::set<std::string> options{};
  double limit = 1e-5;
  std::function<bool(const LayerCase&)> concerns = [](const LayerCase&) { return true; };
};

/// The name of a precision that stores activations and their gradients rounded, and by which part
/// rounding moves a number at most.
struct RoundedActivations {
  std::string name;
  double roundoff;
};

/// What a backend brings along.
struct Own {
  std::vector<Way> ways = {Way{}};  ///< the plainest first: the only one in double and bf16
  std::map<Precision, RoundedActivations> rounded{};
  /// Cases of its kernels.
  std::function<void(int device, std::uint64_t seed, const compute::SelftestSink&)> cases{};
};
using FindOwn = std::function<Own(const std::string& backend)>;

/// The backend that is tested. Error(usage) where it has no such precision.
using MakeBackend = std::function<std::unique_ptr<compute::Backend>(
    Precision, const std::set<std::string>& options)>;

struct Request {
  std::vector<Precision> precisions;
  bool all_must_be = false;  ///< a precision that is not here is an error
  std::uint64_t seed = 0;
  MakeBackend make;
  compute::Backend* reference = nullptr;  ///< in double
  /// The same with factors of convolutions that are rounded to bf16. For that precision alone.
  compute::Backend* rounding_reference = nullptr;
  Own own{};
  int device = 0;  ///< one of the backend's, for its own cases
};

/// Where results go, case by case.
struct Results {
  std::function<void(const compute::SelftestCase&)> done;
  /// What was not tested: a layer or a precision that the backend lacks.
  std::function<void(const std::string& name, const std::string& why)> left_out;
  /// Before a case: its name. done() or left_out() follows, unless the case never ends.
  std::function<void(const std::string& name)> begins = [](const std::string&) {};
};

/// A device that breaks fails the case in which it shows, and those behind it: results are always
/// whole. Error(usage) where a precision that must be here is not.
void run(const Request&, const Results&);

}  // namespace cputrain::selftest

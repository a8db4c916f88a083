#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/selftest_case.h"

/// `selftest`: what a backend computes, case by case, beside plain loops in double, each case
/// twice. The cases here know the contracts of compute/ alone, so every backend has them; a plugin
/// adds cases of its kernels (OwnCases).
namespace cputrain::selftest {

/// The backend that is tested, in a precision and with kernels to choose from. Error(usage) where
/// it has none such.
using MakeBackend = std::function<std::unique_ptr<compute::Backend>(const std::string& precision,
                                                                    const compute::KernelChoice&)>;

/// Cases that a backend brings along, of its kernels.
using OwnCases = std::function<void(int device, std::uint64_t seed, const compute::SelftestSink&)>;
/// Those of a backend by name; empty where it has none.
using FindOwnCases = std::function<OwnCases(const std::string& backend)>;

struct Request {
  std::vector<std::string> precisions;  ///< as --precision has them
  bool all_must_be = false;             ///< a precision that is not here is an error
  std::uint64_t seed = 0;
  MakeBackend make;
  compute::Backend* reference = nullptr;  ///< in double
  /// The same with factors of convolutions that are rounded to bf16. For that precision alone.
  compute::Backend* rounding_reference = nullptr;
  OwnCases own_cases{};
  int device = 0;  ///< of the backend's, for these
};

/// What was not tested: a layer or a precision that the backend lacks.
struct LeftOut {
  std::string name, why;
};

/// Where results go, case by case.
struct Results {
  std::function<void(const compute::SelftestCase&)> done;
  std::function<void(const LeftOut&)> left_out;
  /// Before a case: its name. done() or left_out() follows, unless the case never ends.
  std::function<void(const std::string& name)> begins = [](const std::string&) {};
};

/// A device that breaks fails the case in which it shows, and those behind it: results are always
/// whole. Error(usage) where a precision that must be here is not.
void run(const Request&, const Results&);

}  // namespace cputrain::selftest

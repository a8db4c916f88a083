/// A library that source_line_test.cpp loads while it runs.
namespace {

[[gnu::noinline]] const void* caller() { return __builtin_return_address(0); }

}  // namespace

extern "C" const void* cputrain_line_of_loaded_library();
extern "C" const void* cputrain_line_of_loaded_library() {
  const void* address = caller();  // LINE
  return address;
}

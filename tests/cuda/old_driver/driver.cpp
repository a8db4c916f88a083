// NVIDIA's driver of CUDA 11.8, as far as CUDA's runtime asks before it finds it too old.
#include <string_view>

extern "C" {
int cuInit(unsigned flags);
int cuDriverGetVersion(int* version);
int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags,
                        int* status);

int cuInit(unsigned) { return 0; }

int cuDriverGetVersion(int* version) {
  *version = 11080;
  return 0;
}

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int*) {
  constexpr int kNotFound = 500;
  const std::string_view wanted = name;
  *function = nullptr;
  if (wanted == "cuInit") *function = reinterpret_cast<void*>(cuInit);
  if (wanted == "cuDriverGetVersion") *function = reinterpret_cast<void*>(cuDriverGetVersion);
  if (wanted == "cuGetProcAddress") *function = reinterpret_cast<void*>(cuGetProcAddress_v2);
  return *function ? 0 : kNotFound;
}
}

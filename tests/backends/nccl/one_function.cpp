// A library that has NCCL's name and says its version, and nothing else.
extern "C" {
int ncclGetVersion(int* version);

int ncclGetVersion(int* version) {
  *version = CPUTRAIN_NCCL_VERSION;
  return 0;
}
}

#pragma once

#include <climits>
#include <cstddef>

/// What the program uses of NCCL, as the C interface of versions 2.19 to 2.31 has it. Names and
/// numbers are NCCL's, from its documentation; its header is not needed, so that one build serves
/// every version.
namespace cputrain::nccl {

/// ncclResult_t; later versions have more.
enum class Result : int { success = 0, invalid_usage = 5, in_progress = 7 };

/// ncclDataType_t, as far as gradients travel.
enum class DataType : int { float32 = 7, bfloat16 = 9 };

/// ncclRedOp_t
enum class Operation : int { sum = 0 };

struct Communicator;  ///< ncclComm
struct Stream;        ///< CUstream_st

/// ncclUniqueId: rank 0 makes it, all ranks join by it.
struct UniqueId {
  char bytes[128];
};

/// ncclConfig_t as 2.14 had it, the first; later versions take it by its size and version.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
  int unused = INT_MIN;  ///< 2.17 has a field here, which it fills in itself for this version
};

/// Functions of the library, ncclGetVersion and so on.
struct Calls {
  Result (*get_version)(int*) = nullptr;
  const char* (*get_error_string)(Result) = nullptr;
  Result (*get_unique_id)(UniqueId*) = nullptr;
  const char* (*get_last_error)(Communicator*) = nullptr;
  Result (*comm_init_rank_config)(Communicator**, int ranks, UniqueId, int rank, Config*) = nullptr;
  Result (*comm_get_async_error)(Communicator*, Result*) = nullptr;
  Result (*comm_finalize)(Communicator*) = nullptr;
  Result (*comm_destroy)(Communicator*) = nullptr;
  Result (*comm_abort)(Communicator*) = nullptr;
  Result (*all_reduce)(const void* src, void* dst, std::size_t count, DataType, Operation,
                       Communicator*, Stream*) = nullptr;
};

}  // namespace cputrain::nccl

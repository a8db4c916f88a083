#pragma once

/// Before a small function that kernels of a GPU call as well: nvcc makes it for both sides, other
/// compilers see nothing.
#ifdef __CUDACC__
#define CPUTRAIN_HOST_DEVICE __host__ __device__
#else
#define CPUTRAIN_HOST_DEVICE
#endif

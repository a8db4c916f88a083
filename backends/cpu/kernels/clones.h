#pragma once

/// Put before a function that holds a loop: it is compiled for AVX-512, AVX2 and plain x86-64, and
/// the loader chooses. Sanitized programs crash in that choice (their runtime is not up yet), so
/// they get the plain code.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CPUTRAIN_CLONES
#else
#define CPUTRAIN_CLONES [[gnu::target_clones("arch=x86-64-v4", "avx2", "default")]]
#endif

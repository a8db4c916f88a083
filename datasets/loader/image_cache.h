#pragma once

#include "data/pipeline.h"

namespace cputrain::datasets {

/// Decodes all samples of the source to one size into memory that the node's ranks share: each
/// rank a slice, on `threads` threads. Whether a sample could be read, and why not, stands in the
/// shared memory too, so all ranks leave out the same ones. Error(data) when a part or a class has
/// nothing left, Error(usage) when the memory cannot be had. Where the request says so, most are
/// decoded after it has returned.
data::DecodedData decode_into_cache(const data::DataSource&, const data::DecodeRequest&,
                                    comm::NodeMemory&);

/// Ends the threads of such a cache, decodes what is missing, and leaves out damaged images.
data::DecodedData finish_cache(const data::DataSource&, const data::DecodedData& begun,
                               const data::DecodeRequest&, comm::NodeMemory&);

/// Bytes that decode_into_cache() asks the node for.
std::size_t cache_bytes(std::size_t samples, Shape image);

/// The same for the images of a source. Error(usage) where they are ready in another form.
data::CacheSize size_of_cache(const data::DataSource&, const data::ImageForm&);

}  // namespace cputrain::datasets

#pragma once

// ONNX' own messages, generated from its schema, and protobuf's streams. Not our code: no warnings.
#pragma GCC system_header

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

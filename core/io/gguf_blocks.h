#pragma once
// The blocks of GGUF (ggml's ggml-common.h and ggml-quants.c are their definition): what each decodes to, computed in
// float32 in the order of operations of the reference, so that the result is the same to the bit.

#include <cstddef>

namespace headscope::gguf_blocks {

// 32 numbers share a scale d (and, in the _1 types, a smallest value m). Q8_0 is multiplied as it lies: its decoder is
// core/tensor/stored.h.
void q4_0(const std::byte* from, std::size_t blocks, float* to);
void q4_1(const std::byte* from, std::size_t blocks, float* to);
void q5_0(const std::byte* from, std::size_t blocks, float* to);
void q5_1(const std::byte* from, std::size_t blocks, float* to);
// 256 numbers, whose 8 (Q2_K, Q3_K, Q6_K: 16) groups have scales of their own under one of all.
void q2_k(const std::byte* from, std::size_t blocks, float* to);
void q3_k(const std::byte* from, std::size_t blocks, float* to);
void q4_k(const std::byte* from, std::size_t blocks, float* to);
void q5_k(const std::byte* from, std::size_t blocks, float* to);
void q6_k(const std::byte* from, std::size_t blocks, float* to);
// 32 numbers (IQ4_XS: 256, in 8 groups with scales of their own), each a place in a table of 16 values.
void iq4_nl(const std::byte* from, std::size_t blocks, float* to);
void iq4_xs(const std::byte* from, std::size_t blocks, float* to);
void mxfp4(const std::byte* from, std::size_t blocks, float* to);
// 256 numbers −d, 0 or d (BitNet and other ternary models): five in a byte, or four.
void tq1_0(const std::byte* from, std::size_t blocks, float* to);
void tq2_0(const std::byte* from, std::size_t blocks, float* to);

}  // namespace headscope::gguf_blocks

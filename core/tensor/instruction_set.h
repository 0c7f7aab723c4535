#pragma once
// The vector instructions that the hot loops use: the best ones the processor has, chosen by Highway when a loop first
// runs; or those that HEADSCOPE_ISA=avx512|avx2|sse4|none allows, to measure and to test what other machines would do.

#include <string_view>

namespace headscope {

/// "AVX-512", "AVX2", "SSE4", "NEON" … Throws Error where HEADSCOPE_ISA says something else.
std::string_view instruction_set();

}  // namespace headscope

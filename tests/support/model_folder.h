#pragma once
// Models of any shape on disk, for tests and benchmarks that open folders: random weights, the bundled example's
// tokenizer.

#include <cstdint>
#include <filesystem>

namespace headscope::testing {

/// Writes a GPT-2 with random weights (the same for the same shape and seed) and a tokenizer of bytes into `folder`.
void write_random_gpt2(const std::filesystem::path& folder, int layers, int heads, int d_model, int context,
                       std::uint64_t seed = 1);

}  // namespace headscope::testing

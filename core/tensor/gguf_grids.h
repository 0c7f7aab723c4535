#pragma once
// The grids of GGUF's IQ types: so many points of eight or four numbers, of which a block names one by its place. A
// point is 32 bits, number j four bits of it: the lower half of byte j, or from the fifth on the upper half of byte j −
// 4; they are the number's place among the grid's values. Constants of the format (gguf_grid_codes.h says from where).

#include <array>
#include <cstdint>

namespace headscope::stored {

/// Of 8, 25 and 43, eight numbers a point.
extern const std::array<std::uint32_t, 256> iq2_xxs_grid;
extern const std::array<std::uint32_t, 512> iq2_xs_grid;
extern const std::array<std::uint32_t, 1024> iq2_s_grid;
/// Of 4, 12, 20, 28, 36, 44, 52 and 62, four numbers a point.
extern const std::array<std::uint32_t, 256> iq3_xxs_grid;
/// Of 1, 3 … 15, four numbers a point.
extern const std::array<std::uint32_t, 512> iq3_s_grid;
/// Of −1, 0 and 1, eight numbers a point; of IQ1_S and IQ1_M.
extern const std::array<std::uint32_t, 2048> iq1_grid;

}  // namespace headscope::stored

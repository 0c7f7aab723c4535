#pragma once
// What stb_image does not look at before it writes: how many codes the Huffman tables of a JPEG have. Its room is for
// 256 of them, which is what a table may have (ITU-T T.81, B.2.4.2); a damaged file may say up to 4,080.

#include <string_view>

namespace headscope {

/// The most codes that a Huffman table of this file says it has; 0 where there is none, or where it is no JPEG.
/// Segments are found as a decoder finds them: one behind the other up to a scan, behind whose data the next marker
/// counts.
int most_huffman_codes(std::string_view file);

}  // namespace headscope

#pragma once
// Which way up a JPEG is, as its camera noted: tag 0x0112 of the first directory of an EXIF segment (APP1; CIPA DC-008,
// Exif 2.32, § 4.6.4). Nothing else of EXIF is read.

#include <string_view>

namespace headscope {

/// 1 … 8; 1, as it is stored, where the file notes nothing, something else, or is broken. Looks at the segments before
/// the first scan, and never past the end of one.
int exif_orientation(std::string_view jpeg);

}  // namespace headscope

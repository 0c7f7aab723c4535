#pragma once
// One NumPy array as numpy.save writes it (format versions 1 to 3, numpy.lib.format). Little-endian numbers and text; C
// and Fortran order. Pickled objects and records are refused: they would have to be executed to be read.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

struct NpyArray {
  enum class Kind { floating, bfloat16, signed_integer, unsigned_integer, boolean, bytes, text };

  std::string where;  ///< file and array, for errors
  std::string descr;  ///< "<f4", as in the file
  Kind kind = Kind::floating;
  std::size_t item = 0;  ///< bytes of one item; text: 4 per character
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;  ///< items in C order

  std::int64_t elements() const;
  /// f2, f4, f8 and bfloat16 as float32. Throws Error on any other dtype or more than 4 axes.
  Tensor tensor() const;
  /// Integers and booleans in C order. Throws Error on any other dtype, or a number above the largest std::int64_t.
  std::vector<std::int64_t> integers() const;
  /// Text in C order as UTF-8; byte strings as they are. Trailing NULs are padding. Throws Error on any other dtype.
  std::vector<std::string> strings() const;
};

/// Throws Error at `where` on anything that is not a whole .npy array of a dtype above.
NpyArray parse_npy(std::vector<std::byte> bytes, const std::string& where);

}  // namespace headscope

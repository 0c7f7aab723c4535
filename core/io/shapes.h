#pragma once
// Pictures whose truth is known: one warm shape among cold ones. What counts is the shape of the warm one, so that a
// model has to find it before it can tell it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/io/picture.h"

namespace headscope {

/// circle, square, triangle, cross, ring, diamond: the classes.
const std::vector<std::string>& shape_names();

struct DrawnPicture {
  Picture picture;
  int shape = 0;               ///< of the warm one, a class
  std::vector<Index> patches;  ///< that it covers a pixel of, row by row from 0
};

/// `side` × `side` pixels in patches of `patch` × `patch`. The ground is grey with noise; the warm shape lies free, up
/// to `distractors` cold ones beside it, each where no other is (fewer where there is no room).
DrawnPicture draw_shapes(Random& random, int side, int patch, int distractors);

/// Of many drawn with one seed, the one of that number: 48 × 48 pixels in patches of 6 × 6, up to three cold shapes, as
/// the bundled tiny-vit learnt them.
DrawnPicture drawn_shapes(std::uint64_t seed, std::int64_t number);
/// Its name in place of a file, which read_picture() reads: "builtin:shapes-SEED-NUMBER".
std::string name_of_shapes(std::uint64_t seed, std::int64_t number);
/// nullopt where `path` is no such name.
std::optional<DrawnPicture> shapes_named(const std::string& path);

}  // namespace headscope

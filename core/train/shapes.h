#pragma once
// Pictures whose truth is known: one warm shape among cold ones. What counts is the shape of the warm one, so that a
// model has to find it before it can tell it.

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

}  // namespace headscope

#pragma once
// Rotary pairs as dials: a hand for the query's pair and one for the key's, turned to their positions, with arcs that
// show how far each has turned. A dial's part of the score is the product of the hands' lengths and the cosine of the
// angle between them. Without a key the same picture shows sinusoidal positions, which are such clocks.

#include <string>
#include <vector>

#include "core/base/words.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct Dial {
  double query_angle = 0, key_angle = 0;    ///< radians, before turning
  double query_turn = 0, key_turn = 0;      ///< how far each was turned
  double query_length = 0, key_length = 0;  ///< as shares of the dial's radius; 0 = no hand
  double wavelength = 0;                    ///< tokens in a full turn
  bool faint = false;                       ///< carries next to nothing
  std::string tooltip;
};

struct DialsOptions {
  std::vector<Dial> dials;
  double width = 800;
  double height = 0;     ///< 0 = as many rows as the width asks for; else shared by rows with the largest dials
  double largest = 110;  ///< of a dial's diameter, logical pixels
  std::string noun = to_say("pair");
};

/// Dials are named "dial.<i>". Series: wavelength, angles and lengths over i.
Scene rotary_dials_scene(const DialsOptions& options, const Style& style);

/// The wavelength of every pair, on a logarithmic axis, before and after a change of base or scaling, beside the length
/// of the trained context: what turns less than once in training has no angle that it has not yet to see.
struct Wavelengths {
  std::vector<double> own, changed;  ///< tokens; `changed` may be empty
  double context = 0;                ///< 0 = none
  double width = 800, height = 300;
};
/// Bars are named "pair.<i>". Series: both wavelengths over i.
Scene wavelengths_scene(const Wavelengths& options, const Style& style);

}  // namespace headscope

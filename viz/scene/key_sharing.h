#pragma once
// Query heads joined to the key heads they share, one way of sharing beside another, and under each how much of the
// cache is left: the bar of keys and values, as wide as its share of the widest. Heads that read one latent are joined
// to it.

#include <string>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct SharingWay {
  std::string title;             ///< "GQA, 4 key heads"
  int heads = 8, key_heads = 8;  ///< key_heads 0: one latent
  double share = 1;              ///< of the cache that a key head for every head takes
  std::string size;              ///< "2 · 4 · d"
  bool marked = false;           ///< the open model's own way
  std::string tooltip = {};
};

struct SharingPicture {
  std::string title;  ///< of the whole line: "EIGHT QUERY HEADS"
  std::vector<SharingWay> ways;
  double width = 900, height = 170;
};

/// "1×", "½", "¼", "⅛", "1⁄16", "28 %".
std::string share_words(double share);
/// Heads are the marks "way.<w>.query.<i>" and "way.<w>.key.<i>" (a latent's "way.<w>.latent"), lines
/// "way.<w>.join.<i>", bars "way.<w>.cache" in front of "way.<w>.whole". The numbers stand in the series "cache".
Scene key_sharing_scene(const SharingPicture& picture, const Style& style);

}  // namespace headscope

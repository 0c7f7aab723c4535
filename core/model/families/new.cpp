// GTE as its makers' own code calls it, "new" (gte.cpp).

#include "core/base/words.h"
#include "core/model/families/gte.h"

namespace headscope {

Family new_family();  // declared with all others in family.cpp
Family new_family() {
  return gte_like("new", "NewForMaskedLM", to_say("an encoder: GTE in its makers' files"),
                  [](ConfigMap& keys, ModelConfig& c) { gte_keys(keys, c, 10000); });
}

}  // namespace headscope

#include "app/state/mechanism_swaps.h"
#include "core/edits/mechanism_edit.h"

#include <algorithm>
#include <set>

#include "core/trace/layer_kinds.h"

namespace headscope {

namespace {

const SwapMechanism* whole_swap(const Intervention& edit) {
  return edit.enabled && !edit.target.positions ? edit.action.as<SwapMechanism>() : nullptr;
}

}  // namespace

MechanismSwaps swaps_of(const std::vector<Intervention>& edits, const ModelDims& dims) {
  MechanismSwaps swaps;
  for (const Intervention& edit : edits)
    if (const SwapMechanism* swap = whole_swap(edit))
      for (int layer = 0; layer < dims.layers; ++layer)
        for (int head = 0; head < dims.heads && dims.attends(layer); ++head)
          if (edit.target.reaches({layer, head})) swaps[{layer, head}] = swap->spec;
  return swaps;
}

std::vector<Intervention> with_swaps(const std::vector<Intervention>& edits, const MechanismSwaps& swaps,
                                     const ModelDims& dims) {
  std::vector<Intervention> out;
  std::ranges::copy_if(edits, std::back_inserter(out), [](const Intervention& edit) { return !whole_swap(edit); });
  std::set<std::string> specs;
  for (const auto& [head, spec] : swaps) specs.insert(spec);
  for (const std::string& spec : specs) {
    const auto count = [&](int layer) {
      return std::ranges::count_if(swaps, [&](const auto& s) { return s.first.layer == layer && s.second == spec; });
    };
    int whole = 0;
    for (int layer = 0; layer < dims.layers; ++layer) whole += count(layer) == dims.heads;
    const SwapMechanism action{spec};
    if (whole == attending_layers(dims)) {  // of a layer that does not attend "*" says nothing
      out.push_back({{}, action});
      continue;
    }
    for (int layer = 0; layer < dims.layers; ++layer) {
      if (count(layer) == dims.heads) {
        out.push_back({{layer, {}}, action});
        continue;
      }
      for (const auto& [head, own] : swaps)
        if (head.layer == layer && own == spec) out.push_back({{layer, head.head}, action});
    }
  }
  return out;
}

}  // namespace headscope

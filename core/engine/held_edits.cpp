#include "core/engine/held_edits.h"

#include <algorithm>
#include <set>

#include "core/base/overloaded.h"

namespace headscope {

std::optional<HeldKind> held_kind(const EditAction& action) {
  using Kind = std::optional<HeldKind>;
  return std::visit(Overloaded{[](const SetMask&) -> Kind { return HeldKind::mask; },
                               [](const SetPositions& a) -> Kind {
                                 if (a.replaces()) return HeldKind::positions;
                                 if (a.method == SetPositions::Method::shift) return HeldKind::shift;
                                 return a.method == SetPositions::Method::alibi ? HeldKind::alibi_on_top
                                                                                : HeldKind::t5_on_top;
                               },
                               [](const DropFirst&) -> Kind { return HeldKind::drop_first; },
                               [](const ForcePattern&) -> Kind { return HeldKind::pattern; },
                               [](const ScaleByLength&) -> Kind { return HeldKind::length; },
                               [](const SetTemperature&) -> Kind { return HeldKind::temperature; },
                               [](const auto&) -> Kind { return std::nullopt; }},
                    action);
}

std::vector<HeldRows> held_rows(const std::vector<PlacedEdit>& edits, int rows,
                                const std::function<bool(const HeadTarget&)>& reaches) {
  struct Held {
    int index, first, last;
    HeldKind kind;
  };
  std::vector<Held> held;
  std::set<int> ends{rows};
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const PlacedEdit& edit = edits[i];
    const auto kind = held_kind(*edit.action);
    if (!kind || edit.first > edit.last || !reaches(*edit.target)) continue;
    held.push_back({static_cast<int>(i), edit.first, edit.last, *kind});
    ends.insert({edit.first, edit.last + 1});
  }
  std::vector<HeldRows> parts;
  int first = 0;
  for (const int end : ends) {
    if (end <= first || end > rows) continue;
    HeldRows part{end, {}};
    part.edit.fill(-1);
    for (const Held& each : held)
      if (each.first <= first && each.last >= end - 1) part.edit[static_cast<std::size_t>(each.kind)] = each.index;
    if (!parts.empty() && parts.back().edit == part.edit)
      parts.back().end = end;
    else
      parts.push_back(part);
    first = end;
  }
  return parts;
}

}  // namespace headscope

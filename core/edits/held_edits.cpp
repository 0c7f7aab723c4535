#include "core/edits/held_edits.h"

#include <set>

#include "core/base/nth.h"
#include "core/edits/edit_step.h"

namespace headscope {

std::vector<HeldRows> held_rows(const std::vector<std::unique_ptr<EditStep>>& steps, int rows,
                                const std::function<bool(const EditStep&)>& reaches) {
  std::vector<const EditStep*> held;
  std::set<int> ends{rows};
  for (const auto& step : steps) {
    if (!step->held() || step->first() > step->last() || !reaches(*step)) continue;
    held.push_back(step.get());
    ends.insert({step->first(), step->last() + 1});
  }
  std::vector<HeldRows> parts;
  int first = 0;
  for (const int end : ends) {
    if (end <= first || end > rows) continue;
    HeldRows part{end};
    for (const EditStep* each : held)
      if (each->first() <= first && each->last() >= end - 1) nth(part.step, *each->held()) = each;
    if (!parts.empty() && parts.back().step == part.step)
      parts.back().end = end;
    else
      parts.push_back(part);
    first = end;
  }
  return parts;
}

}  // namespace headscope

#pragma once
// The tokens of the run on screen, or its words, as tiles shaded by attention: a click pins one. Thread rule: the UI
// thread.

#include <memory>
#include <optional>
#include <vector>

#include "app/widgets/chip_lines.h"
#include "app/workspaces/page_context.h"

namespace headscope {

class TokenStrip {
 public:
  void draw(const PageContext& c);
  /// With headings; of a capture between two texts its queries, too.
  void draw_capture(const PageContext& c);
  /// The row that tokens are shaded by; nullopt while they are shaded by what every one receives.
  static std::optional<Index> pinned_row(const PageContext& c, const AttentionMap* map);

 private:
  struct Shaded {
    std::shared_ptr<const TracedRun> run;
    bool words = false;
    HeadId head;
    std::optional<Index> pinned;
    bool operator==(const Shaded&) const = default;
  };
  const std::vector<double>& shades(const PageContext& c, const AttentionMap* map, std::optional<Index> pinned);
  void queries(const PageContext& c);

  ChipLines tokens_, queries_;
  std::optional<Shaded> shaded_;
  std::vector<double> shades_;  // of it
};

}  // namespace headscope

#pragma once
// Ways through a map that is too long to be seen at once: from strong cell to strong cell, from one place of a text to
// the next where it stands again, over all rows or along the pinned one. Where they lead is pinned and comes into view.
// Thread rule: the UI thread.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/workspaces/explore/shown_maps.h"
#include "app/workspaces/page_context.h"
#include "core/base/words.h"

namespace headscope {

class MapWalk {
 public:
  explicit MapWalk(std::shared_ptr<ShownMaps> maps) : maps_(std::move(maps)) {}

  /// Of the bar, logical pixels; 0 where the map is short and nobody looks for anything.
  double height(const PageContext& c, const AttentionMap& map);
  void bar(const PageContext& c, const AttentionMap& map, double width);
  /// Once per frame: what keys and the bar have asked for.
  void go(const PageContext& c, const AttentionMap& map);
  /// Where the last step led, in positions along the axes; once.
  struct Goal {
    Index query = 0, key = 0;
  };
  std::optional<Goal> take_goal() { return std::exchange(goal_, std::nullopt); }
  /// "3rd strongest cell" when this is where the last search for one has led; else "". Tokens.
  std::string rank_of(const PageContext& c, Index query, Index key) const;

 private:
  struct Asked {
    std::shared_ptr<const Trace> trace, minus;
    std::shared_ptr<const TracedRun> words;
    HeadId head;
    FirstToken first = FirstToken::show;
    std::optional<Index> row;
    Index rank = 0;
    bool operator==(const Asked&) const = default;
  };
  struct Found {
    std::optional<AttentionMap::Cell> cell;
  };
  static std::optional<Index> row(const PageContext& c);
  void reach(const PageContext& c, Index query, Index key);
  void search(const PageContext& c);
  void to_match(const PageContext& c, int step);
  void to_strong(const PageContext& c, int step);
  void strong_came(const PageContext& c);

  std::shared_ptr<ShownMaps> maps_;
  bool open_ = false, focus_ = false;
  std::string text_;
  std::optional<std::string> searched_;
  std::shared_ptr<const Trace> searched_in_;
  bool searched_keys_ = false;
  std::vector<Index> matches_;
  std::optional<std::size_t> match_;
  Answer<Asked, Found> strong_{{"map.strong", to_say("looking for strong cells")}, Holds::numbers};
  bool awaited_ = false;            // the answer shall be gone to when it comes
  std::optional<Asked> reached_;    // what was asked when a strong cell was reached last, which …
  std::optional<Goal> reached_at_;  // … is this, in tokens
  std::optional<Goal> goal_;
};

}  // namespace headscope

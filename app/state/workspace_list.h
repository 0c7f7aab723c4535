#pragma once
// The workspaces in the order of their tabs: what Alt+number, palette, `--workspace` and the tabs themselves go by.

#include <array>
#include <cstddef>
#include <string_view>

namespace headscope {

inline constexpr std::array<std::string_view, 8> workspace_titles = {"Explore",    "Generate", "Compare", "Positions",
                                                                     "Mechanisms", "Analyse",  "Corpus",  "Train"};

/// The tab of a workspace; a title that is none does not compile.
consteval int workspace_index(std::string_view title) {
  for (std::size_t i = 0; i < workspace_titles.size(); ++i)
    if (workspace_titles[i] == title) return static_cast<int>(i);
  throw "no such workspace";
}

}  // namespace headscope

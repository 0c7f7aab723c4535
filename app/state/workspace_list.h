#pragma once
// The workspaces in the order of their tabs: what Alt+number, palette, `--workspace` and the tabs themselves go by.

#include <array>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/words.h"

namespace headscope {

struct WorkspaceName {
  std::string_view id;     ///< in session files and settings, in small letters on the command line: never changes
  std::string_view title;  ///< on its tab, as the table in use says it
};

inline constexpr std::array<WorkspaceName, 8> workspace_list = {{{"Explore", to_say("Explore")},
                                                                 {"Generate", to_say("Generate")},
                                                                 {"Compare", to_say("Compare")},
                                                                 {"Positions", to_say("Positions")},
                                                                 {"Mechanisms", to_say("Mechanisms")},
                                                                 {"Analyse", to_say("Analyse")},
                                                                 {"Corpus", to_say("Corpus")},
                                                                 {"Train", to_say("Train")}}};

/// The tab of a workspace; workspace_list.size() for an id that is none.
constexpr std::size_t workspace_tab(std::string_view id) {
  std::size_t at = 0;
  while (at < workspace_list.size() && workspace_list[at].id != id) ++at;
  return at;
}
/// The same of an id that is written in the code: one that is none does not compile.
consteval int workspace_index(std::string_view id) {
  return workspace_tab(id) < workspace_list.size() ? static_cast<int>(workspace_tab(id)) : throw "no such workspace";
}
/// REQUIRES an id of the list.
constexpr WorkspaceName workspace_name(std::string_view id) {
  return workspace_list[workspace_tab(id)];
}

/// Whether all that it shows is computed by the open model.
constexpr bool shows_open_model(std::string_view id) {
  return id == "Explore" || id == "Generate" || id == "Compare" || id == "Positions" || id == "Analyse";
}

/// As the command line takes it.
inline std::string workspace_option(std::string_view id) {
  std::string option(id);
  for (char& letter : option) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return option;
}

}  // namespace headscope

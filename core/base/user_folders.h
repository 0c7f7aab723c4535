#pragma once
// Where a program keeps what is no person's own file, by the XDG base directory specification.

#include <filesystem>

namespace headscope {

/// What is worth keeping between starts and no setting: $XDG_STATE_HOME/headscope, else ~/.local/state/headscope; empty
/// when neither variable is set.
std::filesystem::path state_folder();

}  // namespace headscope

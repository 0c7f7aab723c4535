#pragma once
// Where a program keeps what it was not told a place for, by the XDG base directory specification.

#include <filesystem>

namespace headscope {

/// What is worth keeping between starts and no setting: $XDG_STATE_HOME/headscope, else ~/.local/state/headscope; empty
/// when neither variable is set.
std::filesystem::path state_folder();

/// What a person made: $XDG_DATA_HOME/headscope, else ~/.local/share/headscope; empty likewise.
std::filesystem::path data_folder();

}  // namespace headscope

#pragma once
// Where a program keeps what it was not told a place for, by the XDG base directory specification.

#include <filesystem>
#include <string>

namespace headscope {

/// $HOME; where that is not set (a service, a container), what the system's list of users says, as a shell does. Empty
/// where $HOME is, or where nothing names one.
std::filesystem::path home_folder();

/// $XDG_CONFIG_HOME, else ~/.config; empty when there is no home folder. What others keep there, too.
std::filesystem::path config_home();

/// What is worth keeping between starts and no setting: $XDG_STATE_HOME/headscope, else ~/.local/state/headscope; empty
/// when there is no home folder either.
std::filesystem::path state_folder();

/// What a person made: $XDG_DATA_HOME/headscope, else ~/.local/share/headscope; empty likewise.
std::filesystem::path data_folder();

/// "~/models/x" of what lies in the home folder, else the path as it is.
std::string with_tilde(const std::filesystem::path& path);
/// What a person means by "~/models/x".
std::filesystem::path from_tilde(const std::string& text);

}  // namespace headscope

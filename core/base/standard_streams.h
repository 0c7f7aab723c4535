#pragma once
// Standard input, output and error as other programs leave them to us: full, closed, a pipe whose reader went away.
// What is said on standard error is never a reason to fail.

#include <cstddef>
#include <string>
#include <string_view>

namespace headscope {

/// First thing in main(), before any other thread. From here on writing to a pipe that nobody reads (SIGPIPE), or past
/// a limit on a file's size (SIGXFSZ), is an error of that write rather than the end of the process; and a stream that
/// was closed stays closed: its number is taken by something that refuses every read and write, so that no file opened
/// later receives what is said.
void guard_standard_streams();

/// `text` as it is to standard error; what cannot be written is lost, and nothing else. Any thread.
void write_error(std::string_view text) noexcept;

/// All of standard input. The same however often it is asked for: a command whose card failed is carried out once more,
/// and it is at its end then. Throws Error where it cannot be read or has more than `limit` bytes. One thread.
const std::string& standard_input(std::size_t limit);

}  // namespace headscope

#pragma once
// How much memory there is, so that work which cannot fit is refused with numbers instead of ending the process.

#include <cstdint>
#include <string>
#include <string_view>

namespace headscope {

/// Bytes that this process may still take: what the system says is available, or what the limit of its control group
/// (a container, a systemd slice) leaves where that is less. Where neither is told, the machine's memory.
std::uint64_t available_memory();

/// Bytes of the machine, whoever uses them; 0 where that is not told.
std::uint64_t machine_memory();

/// The bytes after `key` in a text of lines "key: number kB" or "key number" (/proc/meminfo, memory.stat); 0 when it
/// is not there.
std::uint64_t memory_entry(std::string_view text, std::string_view key);

/// "812 kB", "3.1 MB", "640 MB", "12.4 GB"
std::string memory_text(double bytes);

}  // namespace headscope

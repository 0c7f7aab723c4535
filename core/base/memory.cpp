#include "core/base/memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

namespace headscope {

namespace fs = std::filesystem;

namespace {

/// "" when there is no such file. Those of the kernel state no size.
std::string whole_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The number that `text` begins with; `otherwise` for "max" and nothing.
std::uint64_t number(std::string_view text, std::uint64_t otherwise) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : otherwise;
}

/// What the limits of this process's control groups (version 2), its own and those above, leave.
std::uint64_t left_by_control_groups() {
  constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  const fs::path root = "/sys/fs/cgroup";
  const std::string line = whole_text("/proc/self/cgroup");
  std::uint64_t left = unlimited;
  if (!line.starts_with("0::/")) return left;
  for (fs::path group = line.substr(4, line.find('\n') - 4);; group = group.parent_path()) {
    const fs::path folder = root / group;
    const std::uint64_t limit = number(whole_text(folder / "memory.max"), unlimited);
    if (limit != unlimited) {
      // Pages that only cache files are given back when they are needed.
      const std::string stat = whole_text(folder / "memory.stat");
      const std::uint64_t cache = memory_entry(stat, "active_file") + memory_entry(stat, "inactive_file");
      const std::uint64_t taken = number(whole_text(folder / "memory.current"), 0);
      const std::uint64_t kept = taken > cache ? taken - cache : 0;
      left = std::min(left, limit > kept ? limit - kept : 0);
    }
    if (group.empty()) return left;
  }
}

}  // namespace

std::uint64_t memory_entry(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.empty() || (line.front() != ':' && line.front() != ' ')) continue;
    line.remove_prefix(std::min(line.find_first_of("0123456789"), line.size()));
    return number(line, 0) * (line.ends_with(" kB") ? 1024 : 1);
  }
  return 0;
}

std::uint64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) : 0;
}

std::uint64_t available_memory() {
  std::uint64_t free = memory_entry(whole_text("/proc/meminfo"), "MemAvailable");
  if (free == 0) free = machine_memory();
  if (free == 0) free = std::numeric_limits<std::uint64_t>::max();
  return std::min(free, left_by_control_groups());
}

std::string memory_text(double bytes) {
  if (bytes >= 1e9)
    return bytes >= 1e11 ? fmt::format("{:.0f} GB", bytes / 1e9) : fmt::format("{:.1f} GB", bytes / 1e9);
  if (bytes >= 1e6) return bytes >= 1e8 ? fmt::format("{:.0f} MB", bytes / 1e6) : fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.0f} kB", bytes / 1e3);
}

}  // namespace headscope

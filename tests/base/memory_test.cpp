#include "core/base/memory.h"

#include <doctest/doctest.h>

namespace headscope::memory_test {

TEST_CASE("memory: lines of the system's tables, with and without a unit") {
  const std::string text =
      "MemTotal:       24000000 kB\nMemAvailableX: 7 kB\nMemAvailable:   1000 kB\nfile 4096\nactive_file 12\n";
  CHECK(memory_entry(text, "MemAvailable") == 1000 * 1024);
  CHECK(memory_entry(text, "MemTotal") == std::uint64_t{24000000} * 1024);
  CHECK(memory_entry(text, "file") == 4096);
  CHECK(memory_entry(text, "active_file") == 12);
  CHECK(memory_entry(text, "Mem") == 0);
  CHECK(memory_entry("", "x") == 0);
}

TEST_CASE("memory: some is available, and sizes are written as people read them") {
  CHECK(available_memory() > 1'000'000);
  CHECK(memory_text(812'000) == "812 kB");
  CHECK(memory_text(3.14e6) == "3.1 MB");
  CHECK(memory_text(640e6) == "640 MB");
  CHECK(memory_text(12.44e9) == "12.4 GB");
  CHECK(memory_text(6.9e12) == "6900 GB");
}

}  // namespace headscope::memory_test

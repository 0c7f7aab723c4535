#include "tests/support/mutants.h"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

#include "core/base/error.h"
#include "tests/support/paths.h"

namespace headscope::testing {

namespace fs = std::filesystem;

std::string mutated(std::string bytes, Random& random) {
  static const std::array<std::string, 22> pieces = {"null",
                                                     "-1",
                                                     "1e999",
                                                     "0.5",
                                                     "true",
                                                     "[]",
                                                     "{}",
                                                     "\"\"",
                                                     "99999999999999999999",
                                                     "9223372036854775807",
                                                     "4294967296",
                                                     "[[[[[[[[[[[[[[[[[[[[",
                                                     "\x1b[2J\x1b]0;x\x07",
                                                     "\xff\xfe",
                                                     std::string(300, 'z'),
                                                     std::string("\0\0\0\0", 4),
                                                     "\\ud800",
                                                     "\"",
                                                     ",",
                                                     "}",
                                                     "\xe2\x80\xae",
                                                     "(a|aa)+$"};
  for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
    if (bytes.empty()) return bytes;
    const auto at = static_cast<std::size_t>(random.below(bytes.size()));
    const auto length = static_cast<std::size_t>(random.below(std::min<std::size_t>(bytes.size() - at, 40)));
    switch (random.below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1 << random.below(8)));
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 3:
        bytes.replace(at, length, pieces[random.below(pieces.size())]);
        break;
      case 4:
        bytes.insert(at, pieces[random.below(pieces.size())]);
        break;
      default:
        if (random.below(4) == 0) bytes.resize(at);
        break;
    }
  }
  return bytes;
}

std::string mutated_numbers(std::string bytes, Random& random) {
  static constexpr std::array<std::uint64_t, 12> numbers{0,
                                                         1,
                                                         2,
                                                         0xff,
                                                         0xffff,
                                                         1 << 20,
                                                         1u << 31,
                                                         0xfffffffe,
                                                         0xffffffff,
                                                         std::uint64_t{1} << 40,
                                                         std::uint64_t{1} << 63,
                                                         ~std::uint64_t{0}};
  if (random.below(3) == 0) return mutated(std::move(bytes), random);
  for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
    const std::size_t width = std::size_t{2} << random.below(3);
    if (bytes.size() <= width) return bytes;
    // Half of them near the front, where the counts are.
    const std::size_t reach = bytes.size() - width;
    const auto at =
        static_cast<std::size_t>(random.below(random.below(2) == 0 ? std::min<std::size_t>(reach, 400) : reach));
    std::uint64_t value = numbers[random.below(numbers.size())];
    if (random.below(3) == 0) {  // what is there, and a little more or less
      value = 0;
      std::memcpy(&value, bytes.data() + at, width);
      value += random.below(17) - 8;
    }
    std::memcpy(bytes.data() + at, &value, width);
  }
  return bytes;
}

int refused(const std::string& what, const std::string& whole, int count,
            const std::function<void(const std::string&)>& read, const Mutate& mutate) {
  Random random(20);
  int errors = 0;
  REQUIRE_NOTHROW_MESSAGE(read(whole), what, " as it should be");
  const char* seconds = std::getenv("HEADSCOPE_FUZZ_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds ? std::atoi(seconds) : 0);
  int i = 0;
  for (; i < count || std::chrono::steady_clock::now() < end; ++i) {
    const std::string bytes = mutate(whole, random);
    std::string fault;
    try {
      read(bytes);
    } catch (const Error& error) {
      if (i < count) ++errors;
      const std::string said = error.what();
      for (const char c : said)
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') fault = "a control character in: " + said;
      if (said.find("exception") != std::string::npos) fault = "a library's own words: " + said;
      if (error.found.size() > 4 * 200 + 3 || said.size() > 3000) fault = "a message of " + std::to_string(said.size());
    } catch (const std::bad_alloc&) {
      fault = "out of memory";
    } catch (const std::exception& other) {
      fault = std::string("another exception: ") + other.what();
    }
    if (!fault.empty()) FAIL_CHECK(what << ", mutant " << i << ": " << fault);
  }
  if (seconds) MESSAGE(what << ": " << i << " mutants");
  return errors;
}

std::function<void(const std::string&)> as_file(const std::string& name,
                                                const std::function<void(const fs::path&)>& open) {
  const fs::path path = scratch_dir("mutants") / name;
  return [path, open](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    open(path);
  };
}

}  // namespace headscope::testing

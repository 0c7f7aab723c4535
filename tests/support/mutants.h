#pragma once
// Files that are nearly right, for everything that reads one: each mutant is read, or refused with one Error that is
// fit to be shown. The same mutants every time; with HEADSCOPE_FUZZ_SECONDS in the environment each file goes on with
// others for so long.

#include <filesystem>
#include <functional>
#include <string>

#include "core/base/random.h"

namespace headscope::testing {

using Mutate = std::function<std::string(std::string bytes, Random& random)>;

/// A few changes to `bytes`: one flipped, some lost, some twice, a piece of something else put in, the end cut off.
std::string mutated(std::string bytes, Random& random);
/// For files of binary numbers: a few of `mutated`'s, or numbers of 2, 4 or 8 bytes written over others (0, −1, 2^31,
/// 2^63, sizes that are nearly right).
std::string mutated_numbers(std::string bytes, Random& random);

/// Reads so many mutants of `whole`; says how many were refused. Fails on anything but success and a decent Error.
int refused(const std::string& what, const std::string& whole, int count,
            const std::function<void(const std::string&)>& read, const Mutate& mutate = mutated);

/// A reader of files: writes the mutant and opens it.
std::function<void(const std::string&)> as_file(const std::string& name,
                                                const std::function<void(const std::filesystem::path&)>& open);

}  // namespace headscope::testing

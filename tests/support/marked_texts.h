#pragma once
// The texts that the source marks for tables of words (core/base/words.h): what stands as a literal in said("…"),
// say("…", …), say_later("…", …) and to_say("…").

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::testing {

struct MarkedText {
  std::string text;  ///< as the compiler reads it: adjacent literals joined, escapes and raw strings resolved
  int line = 0;
};
/// Those of one file. A mark around anything but literals alone, which no table could know, is a fault: "line 3: …".
std::vector<MarkedText> marked_texts(std::string_view source, std::vector<std::string>& faults);

/// Text → "app/window/app.cpp:12", where it is marked first. Of app (but its command line), viz and core below the
/// folder of the sources, and of the files that tell what head classes are called and why a model is offered.
std::map<std::string, std::string> marked_texts_of(const std::filesystem::path& sources,
                                                   std::vector<std::string>& faults);

}  // namespace headscope::testing

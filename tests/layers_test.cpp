// The arrows of the design, read off every #include: app → viz → core, and inside core who may know whom.

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "tests/support/paths.h"

namespace headscope::layers_test {

namespace fs = std::filesystem;

namespace {
using Names = std::set<std::string>;

/// Folder → the folders whose headers it may include, besides its own. A new folder takes its line here.
const std::map<std::string, Names>& allowed() {
  static const std::map<std::string, Names> table = {
      {"core/base", {}},
      {"core/tensor", {"core/base"}},
      {"core/cuda", {"core/base", "core/tensor", "core/trace", "core/attention"}},
      {"core/trace", {"core/base", "core/tensor"}},
      {"core/attention",
       {"core/base", "core/tensor", "core/trace", "core/attention/mechanisms", "core/attention/positions"}},
      {"core/attention/mechanisms", {"core/base", "core/tensor", "core/trace", "core/attention"}},
      {"core/attention/positions", {"core/base", "core/tensor", "core/trace", "core/attention"}},
      {"core/text/jinja", {"core/base"}},
      {"core/text", {"core/text/jinja", "core/base", "core/io", "core/trace"}},
      {"core/io", {"core/base", "core/tensor", "core/trace"}},
      // The one that uses a network; nobody in core knows it, so that opening a model never does.
      {"core/hub", {"core/base", "core/io"}},
      {"core/metrics", {"core/base", "core/tensor", "core/trace", "core/io"}},
      {"core/model",
       {"core/base", "core/tensor", "core/trace", "core/attention", "core/io", "core/model/families",
        "core/model/formats"}},
      {"core/model/families",
       {"core/base", "core/tensor", "core/trace", "core/attention", "core/attention/positions", "core/io",
        "core/model"}},
      {"core/model/formats", {"core/base", "core/tensor", "core/trace", "core/attention", "core/io", "core/model"}},
      {"core/edits",
       {"core/base", "core/tensor", "core/trace", "core/attention", "core/attention/positions", "core/io",
        "core/model"}},
      {"core/run",
       {"core/base", "core/tensor", "core/trace", "core/attention", "core/text", "core/io", "core/model",
        "core/edits"}},
      {"core/generate",
       {"core/base", "core/tensor", "core/trace", "core/metrics", "core/model", "core/edits", "core/run"}},
      // A model is trained without being asked anything; how well it does is asked as of any other.
      {"core/train",
       {"core/base", "core/tensor", "core/trace", "core/attention", "core/text", "core/io", "core/metrics",
        "core/model", "core/model/formats", "core/run"}},
      {"core/corpus", {"core/base", "core/tensor", "core/trace", "core/io", "core/metrics", "core/run", "core/train"}},
      {"core/analysis",
       {"core/base", "core/tensor", "core/trace", "core/attention", "core/text", "core/io", "core/metrics",
        "core/model", "core/model/formats", "core/edits", "core/run", "core/train"}},
      // Lessons ask anything of a run.
      {"core/lesson",
       {"core/base", "core/tensor", "core/trace", "core/attention", "core/text", "core/text/jinja", "core/metrics",
        "core/model", "core/edits", "core/run", "core/analysis"}},
      {"viz/color", {"core/base", "core/tensor"}},
      {"viz/scene", {"core/base", "core/tensor", "core/trace", "core/metrics", "viz/color"}},
      {"viz/export", {"core/base", "core/tensor", "core/trace", "core/metrics", "viz/color", "viz/scene"}},
      {"viz/gl", {"core/base", "core/tensor", "core/trace", "core/metrics", "viz/color", "viz/scene"}},
      // Of app who may know whom there: of core and viz all of them may know everything (widgets no runs).
      {"app/render", {}},
      {"app/cli", {"app", "app/render", "app/state"}},
      {"app/state", {"app", "app/render"}},
      {"app/actions", {"app/state"}},
      {"app/widgets", {}},
      // What workspaces share stands beside their folders; they do not know one another.
      {"app/workspaces", {"app/render", "app/state", "app/actions", "app/widgets"}},
      {"app/workspaces/explore", {"app/render", "app/state", "app/actions", "app/widgets", "app/workspaces"}},
      {"app/workspaces/generate", {"app/render", "app/state", "app/actions", "app/widgets", "app/workspaces"}},
      {"app/workspaces/compare", {"app", "app/render", "app/state", "app/actions", "app/widgets", "app/workspaces"}},
      {"app/workspaces/positions", {"app/render", "app/state", "app/actions", "app/widgets", "app/workspaces"}},
      {"app/workspaces/mechanisms", {"app/render", "app/state", "app/actions", "app/widgets", "app/workspaces"}},
      {"app/workspaces/analyse", {"app/render", "app/state", "app/actions", "app/widgets", "app/workspaces"}},
      {"app/workspaces/corpus", {"app/render", "app/state", "app/actions", "app/widgets", "app/workspaces"}},
      {"app/workspaces/train", {"app", "app/render", "app/state", "app/actions", "app/widgets", "app/workspaces"}},
      {"app/window", {"app", "app/render", "app/state", "app/actions", "app/widgets", "app/workspaces"}},
      {"app",
       {"app/state", "app/window", "app/workspaces/explore", "app/workspaces/generate", "app/workspaces/compare",
        "app/workspaces/positions", "app/workspaces/mechanisms", "app/workspaces/analyse", "app/workspaces/corpus",
        "app/workspaces/train"}},
  };
  return table;
}

/// Libraries that only some folders may speak to.
struct Restricted {
  std::regex header;
  std::vector<std::string> folders;  ///< prefixes of those that may
};
const std::vector<Restricted>& restricted() {
  static const std::vector<Restricted> rules = {
      {std::regex("imgui.*"), {"app/"}},
      {std::regex("GLFW/.*"), {"app/window"}},
      {std::regex("(curl|openssl)/.*"), {"core/hub"}},
      {std::regex("(GL|epoxy|glad)/.*"), {"viz/gl", "app/window"}},
  };
  return rules;
}

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes)
    if (text.starts_with(prefix)) return true;
  return false;
}

/// What is wrong with `file` (relative to the project) including `header`; "" = nothing.
std::string fault(const std::string& file, const std::string& header, bool quoted) {
  for (const Restricted& rule : restricted())
    if (std::regex_match(header, rule.header) && !starts_with_any(file, rule.folders))
      return file + " includes " + header + ", which its layer must not know";
  const bool ours = header.starts_with("core/") || header.starts_with("viz/") || header.starts_with("app/");
  if (!ours) {
    if (quoted && !header.starts_with("hwy/") && !header.starts_with("tests/"))
      return file + " includes " + header + ": our own headers are named from the project's root";
    return "";
  }
  if (file.starts_with("app/widgets/") && header.starts_with("core/run/"))
    return file + " includes " + header + ": widgets know neither runs nor the state";
  if (file.starts_with("app/") && !header.starts_with("app/")) return "";
  const std::string from = fs::path(file).parent_path().generic_string();
  const std::string to = fs::path(header).parent_path().generic_string();
  const auto line = allowed().find(from);
  if (line == allowed().end()) return from + " has no line in the table of layers";
  if (from == to || line->second.count(to) > 0) return "";
  return file + " includes " + header + ", which its layer must not know";
}

std::vector<std::string> faults_of(const std::string& file, const std::string& text) {
  static const std::regex include("^[ \\t]*#[ \\t]*include[ \\t]*([<\"])([^>\"]+)[>\"]", std::regex::multiline);
  std::vector<std::string> faults;
  for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at)
    if (std::string found = fault(file, (*at)[2], (*at)[1] == "\""); !found.empty()) faults.push_back(std::move(found));
  return faults;
}
}  // namespace

TEST_CASE("every include points down") {
  int files = 0;
  for (const char* top : {"core", "viz", "app"}) {
    for (const auto& entry : fs::recursive_directory_iterator(testing::source_dir() / top)) {
      const std::string ending = entry.path().extension().string();
      if (ending != ".h" && ending != ".cpp" && ending != ".cu" && ending != ".cuh") continue;
      ++files;
      const std::string name = fs::relative(entry.path(), testing::source_dir()).generic_string();
      for (const std::string& each : faults_of(name, read_file(entry.path()))) FAIL_CHECK(each);
    }
  }
  CHECK(files > 100);
}

TEST_CASE("an include that points up is seen") {
  CHECK(faults_of("core/metrics/a.cpp", "#include \"core/model/model.h\"\n").size() == 1);
  CHECK(faults_of("core/tensor/a.h", "#pragma once\n#include \"core/trace/site.h\"\n").size() == 1);
  CHECK(faults_of("core/trace/a.h", "  # include \"viz/color/color.h\"").size() == 1);
  CHECK(faults_of("viz/scene/a.h", "#include \"core/run/worker.h\"").size() == 1);
  CHECK(faults_of("core/model/a.cpp", "#include \"core/hub/pull.h\"\n#include <curl/curl.h>").size() == 2);
  CHECK(faults_of("core/hub/a.cpp", "#include <curl/curl.h>\n#include \"core/model/model.h\"").size() == 1);
  CHECK(faults_of("viz/export/a.h", "#include <imgui.h>\n#include <GL/gl.h>").size() == 2);
  CHECK(faults_of("app/widgets/a.h", "#include \"app/state/app_state.h\"").size() == 1);
  CHECK(faults_of("app/workspaces/explore/a.cpp", "#include \"app/workspaces/analyse/parts.h\"").size() == 1);
  CHECK(faults_of("app/state/a.h", "#include \"app/window/app.h\"").size() == 1);
  CHECK(faults_of("app/workspaces/analyse/a.cpp", "#include \"app/workspaces/scene_slot.h\"\n#include <imgui.h>")
            .empty());
  CHECK(faults_of("core/text/a.h", "#include \"tokenizer.h\"").size() == 1);
  CHECK(faults_of("core/nowhere/a.h", "#include \"core/base/error.h\"").size() == 1);
  CHECK(faults_of("core/run/a.h", "#include <vector>\n#include \"core/model/model.h\"\n#include \"core/run/worker.h\"")
            .empty());
  CHECK(faults_of("app/widgets/a.h", "#include <imgui.h>\n#include \"viz/scene/scene.h\"").empty());
}

}  // namespace headscope::layers_test

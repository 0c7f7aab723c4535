// Runs the tests. Without a display nearly all of them have to leave; then the exit code says so, lest "passed" be read
// where nothing was opened. The same where no font has the glyphs of HEADSCOPE_TEST_GLYPHS.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/base/utf8.h"
#include "tests/gui/driver.h"
#include "tests/support/paths.h"
#include "tests/support/variable.h"
#include "viz/export/glyphs.h"

#ifdef __SANITIZE_ADDRESS__
/// Libraries stay loaded to the end, so that what a graphics driver keeps in its own variables is no leak.
extern "C" int dlclose(void*) {
  return 0;
}
#endif

namespace {
constexpr int skipped = 77;  // SKIP_RETURN_CODE in CMakeLists.txt

/// Which of the wanted characters no font has.
std::string missing_glyphs() {
  const char* wanted = std::getenv("HEADSCOPE_TEST_GLYPHS");
  const std::string text = wanted ? wanted : "";
  std::string missing;
  if (text.empty()) return missing;
  headscope::Glyphs glyphs;
  for (std::size_t at = 0; at < text.size();) {
    const headscope::CodePoint point = headscope::code_point_at(text, at);
    if (!glyphs.has(point.value, {headscope::FontRole::ui, 12, 400})) missing += headscope::to_utf8(point.value);
    at += static_cast<std::size_t>(point.length);
  }
  return missing;
}
}  // namespace

int main(int count, char** arguments) {
  // Nothing is found or written among a person's own files. Before Pango's thread looks for fonts: it reads the
  // environment while it does.
  const headscope::testing::Variable own("XDG_DATA_HOME", headscope::testing::scratch_dir("data").string());
  const headscope::testing::Variable english("LC_ALL", "C.UTF-8");  // lessons follow the system's language
  doctest::Context context(count, arguments);
  if (const std::string missing = missing_glyphs(); !missing.empty()) {
    std::fprintf(stderr, "skipped: no font has %s; cmake/packages-debian.txt names some that do\n", missing.c_str());
    return skipped;
  }
  const int failed = context.run();
  if (failed != 0 || context.shouldExit() || headscope::testing::have_display()) return failed;
  std::fputs("skipped: no display; run the tests through xvfb-run (./test does)\n", stderr);
  return skipped;
}

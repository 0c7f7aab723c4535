#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/window/floating.h"
#include "app/window/pages.h"
#include "core/base/version.h"
#include "core/base/words.h"

namespace headscope {

namespace {
struct Library {
  const char *name, *licence, *place;
};
constexpr Library libraries[] = {
    {"Dear ImGui", "MIT", "github.com/ocornut/imgui"},
    {"GLFW", "zlib", "glfw.org"},
    {"Eigen", "MPL 2.0", "eigen.tuxfamily.org"},
    {"Highway", "Apache 2.0 or BSD 3-clause", "github.com/google/highway"},
    {"PCRE2", "BSD 3-clause", "pcre.org"},
    {"utf8proc", "MIT", "juliastrings.github.io/utf8proc"},
    {"SentencePiece", "Apache 2.0", "github.com/google/sentencepiece"},
    {"nlohmann/json", "MIT", "github.com/nlohmann/json"},
    {"libcurl", "curl (MIT)", "curl.se/libcurl"},
    {"OpenSSL", "Apache 2.0", "openssl.org"},
    {"libzip", "BSD 3-clause", "libzip.org"},
    {"zlib", "zlib", "zlib.net"},
    {"libpng", "libpng 2.0", "libpng.org"},
    {"libjpeg-turbo", "IJG, BSD 3-clause", "libjpeg-turbo.org"},
    {"giflib", "MIT", "giflib.sourceforge.net"},
    {"libsndfile", "LGPL 2.1 or later", "libsndfile.github.io/libsndfile"},
    {"Pango", "LGPL 2.1 or later", "pango.gnome.org"},
    {"Cairo", "LGPL 2.1 or MPL 1.1", "cairographics.org"},
    {"Fontconfig", "MIT (Fontconfig)", "fontconfig.org"},
    {"FreeType", "FreeType or GPL 2", "freetype.org"},
    {"CLI11", "BSD 3-clause", "github.com/CLIUtils/CLI11"},
    {"fmt", "MIT", "fmt.dev"},
    {"Fonts Inter, JetBrains Mono", "SIL Open Font 1.1", "rsms.me/inter, jetbrains.com/mono"},
    {"Fonts DejaVu", "Bitstream Vera, public domain", "dejavu-fonts.github.io"},
};
}  // namespace

void AboutPage::draw(Ui& ui, AppContext& app) {
  if (std::exchange(app.ui.about, false)) ImGui::OpenPopup("about");
  if (!begin_floating(ui, "about", 680 * ui.theme.text_scale, 48)) return;
  {
    const UseFont use(ui, ui.heading());
    ImGui::TextUnformatted(("Headscope " + std::string(program_version)).c_str());
  }
  paragraph(ui, said("See what attention does inside a transformer, change it, and see at once what follows."),
            ui.theme.text);
  paragraph(
      ui,
      said("MIT licence: anybody may use, change and pass it on, with its notice, without any warranty. The whole text "
           "is in the file LICENSE beside the program."),
      ui.theme.muted);
  section(ui, said("MADE WITH"), said("under their own licences"));
  if (ImGui::BeginTable("libraries", 3, ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_NoSavedSettings)) {
    for (const Library& library : libraries) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(library.name);
      ImGui::TableNextColumn();
      ImGui::TextColored(vec(ui.theme.muted), "%s", library.licence);
      ImGui::TableNextColumn();
      ImGui::TextColored(vec(ui.theme.faint), "%s", library.place);
    }
    ImGui::EndTable();
  }
  if (button(ui, to_say("Close")) || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

}  // namespace headscope

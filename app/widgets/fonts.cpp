#include "app/widgets/fonts.h"

#include <fontconfig/fontconfig.h>
#include <ft2build.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>
#include FT_FREETYPE_H

#include "core/base/error.h"

namespace headscope {

namespace {

struct PatternDelete {
  void operator()(FcPattern* p) const { FcPatternDestroy(p); }
};
using Pattern = std::unique_ptr<FcPattern, PatternDelete>;

struct FontFile {
  std::string path;
  int index = 0;
  bool operator<(const FontFile& other) const { return std::tie(path, index) < std::tie(other.path, other.index); }
};

/// A source of an ImFont has four bits.
constexpr int max_sources = 15;

int fontconfig_weight(int css) {
  return css >= 600 ? FC_WEIGHT_DEMIBOLD : css >= 500 ? FC_WEIGHT_MEDIUM : FC_WEIGHT_REGULAR;
}

/// The best scalable font for the pattern; path "" when the machine has none.
FontFile match(FcConfig* config, FcPattern* pattern) {
  FcPatternAddBool(pattern, FC_SCALABLE, FcTrue);
  FcConfigSubstitute(config, pattern, FcMatchPattern);
  FcDefaultSubstitute(pattern);
  FcResult result = FcResultNoMatch;
  const Pattern found(FcFontMatch(config, pattern, &result));
  FcChar8* path = nullptr;
  FontFile file;
  if (!found || FcPatternGetString(found.get(), FC_FILE, 0, &path) != FcResultMatch) return file;
  file.path = reinterpret_cast<const char*>(path);
  FcPatternGetInteger(found.get(), FC_INDEX, 0, &file.index);
  file.index &= 0xFFFF;  // the upper half names an instance of a variable font
  return file;
}

struct Metrics {
  double ascent = 0.93, descent = 0.24;  ///< of the em
};

Metrics metrics_of(FT_Library library, const FontFile& file) {
  FT_Face face = nullptr;
  Metrics metrics;
  if (FT_New_Face(library, file.path.c_str(), file.index, &face) != 0) return metrics;
  if (face->units_per_EM > 0) {
    metrics.ascent = static_cast<double>(face->ascender) / face->units_per_EM;
    metrics.descent = -static_cast<double>(face->descender) / face->units_per_EM;
  }
  FT_Done_Face(face);
  return metrics;
}

}  // namespace

struct Fonts::State {
  struct Face {
    FontRole role;
    int weight;
    ImFont* font = nullptr;
    Metrics metrics;
    std::set<FontFile> files;
  };
  FcConfig* config = nullptr;
  double scale = 1;
  std::array<Face, 5> faces{{{FontRole::ui, 400, nullptr, {}, {}},
                             {FontRole::ui, 500, nullptr, {}, {}},
                             {FontRole::ui, 600, nullptr, {}, {}},
                             {FontRole::mono, 400, nullptr, {}, {}},
                             {FontRole::mono, 600, nullptr, {}, {}}}};
  mutable std::unordered_set<unsigned> seen;
  mutable std::vector<unsigned> missing;

  State() : config(FcInitLoadConfigAndFonts()) {}
  ~State() {
    if (config != nullptr) FcConfigDestroy(config);
  }

  const Face& face(const Font& font) const {
    const Face* best = nullptr;
    for (const Face& f : faces)
      if (f.role == font.role && (!best || std::abs(f.weight - font.weight) < std::abs(best->weight - font.weight)))
        best = &f;
    return *best;
  }

  bool add(Face& face, const FontFile& file) {
    if (file.path.empty() || face.files.size() >= max_sources || !face.files.insert(file).second) return false;
    ImFontConfig options;
    options.MergeMode = face.font != nullptr;
    options.DstFont = face.font;
    options.FontNo = static_cast<ImU32>(file.index);
    options.Flags = ImFontFlags_NoLoadError;
    ImFont* font = ImGui::GetIO().Fonts->AddFontFromFileTTF(file.path.c_str(), 0, &options);
    if (font == nullptr) return false;
    face.font = font;
    return true;
  }

  Pattern pattern(const Face& face) const {
    Pattern out(FcPatternCreate());
    // The same families as the printers name, see font_families().
    for (const char* family : face.role == FontRole::ui
                                  ? std::array{"Inter", "Helvetica Neue", "Arial", "sans-serif"}
                                  : std::array{"JetBrains Mono", "Menlo", "Consolas", "monospace"})
      FcPatternAddString(out.get(), FC_FAMILY, reinterpret_cast<const FcChar8*>(family));
    FcPatternAddInteger(out.get(), FC_WEIGHT, fontconfig_weight(face.weight));
    FcPatternAddInteger(out.get(), FC_SLANT, FC_SLANT_ROMAN);
    return out;
  }
};

Fonts::Fonts() : state_(std::make_unique<State>()) {
  FT_Library library = nullptr;
  FT_Init_FreeType(&library);
  for (State::Face& face : state_->faces) {
    const FontFile file = match(state_->config, state_->pattern(face).get());
    if (!file.path.empty() && library) face.metrics = metrics_of(library, file);
    if (!state_->add(face, file)) {
      if (library) FT_Done_FreeType(library);
      throw Error("fonts", "a scalable font that fontconfig knows", file.path.empty() ? "none" : file.path,
                  "install fonts-inter and fonts-jetbrains-mono, or fonts-dejavu-core");
    }
    // Symbols and scripts that the first face has not, at hand from the first frame on.
    const Pattern wide(FcPatternCreate());
    const char* family = face.role == FontRole::ui ? "DejaVu Sans" : "DejaVu Sans Mono";
    FcPatternAddString(wide.get(), FC_FAMILY, reinterpret_cast<const FcChar8*>(family));
    FcPatternAddInteger(wide.get(), FC_WEIGHT, fontconfig_weight(face.weight));
    state_->add(face, match(state_->config, wide.get()));
  }
  if (library) FT_Done_FreeType(library);
}

Fonts::~Fonts() = default;

void Fonts::set_scale(double scale) {
  state_->scale = scale;
}

double Fonts::scale() const {
  return state_->scale;
}

ImFont* Fonts::face(const Font& font) const {
  return state_->face(font).font;
}

float Fonts::height(const Font& font, double zoom) const {
  const Metrics& metrics = state_->face(font).metrics;
  return static_cast<float>(font.size * (metrics.ascent + metrics.descent) * state_->scale * zoom);
}

float Fonts::ascent(const Font& font, double zoom) const {
  return face(font)->GetFontBaked(std::max(height(font, zoom), 1.f))->Ascent;
}

TextBox Fonts::measure(std::string_view text, const Font& font) const {
  need(text);
  const State::Face& face = state_->face(font);
  const double scale = state_->scale;
  const float size = std::max(height(font), 1.f);
  ImFontBaked* baked = face.font->GetFontBaked(size);
  double x = 0, left = 1e9, right = -1e9, top = 1e9, bottom = -1e9;
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    unsigned code = 0;
    at += std::max(1, ImTextCharFromUtf8(&code, at, end));
    if (code == '\n' || code == '\t' || code == '\r') code = ' ';
    const ImFontGlyph* glyph = baked->FindGlyph(code);
    if (glyph == nullptr) continue;
    if (glyph->Visible) {
      left = std::min(left, x + static_cast<double>(glyph->X0));
      right = std::max(right, x + static_cast<double>(glyph->X1));
      top = std::min(top, static_cast<double>(glyph->Y0 - baked->Ascent));
      bottom = std::max(bottom, static_cast<double>(glyph->Y1 - baked->Ascent));
    }
    x += static_cast<double>(glyph->AdvanceX) * static_cast<double>(size / baked->Size);
  }
  TextBox box;
  box.width = x / scale;
  box.ascent = font.size * face.metrics.ascent;
  box.descent = font.size * face.metrics.descent;
  if (right >= left) box.ink = {left / scale, top / scale, (right - left) / scale, (bottom - top) / scale};
  return box;
}

void Fonts::need(std::string_view text) const {
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    if (static_cast<unsigned char>(*at) < 0x80) {
      ++at;
      continue;
    }
    unsigned code = 0;
    at += std::max(1, ImTextCharFromUtf8(&code, at, end));
    if (code == IM_UNICODE_CODEPOINT_INVALID || !state_->seen.insert(code).second) continue;
    const bool everywhere = std::all_of(state_->faces.begin(), state_->faces.end(), [&](const State::Face& face) {
      return face.font->IsGlyphInFont(static_cast<ImWchar>(code));
    });
    if (!everywhere) state_->missing.push_back(code);
  }
}

bool Fonts::merge_missing() {
  bool merged = false;
  for (const unsigned code : std::exchange(state_->missing, {}))
    for (State::Face& face : state_->faces) {
      if (face.font->IsGlyphInFont(static_cast<ImWchar>(code))) continue;
      const Pattern pattern = state_->pattern(face);
      FcCharSet* wanted = FcCharSetCreate();
      FcCharSetAddChar(wanted, code);
      FcPatternAddCharSet(pattern.get(), FC_CHARSET, wanted);
      FcCharSetDestroy(wanted);
      merged = state_->add(face, match(state_->config, pattern.get())) || merged;
    }
  return merged;
}

}  // namespace headscope

#include "app/widgets/fonts.h"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "viz/export/glyphs.h"
#include "viz/export/pango_text.h"

namespace headscope {

namespace {

/// Stand-ins of laid-out clusters: planes 4 and up hold no character, and Dear ImGui's tables grow with the number.
constexpr ImWchar first_stand_in = 0x40000;
/// Dear ImGui numbers the glyphs of one size with sixteen bits. Text beyond is drawn as it comes.
constexpr std::size_t most_stand_ins = 30'000;
/// Layouts kept; more than the largest page shows.
constexpr std::size_t most_layouts = 20'000;

/// All glyphs, and which of them stand-ins name.
struct Book {
  Glyphs glyphs;
  std::vector<int> stand_ins;
  std::unordered_map<int, ImWchar> characters;

  /// nullopt when there are too many.
  std::optional<ImWchar> stand_in(int glyph) {
    if (const auto at = characters.find(glyph); at != characters.end()) return at->second;
    if (stand_ins.size() >= most_stand_ins) return std::nullopt;
    const ImWchar character = first_stand_in + static_cast<ImWchar>(stand_ins.size());
    stand_ins.push_back(glyph);
    return characters[glyph] = character;
  }
  bool is_stand_in(ImWchar character) const {
    return character >= first_stand_in && character - first_stand_in < stand_ins.size();
  }
};

struct Face {
  FontRole role;
  int weight;
  ImFont* font = nullptr;
  Glyphs::Metrics metrics{};
  Book* book = nullptr;
  std::unordered_map<ImWchar, int> alone{};  ///< glyphs of characters by themselves; −1 = nothing is drawn

  Font font_of_one_em() const { return {role, 1, weight}; }

  int glyph(ImWchar character) {
    if (book->is_stand_in(character)) return book->stand_ins[character - first_stand_in];
    const auto [at, fresh] = alone.try_emplace(character, -1);
    if (fresh) {
      const std::string text = to_utf8(static_cast<std::int32_t>(character));
      if (const std::vector<Cluster> line = book->glyphs.line(text, font_of_one_em()); !line.empty())
        at->second = line.front().glyph;
    }
    return at->second;
  }
};

Face& face_of(const ImFontConfig* source) {
  return *static_cast<Face*>(source->FontLoaderData);
}

/// Pixels of the em when Dear ImGui asks for that height of the line.
double em_of(const Face& face, const ImFontBaked& baked) {
  return static_cast<double>(baked.Size) / (face.metrics.ascent + face.metrics.descent);
}

bool init_size(ImFontAtlas*, ImFontConfig* source, ImFontBaked* baked, void*) {
  const Face& face = face_of(source);
  const double em = em_of(face, *baked);
  baked->Ascent = static_cast<float>(std::ceil(face.metrics.ascent * em));
  baked->Descent = -static_cast<float>(std::ceil(face.metrics.descent * em));
  return true;
}

bool load_glyph(ImFontAtlas* atlas, ImFontConfig* source, ImFontBaked* baked, void*, ImWchar character,
                ImFontGlyph* out, float* only_advance) {
  if (character < ' ') return false;
  Face& face = face_of(source);
  // Twice as many pixels where the screen has them; lengths stay those of the interface.
  const double density = static_cast<double>(source->RasterizerDensity * baked->RasterizerDensity);
  const double em = em_of(face, *baked);
  const int glyph = face.glyph(character);
  double advance = glyph < 0 ? 0 : face.book->glyphs.advance(glyph) * em;
  // Characters by themselves stand on whole pixels; what joins its neighbour must not be torn from it.
  if (!face.book->is_stand_in(character)) advance = std::round(advance * density) / density;
  if (only_advance != nullptr) {
    *only_advance = static_cast<float>(advance);
    return true;
  }
  out->Codepoint = character;
  out->AdvanceX = static_cast<float>(advance);
  const GlyphImage image = glyph < 0 ? GlyphImage{} : face.book->glyphs.image(glyph, em * density);
  if (image.rgba.empty()) return true;
  const ImFontAtlasRectId id = ImFontAtlasPackAddRect(atlas, image.width, image.height);
  if (id == ImFontAtlasRectId_Invalid) return true;  // no room in the largest texture: a gap, as wide as the glyph
  const auto share = static_cast<float>(1 / density);
  out->X0 = static_cast<float>(image.left) * share;
  out->X1 = static_cast<float>(image.left + image.width) * share;
  out->Y0 = baked->Ascent + static_cast<float>(image.top) * share;
  out->Y1 = baked->Ascent + static_cast<float>(image.top + image.height) * share;
  out->Visible = true;
  out->Colored = image.colored;
  out->PackId = id;
  ImFontAtlasBakedSetFontGlyphBitmap(atlas, baked, source, out, ImFontAtlasPackGetRect(atlas, id), image.rgba.data(),
                                     ImTextureFormat_RGBA32, image.width * 4);
  return true;
}

/// Lives as long as the program: the atlas, which outlives Fonts, asks it what to take down.
const ImFontLoader& glyph_loader() {
  static const ImFontLoader loader = [] {
    ImFontLoader out;
    out.Name = "Pango";
    out.FontSrcContainsGlyph = [](ImFontAtlas*, ImFontConfig*, ImWchar character) { return character >= ' '; };
    out.FontBakedInit = init_size;
    out.FontBakedLoadGlyph = load_glyph;
    return out;
  }();
  return loader;
}

}  // namespace

struct Fonts::State {
  Book book;
  double scale = 1;
  std::array<Face, 5> faces{
      {{FontRole::ui, 400}, {FontRole::ui, 500}, {FontRole::ui, 600}, {FontRole::mono, 400}, {FontRole::mono, 600}}};
  std::unordered_map<std::string, std::string> layouts;  ///< face, text → stand-ins

  Face& face(const Font& font) {
    Face* best = nullptr;
    for (Face& f : faces)
      if (f.role == font.role && (!best || std::abs(f.weight - font.weight) < std::abs(best->weight - font.weight)))
        best = &f;
    return *best;
  }

  /// What stands for a cluster: the character itself where it would be drawn the same by itself (brackets are mirrored
  /// and fonts chosen by what is around).
  ImWchar character(const Cluster& cluster, std::string_view line, Face& face) {
    const std::string_view own = line.substr(cluster.begin, cluster.end - cluster.begin);
    if (own.empty() || first_invalid_utf8(own)) return IM_UNICODE_CODEPOINT_INVALID;
    const CodePoint first = code_point_at(line, cluster.begin);
    const bool single = static_cast<std::size_t>(first.length) == own.size();
    const auto itself = static_cast<ImWchar>(first.value);
    if (first.value < ' ') return itself;  // a tab is as wide here as anywhere
    if (single && stands_alone(first.value) && face.glyph(itself) == cluster.glyph) return itself;
    return book.stand_in(cluster.glyph).value_or(itself);
  }

  std::string_view laid_out(std::string_view text, Face& face, bool right_to_left) {
    if (!right_to_left && stands_alone(text)) return text;
    std::string key = std::to_string(&face - faces.data()) + (right_to_left ? '<' : '>');
    key += text;
    const auto [at, fresh] = layouts.try_emplace(std::move(key));
    if (!fresh) return at->second;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = text.substr(begin, end - begin);
      for (const Cluster& cluster : book.glyphs.line(line, face.font_of_one_em(), right_to_left))
        at->second += to_utf8(static_cast<std::int32_t>(character(cluster, line, face)));
      if (end < text.size()) at->second += '\n';
      begin = end + 1;
    }
    return at->second;
  }
};

Fonts::Fonts() : state_(std::make_unique<State>()) {
  for (Face& face : state_->faces) {
    face.book = &state_->book;
    face.metrics = state_->book.glyphs.metrics(face.font_of_one_em());
    if (!(face.metrics.ascent + face.metrics.descent > 0)) throw no_fonts();
    ImFontConfig source;
    source.FontLoader = &glyph_loader();
    face.font = ImGui::GetIO().Fonts->AddFont(&source);
    face.font->Sources[0]->FontLoaderData = &face;
  }
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
  const Glyphs::Metrics& metrics = state_->face(font).metrics;
  return static_cast<float>(font.size * (metrics.ascent + metrics.descent) * state_->scale * zoom);
}

float Fonts::ascent(const Font& font, double zoom) const {
  return face(font)->GetFontBaked(std::max(height(font, zoom), 1.f))->Ascent;
}

TextBox Fonts::measure(std::string_view text, const Font& font) const {
  Face& face = state_->face(font);
  const std::string_view shown = state_->laid_out(text, face, false);
  const double scale = state_->scale;
  const float size = std::max(height(font), 1.f);
  ImFontBaked* baked = face.font->GetFontBaked(size);
  double x = 0, left = 1e9, right = -1e9, top = 1e9, bottom = -1e9;
  for (const char *at = shown.data(), *end = at + shown.size(); at < end;) {
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

std::string_view Fonts::laid_out(std::string_view text, const Font& font, bool right_to_left) const {
  return state_->laid_out(text, state_->face(font), right_to_left);
}

std::string_view Fonts::laid_out(std::string_view text) const {
  const auto present = std::ranges::find(state_->faces, ImGui::GetFont(), &Face::font);
  return state_->laid_out(text, present == state_->faces.end() ? state_->faces.front() : *present, false);
}

std::vector<Fonts::Part> Fonts::parts(std::string_view line, const Font& font, bool right_to_left) const {
  Face& face = state_->face(font);
  const float size = std::max(height(font), 1.f);
  ImFontBaked* baked = face.font->GetFontBaked(size);
  std::vector<Part> out;
  const auto add = [&](std::size_t begin, std::size_t end, bool backwards, ImWchar character) {
    out.push_back({begin, end, baked->GetCharAdvance(character) * size / baked->Size, backwards});
  };
  if (!right_to_left && stands_alone(line)) {
    for (const char *first = line.data(), *end = first + line.size(), *at = first; at < end;) {
      unsigned code = 0;
      const char* next = at + std::max(1, ImTextCharFromUtf8(&code, at, end));
      add(static_cast<std::size_t>(at - first), static_cast<std::size_t>(next - first), false, code);
      at = next;
    }
    return out;
  }
  for (const Cluster& cluster : state_->book.glyphs.line(line, face.font_of_one_em(), right_to_left))
    add(cluster.begin, cluster.end, cluster.right_to_left, state_->character(cluster, line, face));
  return out;
}

void Fonts::begin_frame() {
  if (state_->layouts.size() > most_layouts) state_->layouts.clear();
}

}  // namespace headscope

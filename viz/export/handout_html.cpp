#include <fmt/format.h>

#include "viz/export/handout.h"
#include "viz/export/svg.h"

namespace headscope {

namespace {

constexpr const char* head = R"(<!DOCTYPE html>
<html lang="{2}"><head><meta charset="utf-8"><title>{0}</title><style>
body {{ font: 15px/1.5 sans-serif; max-width: 760px; margin: 2em auto; padding: 0 1em; color: #111; }}
section {{ break-inside: avoid; margin-bottom: 2.5em; }} h1 {{ margin-bottom: 0; }} .about {{ color: #555; margin-top: .2em; }}
figure {{ margin: 1em 0; }} img {{ max-width: 100%; }} figcaption {{ color: #555; font-size: 13px; }}
.question {{ border: 1px solid #999; border-radius: 4px; padding: .2em 1em; }} .answer {{ border-left: 3px solid #2a6fdb; padding-left: 1em; }}
.note {{ color: #555; border-left: 3px solid #ccc; padding-left: 1em; }}
</style></head><body><h1>{0}</h1><p class="about">{1}</p>
)";

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string html(const HandoutWords& words) {
  std::string out;
  for (const HandoutSpan& span : words)
    out += span.emphasised ? "<em>" + html_escaped(span.text) + "</em>" : html_escaped(span.text);
  return out;
}

/// As a picture of its own, so that no two share names of their parts.
std::string image(const std::string& svg, const std::string& words) {
  std::string data;
  for (const char c : svg) {
    if (c == '%' || c == '#' || c == '"' || c == '<' || c == '>' || c == '&' || c == '\n')
      data += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      data += c;
  }
  return fmt::format("<figure><img alt=\"{0}\" src=\"data:image/svg+xml;charset=utf-8,{1}\"></figure>\n", words, data);
}

std::string block(const HandoutBlock& block, bool first) {
  const std::string words = html(block.words);
  switch (block.kind) {
    case HandoutBlock::Kind::heading:
      return (first ? "" : "</section>\n") + ("<section><h2>" + words) + "</h2>\n";
    case HandoutBlock::Kind::prose:
      return "<p>" + words + "</p>\n";
    case HandoutBlock::Kind::picture:
      return image(encode_svg(*block.picture), words);
    case HandoutBlock::Kind::aside:
      return "<figcaption>" + words + "</figcaption>\n";
    case HandoutBlock::Kind::question: {
      std::string out = "<div class=\"question\"><p>" + words + "</p>\n";
      for (const HandoutWords& each : block.choices) out += "<p>○ " + html(each) + "</p>\n";
      return out + "</div>\n";
    }
    case HandoutBlock::Kind::answer:
      return "<div class=\"answer\"><p>" + words + "</p></div>\n";
    case HandoutBlock::Kind::note:
      return "<p class=\"note\">" + words + "</p>\n";
  }
  return "";
}

}  // namespace

std::string encode_handout_html(const Handout& handout) {
  std::string out =
      fmt::format(head, html_escaped(handout.title), html_escaped(handout.about), html_escaped(handout.language));
  bool first = true;
  for (const HandoutBlock& each : handout.blocks) {
    out += block(each, first);
    first = first && each.kind != HandoutBlock::Kind::heading;
  }
  return out + (first ? "" : "</section>\n") + "</body></html>\n";
}

}  // namespace headscope

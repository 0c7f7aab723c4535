#include "core/text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace headscope {

namespace {

utf8proc_option_t options_of(NormalForm form) {
  switch (form) {
    case NormalForm::nfc:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    case NormalForm::nfd:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    case NormalForm::nfkc:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case NormalForm::nfkd:
      break;
  }
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
}

/// One character's decomposition, appended; marks not yet in order.
void decompose(std::int32_t character, utf8proc_option_t options, std::vector<utf8proc_int32_t>& out) {
  constexpr std::size_t most = 32;  // U+FDFA becomes 18
  const std::size_t before = out.size();
  out.resize(before + most);
  int boundary = 0;
  const auto length = utf8proc_decompose_char(character, out.data() + before, most, options, &boundary);
  out.resize(before + static_cast<std::size_t>(std::clamp<utf8proc_ssize_t>(length, 0, most)));
}

int combining_class(utf8proc_int32_t character) {
  return utf8proc_get_property(character)->combining_class;
}

/// Runs of combining marks in canonical order (UAX #15, D109). utf8proc's own ordering takes the square of a run.
void order_marks(std::vector<utf8proc_int32_t>& text, NormalFormWork& work) {
  for (auto at = text.begin(); at != text.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, text.end(), [](utf8proc_int32_t c) { return combining_class(c) == 0; });
    std::stable_sort(at, end, [&](auto a, auto b) {
      ++work.comparisons;
      return combining_class(a) < combining_class(b);
    });
    at = end;
  }
}

std::string normal_form(std::string_view text, NormalForm form, NormalFormWork& work) {
  const utf8proc_option_t options = options_of(form);
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    decompose(point.value, options, points);
    at += static_cast<std::size_t>(point.length);
  }
  work.characters += points.size();
  order_marks(points, work);
  if (options & UTF8PROC_COMPOSE) {
    const auto length = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), options);
    points.resize(static_cast<std::size_t>(std::max<utf8proc_ssize_t>(length, 0)));
  }
  std::string normal;
  normal.reserve(text.size());
  for (const utf8proc_int32_t point : points) {
    utf8proc_uint8_t bytes[4];
    const auto length = utf8proc_encode_char(point, bytes);
    normal.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
  }
  return normal;
}

/// End of the shortest run from `begin` that normalises by itself. A character begins a run of its own when it is no
/// combining mark and normalises to the same with or without what stands before it (of which the last few characters
/// tell: looking at all of a long run each time would take its square).
std::size_t end_of_run(const std::string& text, std::size_t begin, NormalForm form, NormalFormWork& work) {
  constexpr std::size_t most_before = 64;  // bytes
  std::size_t at = begin + static_cast<std::size_t>(utf8_length(text[begin]));
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    const auto length = static_cast<std::size_t>(point.length);
    if (point.value < 0x80) return at;
    if (combining_class(point.value) == 0) {
      std::size_t from = at - begin > most_before ? at - most_before : begin;
      while ((static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
      const std::string_view before = std::string_view(text).substr(from, at - from);
      const std::string_view next = std::string_view(text).substr(at, length);
      const std::string_view both = std::string_view(text).substr(from, at - from + length);
      if (normal_form(both, form, work) == normal_form(before, form, work) + normal_form(next, form, work)) return at;
    }
    at += length;
  }
  return at;
}

/// Several characters in place of one: each of them begins where that one does, so that what is stripped of them later
/// leaves a text that still begins there.
void spell_out(AlignedTextWriter& out, std::size_t begin, std::size_t end, std::string_view characters) {
  while (!characters.empty()) {
    const auto length = static_cast<std::size_t>(utf8_length(characters.front()));
    const bool last = length >= characters.size();
    out.replace(begin, last ? end : begin, characters.substr(0, length));
    characters.remove_prefix(std::min(length, characters.size()));
  }
}

std::size_t end_of_grapheme(std::string_view text, std::size_t begin) {
  CodePoint before = code_point_at(text, begin);
  std::size_t at = begin + static_cast<std::size_t>(before.length);
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    if (utf8proc_grapheme_break_stateful(before.value, point.value, &state)) break;
    at += static_cast<std::size_t>(point.length);
    before = point;
  }
  return at;
}

struct Apply {
  AlignedText text;
  const std::stop_token& stop;
  NormalFormWork& work;

  AlignedText operator()(const PrependStep& step) {
    if (text.bytes.empty()) return std::move(text);
    AlignedTextWriter out(text);
    out.replace(0, 0, step.text);
    out.copy(0, text.bytes.size());
    return out.finish();
  }

  AlignedText operator()(const ReplaceStep& step) {
    AlignedTextWriter out(text);
    std::size_t done = 0;
    const auto replace = [&](ByteRange match) {
      out.copy(done, match.begin);
      out.replace(match.begin, match.end, step.content);
      done = match.end;
    };
    step.pattern.find_all(text.bytes, {0, text.bytes.size()}, replace, stop);
    out.copy(done, text.bytes.size());
    return out.finish();
  }

  AlignedText operator()(const NormalFormStep& step) {
    const std::string whole = normal_form(text.bytes, step.form, work);
    if (whole == text.bytes) return std::move(text);
    AlignedTextWriter out(text);
    for (std::size_t at = 0; at < text.bytes.size();) {
      if (stop.stop_requested()) throw Cancelled();
      const std::size_t end = end_of_run(text.bytes, at, step.form, work);
      const std::string_view run = std::string_view(text.bytes).substr(at, end - at);
      const std::string normal = normal_form(run, step.form, work);
      if (normal == run)
        out.copy(at, end);
      else if (end - at == static_cast<std::size_t>(utf8_length(text.bytes[at])))
        spell_out(out, at, end, normal);
      else
        out.replace(at, end, normal);
      at = end;
    }
    AlignedText result = out.finish();
    if (result.bytes == whole) return result;
    AlignedTextWriter coarse(text);  // the runs were not independent after all: right bytes matter more than fine spans
    coarse.replace(0, text.bytes.size(), whole);
    return coarse.finish();
  }

  AlignedText operator()(const CharacterStep& step) {
    AlignedTextWriter out(text);
    for (std::size_t at = 0; at < text.bytes.size();) {
      const CodePoint point = code_point_at(text.bytes, at);
      const std::size_t end = at + static_cast<std::size_t>(point.length);
      if (const auto changed = step.rule(point.value))
        out.replace(at, end, *changed);
      else
        out.copy(at, end);
      at = end;
    }
    return out.finish();
  }

  AlignedText operator()(const PrecompiledStep& step) {
    constexpr std::size_t longest_replaced = 5;  // bytes of a grapheme
    const std::string_view bytes = text.bytes;
    AlignedTextWriter out(text);
    const auto replaced = [&](std::size_t begin, std::size_t end) {
      const auto changed = step.charsmap->replacement(bytes.substr(begin, end - begin));
      if (changed) out.replace(begin, end, *changed);
      return changed.has_value();
    };
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = end_of_grapheme(bytes, at);
      if (end - at <= longest_replaced && replaced(at, end)) {
        at = end;
        continue;
      }
      while (at < end) {
        const std::size_t next = at + static_cast<std::size_t>(utf8_length(bytes[at]));
        if (!replaced(at, next)) out.copy(at, next);
        at = next;
      }
    }
    return out.finish();
  }

  AlignedText operator()(const StripStep& step) {
    std::size_t begin = 0, end = text.bytes.size();
    while (step.left && begin < end) {
      const CodePoint point = code_point_at(text.bytes, begin);
      if (!is_white_space(point.value)) break;
      begin += static_cast<std::size_t>(point.length);
    }
    while (step.right && end > begin) {
      const std::size_t before = previous_code_point(text.bytes, end);
      if (!is_white_space(code_point_at(text.bytes, before).value)) break;
      end = before;
    }
    AlignedTextWriter out(text);
    out.copy(begin, end);
    return out.finish();
  }
};

}  // namespace

AlignedText normalize(const std::vector<NormalizerStep>& steps, AlignedText text, const std::stop_token& stop,
                      NormalFormWork* work) {
  NormalFormWork unasked;
  for (const NormalizerStep& step : steps) {
    if (stop.stop_requested()) throw Cancelled();
    text = std::visit(Apply{std::move(text), stop, work ? *work : unasked}, step);
  }
  return text;
}

}  // namespace headscope

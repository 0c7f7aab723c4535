#include "core/text/normalizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <new>

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

std::string normal_form(std::string_view text, NormalForm form) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &mapped, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (length < 0) throw std::bad_alloc();  // the text is valid UTF-8, so only memory can run out
  return {reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length)};
}

/// End of the shortest run from `begin` that normalises by itself. A character begins a run of its own when it is no
/// combining mark and normalises to the same with or without what stands before it.
std::size_t end_of_run(const std::string& text, std::size_t begin, NormalForm form) {
  std::size_t at = begin + static_cast<std::size_t>(utf8_length(text[begin]));
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    const auto length = static_cast<std::size_t>(point.length);
    if (point.value < 0x80) return at;
    if (utf8proc_get_property(point.value)->combining_class == 0) {
      const std::string_view before = std::string_view(text).substr(begin, at - begin);
      const std::string_view next = std::string_view(text).substr(at, length);
      const std::string_view both = std::string_view(text).substr(begin, at - begin + length);
      if (normal_form(both, form) == normal_form(before, form) + normal_form(next, form)) return at;
    }
    at += length;
  }
  return at;
}

struct Apply {
  AlignedText text;

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
    step.pattern.find_all(text.bytes, {0, text.bytes.size()}, [&](ByteRange match) {
      out.copy(done, match.begin);
      out.replace(match.begin, match.end, step.content);
      done = match.end;
    });
    out.copy(done, text.bytes.size());
    return out.finish();
  }

  AlignedText operator()(const NormalFormStep& step) {
    const std::string whole = normal_form(text.bytes, step.form);
    if (whole == text.bytes) return std::move(text);
    AlignedTextWriter out(text);
    for (std::size_t at = 0; at < text.bytes.size();) {
      const std::size_t end = end_of_run(text.bytes, at, step.form);
      const std::string_view run = std::string_view(text.bytes).substr(at, end - at);
      const std::string normal = normal_form(run, step.form);
      if (normal == run)
        out.copy(at, end);
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

  AlignedText operator()(const LowercaseStep&) {
    AlignedTextWriter out(text);
    for (std::size_t at = 0; at < text.bytes.size();) {
      const CodePoint point = code_point_at(text.bytes, at);
      const std::size_t end = at + static_cast<std::size_t>(point.length);
      const std::int32_t lower = utf8proc_tolower(point.value);
      if (point.value == 0x130)
        out.replace(at, end, "i\xCC\x87");
      else if (lower != point.value)
        out.replace(at, end, to_utf8(lower));
      else
        out.copy(at, end);
      at = end;
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

AlignedText normalize(const std::vector<NormalizerStep>& steps, AlignedText text) {
  for (const NormalizerStep& step : steps) text = std::visit(Apply{std::move(text)}, step);
  return text;
}

}  // namespace headscope

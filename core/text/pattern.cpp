#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/text/pattern.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <new>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/utf8.h"

namespace headscope {

namespace {

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[256];
  if (pcre2_get_error_message(code, text, sizeof text) < 0) return fmt::format("PCRE2 error {}", code);
  return reinterpret_cast<const char*>(text);
}

using CodePtr = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;
using ContextPtr = std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)>;
using MatchPtr = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;
using LimitsPtr = std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)>;

// Places at which one call looks for the beginning of a match, and bytes that it may read from all of them: between
// calls it can be stopped.
constexpr std::size_t kPlacesPerCall = 4096, kBytesPerCall = 1 << 28;
// Of PCRE2's steps: what any place may take, …
constexpr std::size_t kFewSteps = 1000;
// … and what all that need more may take in one text.
constexpr std::size_t kStepsPerByte = 64, kLeastSteps = 1'000'000, kMostSteps = 4'000'000'000;
// In one call, between two of which it can be stopped.
constexpr std::size_t kStepsPerCall = 200'000'000;
constexpr std::uint32_t kMostHeapKiB = 256 * 1024;

/// How many places a call may try and what each may take. PCRE2 counts the steps of each place from nothing and does
/// not tell how many they were: so all begin with few, and one that these do not suffice is tried again by itself with
/// twice as many, paid out of what the text has.
class Budget {
 public:
  explicit Budget(std::size_t text_size) : left_(std::min(kLeastSteps + kStepsPerByte * text_size, kMostSteps)) {}

  std::size_t steps() const { return steps_; }
  std::size_t places(std::size_t bytes_ahead) const {
    return steps_ > kFewSteps
               ? 1
               : std::clamp<std::size_t>(std::min(calm_, kBytesPerCall / (bytes_ahead + 1)), 1, kPlacesPerCall);
  }
  /// The call ended, this many places further on.
  void passed(std::size_t places) {
    if (steps_ > kFewSteps) left_ -= std::min(left_, steps_);
    steps_ = kFewSteps;
    calm_ = std::min(calm_ + places, kPlacesPerCall);
  }
  /// One of its places takes more. False when there is no more.
  bool more(std::size_t places) {
    calm_ = 0;  // what was tried in vain is never more than what went well before
    if (places > 1) return true;
    left_ -= std::min(left_, steps_);
    const bool had_all = steps_ >= kStepsPerCall;
    steps_ = std::min({2 * steps_, left_, kStepsPerCall});
    return left_ > 0 && !had_all;
  }

 private:
  std::size_t steps_ = kFewSteps, left_;
  std::size_t calm_ = kPlacesPerCall;  // places passed since one took more
};

LimitsPtr new_limits() {
  LimitsPtr limits(pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  if (!limits) throw std::bad_alloc();
  pcre2_set_heap_limit(limits.get(), kMostHeapKiB);
  return limits;
}

}  // namespace

struct Pattern::Compiled {
  CodePtr code{nullptr, &pcre2_code_free};
  std::string where, written;

  Compiled(std::string_view pattern, std::uint32_t options, const std::string& where_)
      : where(where_), written(pattern) {
    const ContextPtr context(pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    int error = 0;
    PCRE2_SIZE offset = 0;
    options |= PCRE2_USE_OFFSET_LIMIT;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error, &offset,
                             context.get()));
    if (!code)
      throw Error(where, "a regular expression that PCRE2 can compile",
                  fmt::format("{} at offset {} of '{}'", pcre2_message(error), offset, excerpt(pattern, 80)));
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // where it is not available the interpreter runs
  }
};

Pattern Pattern::regex(std::string_view oniguruma, const std::string& where) {
  // \C would match a part of a character: what comes after it would be read outside the text.
  constexpr std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  Pattern pattern;
  pattern.compiled_ = std::make_shared<Compiled>(pcre2_from_oniguruma(oniguruma, where), options, where);
  return pattern;
}

Pattern Pattern::literal(std::string_view text, const std::string& where) {
  if (text.empty()) throw Error(where, "a text to look for", "an empty string");
  Pattern pattern;
  pattern.compiled_ = std::make_shared<Compiled>(text, PCRE2_UTF | PCRE2_LITERAL, where);
  return pattern;
}

void Pattern::find_all(std::string_view text, ByteRange range, const std::function<void(ByteRange)>& found,
                       const std::stop_token& stop) const {
  const MatchPtr match(pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  const std::string_view subject = text.substr(range.begin, range.end - range.begin);
  const LimitsPtr limits = new_limits();
  Budget budget(subject.size());
  const auto* bytes = reinterpret_cast<PCRE2_SPTR>(subject.data());
  const auto next_character = [&](std::size_t at) {
    while (at < subject.size() && (static_cast<unsigned char>(subject[at]) & 0xC0) == 0x80) ++at;
    return at;
  };
  std::size_t at = 0, last_end = std::string_view::npos;
  // The text was checked once: without NO_UTF_CHECK every call would check all of it again, quadratic in its length.
  std::uint32_t options = PCRE2_NO_UTF_CHECK;
  while (at <= subject.size()) {
    if (stop.stop_requested()) throw Cancelled();
    const std::size_t places = budget.places(subject.size() - at);
    const std::size_t last_place = std::min(at + places - 1, subject.size());
    pcre2_set_offset_limit(limits.get(), last_place);
    pcre2_set_match_limit(limits.get(), static_cast<std::uint32_t>(budget.steps()));
    const int code = pcre2_match(compiled_->code.get(), bytes, subject.size(), at, options, match.get(), limits.get());
    if (code == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter keeps its stack on the heap
      options |= PCRE2_NO_JIT;
      continue;
    }
    if (code == PCRE2_ERROR_MATCHLIMIT && budget.more(places)) continue;
    if (code == PCRE2_ERROR_NOMATCH) {
      budget.passed(places);
      if (last_place == subject.size()) return;
      at = next_character(last_place + 1);
      continue;
    }
    if (code < 0)
      throw Error(
          compiled_->where, "a pattern that splits this text within PCRE2's limits",
          fmt::format("{} at byte {}: '{}'", pcre2_message(code), range.begin + at, excerpt(compiled_->written, 80)));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match.get());
    const std::size_t begin = ends[0], end = ends[1];
    budget.passed(end > at ? end - at : 1);
    if (begin > end) return;  // \K in a lookahead can put the start after the end
    if (begin != end || begin != last_end) found({range.begin + begin, range.begin + end});
    last_end = end;
    if (begin != end && end > at)
      at = end;
    else if (end < subject.size())
      at = next_character(end + 1);
    else
      return;
  }
}

std::string_view Pattern::gpt2_words() {
  return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
}

}  // namespace headscope

#include "app/state/view_picture.h"

#include <algorithm>

#include "app/render/spoken_words.h"
#include "core/base/nth.h"
#include "core/metrics/next_token.h"

namespace headscope {

namespace {
/// The pinned row, else the usual one.
Index query_of(const Document& document, const Trace& trace, const AttentionMap& map) {
  return std::clamp<Index>(document.query.value_or(usual_query(trace, map)), 0, map.n_query() - 1);
}
}  // namespace

bool shows_scores(const View& view) {
  return view.head_view == HeadView::steps || view.head_view == HeadView::qk;
}

bool shows_words(const View& view, bool all_heads) {
  return view.text_unit == TextUnit::words && (all_heads || !shows_scores(view)) && view.head_view != HeadView::picture;
}

std::pair<std::shared_ptr<const Trace>, PictureRequest> ViewSource::settled(const ExportOptions& options) const {
  if (!words) {
    PictureRequest request = view_picture(document, view, *trace, rotary, options);
    if (request.kind == PictureRequest::Kind::patches && trace->sound && whole)
      request.spoken = spoken_words(*whole, target.get());
    return {trace, std::move(request)};
  }
  const auto joined = std::make_shared<const Trace>(in_words(*trace, *words, [&](HeadId head) {
    return all_heads || view.head_view == HeadView::heads || head == document.selected;
  }));
  Document seen = document;
  if (seen.query) seen.query = words->word_of(*seen.query);
  if (seen.key) seen.key = words->word_of(*seen.key);
  return {joined, view_picture(seen, view, *joined, rotary, options)};
}

std::string export_view(const ViewSource& source, const ExportOptions& options) {
  const auto [trace, picture] = source.settled(options);
  return export_picture(*trace, picture, options.for_print ? "print" : source.view.theme, options.file,
                        {{}, {}, options.dpi}, options.note);
}

PictureRequest view_picture(const Document& document, const View& view, const Trace& trace, bool rotary,
                            const ExportOptions& options) {
  PictureRequest request;
  request.scaling.scale = view.scale;
  if (options.all_heads) return request;
  request.heads = {{document.selected.layer, document.selected.head}};
  request.query = document.query;
  request.key = document.key;
  request.skip_first = view.first_token == FirstToken::hide;
  request.renormalize = view.first_token == FirstToken::renormalize;
  const AttentionMap& map = trace.map(document.selected);
  switch (view.head_view) {
    case HeadView::map:
      break;
    case HeadView::heads:
      request.heads.clear();
      request.query = query_of(document, trace, map);
      break;
    case HeadView::picture:
      if (!trace.picture && !trace.sound) break;
      request.kind = PictureRequest::Kind::patches;
      request.smooth = view.smooth_picture;
      // The CLS token is what a picture is read from.
      request.query = !document.query && trace.picture && trace.picture->leading > 0 && !trace.between_texts()
                          ? Index{0}
                          : query_of(document, trace, map);
      break;
    case HeadView::arcs:
      request.kind = PictureRequest::Kind::arcs;
      request.scaling = {};  // threads are drawn by their weight as it is
      request.threshold = view.arcs_threshold;
      break;
    case HeadView::row:
      request.kind = PictureRequest::Kind::bars;
      if (view.scale == Scale::per_row) request.scaling = {};  // a row by its own largest is what bars show anyway
      request.query = query_of(document, trace, map);
      break;
    case HeadView::steps:
      request.kind = PictureRequest::Kind::steps;
      break;
    case HeadView::qk:
      request.kind = PictureRequest::Kind::split;
      request.query = query_of(document, trace, map);
      request.key = document.key.value_or(std::max<Index>(0, nth(map.stats().max_key, *request.query)));
      request.rotary = rotary;
      break;
  }
  return request;
}

}  // namespace headscope

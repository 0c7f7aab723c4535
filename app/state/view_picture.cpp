#include "app/state/view_picture.h"

#include "core/base/error.h"

namespace headscope {

PictureRequest view_picture(const Document& document, const View& view, const Trace& trace,
                            const ExportOptions& options) {
  PictureRequest request;
  request.scaling.scale = view.scale;
  if (options.all_heads) return request;
  request.heads = {{document.selected.layer, document.selected.head}};
  request.query = document.query;
  request.key = document.key;
  switch (view.head_view) {
    case HeadView::map:
      return request;
    case HeadView::arcs:
      request.kind = PictureRequest::Kind::arcs;
      request.scaling = {};  // threads are drawn by their weight as it is
      request.threshold = view.arcs_threshold;
      request.skip_first = view.first_token != FirstToken::show;
      return request;
    case HeadView::row:
      request.kind = PictureRequest::Kind::bars;
      if (view.scale == Scale::per_row) request.scaling = {};  // a row by its own largest is what bars show anyway
      if (!request.query) request.query = static_cast<Index>(trace.tokens.size()) - 1;
      return request;
    case HeadView::steps:
    case HeadView::qk:
      break;
  }
  throw Error("export", "a map, arcs, or a row", "the " + std::string(name(view.head_view)) + " view",
              "switch to the map to export its head");
}

}  // namespace headscope

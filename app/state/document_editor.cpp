#include "app/state/document_editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/state/step_names.h"
#include "core/attention/masks.h"
#include "core/edits/weight_edit.h"

namespace headscope {

bool DocumentEditor::frame(double now) {
  now_ = now;
  return std::exchange(changed_, false);
}

bool DocumentEditor::show_hovered() {
  const Hover before = std::exchange(state_.hover, std::exchange(hovered_, {}));
  return !(before == state_.hover);
}

void DocumentEditor::changed(bool elsewhere) {
  changed_ = true;
  if (heed_) heed_(elsewhere);
}

void DocumentEditor::change(const std::string& merge_key, const std::function<void(Document&)>& edit) {
  Document after = state_.document;
  edit(after);
  if (after == state_.document) return;
  history_.record(state_.document, merge_key, now_);
  state_.document = std::move(after);
  changed(false);
}

void DocumentEditor::set_text(std::string text) {
  change("text", [&](Document& document) {
    document.text = std::move(text);
    document.ids.clear();
    document.masked.clear();
  });
}

void DocumentEditor::set_source(std::string source) {
  change("source", [&](Document& document) {
    document.source = std::move(source);
    document.source_ids.clear();
  });
}

void DocumentEditor::look_at(Stack stack) {
  ++choices_;
  change("stack", [&](Document& document) {
    document.stack = stack;
    document.query = document.key = std::nullopt;  // tokens of another text
  });
}

void DocumentEditor::set_masked(std::vector<MaskedPosition> positions) {
  change("", [&](Document& document) { document.masked = std::move(positions); });
}

void DocumentEditor::toggle_masked(int position, int count) {
  if (position < 0) return;
  std::vector<MaskedPosition> positions = state_.document.masked;
  const auto here = [&](const MaskedPosition& each) {
    return each.position >= position && each.position < position + count;
  };
  if (std::erase_if(positions, here) < static_cast<std::size_t>(count))
    for (int i = 0; i < count; ++i) positions.push_back({position + i, {}});
  std::ranges::sort(positions);
  set_masked(std::move(positions));
}

void DocumentEditor::set_chat(std::string text) {
  change("", [&](Document& document) {
    document.text = std::move(text);
    document.ids.clear();
    document.masked.clear();
    document.parse_special = true;
    document.add_bos = false;
  });
}

void DocumentEditor::set_parse_special(bool on) {
  change("", [&](Document& document) {
    document.parse_special = on;
    if (!on) document.add_bos.reset();
  });
}

void DocumentEditor::set_ids(std::vector<std::int32_t> ids) {
  change("ids", [&](Document& document) {
    document.ids = std::move(ids);
    document.masked.clear();
  });
}

void DocumentEditor::set_source_ids(std::vector<std::int32_t> ids) {
  change("source ids", [&](Document& document) { document.source_ids = std::move(ids); });
}

void DocumentEditor::set_image(std::filesystem::path image) {
  change("", [&](Document& document) {
    document.image = std::move(image);
    document.query = document.key = std::nullopt;
  });
}

void DocumentEditor::set_sound(std::filesystem::path sound) {
  change("", [&](Document& document) {
    document.sound = std::move(sound);
    document.query = document.key = std::nullopt;
  });
}

void DocumentEditor::hide_patches(const std::vector<Index>& positions, bool hidden) {
  change("hide patches", [&](Document& document) {
    const EditAction grey = parse_edit_action("hide patches grey", "brush");
    const auto painted = [&](const Intervention& edit) {
      return edit.enabled && edit.action == grey && edit.target.positions && edit.target.positions->first >= 0 &&
             edit.target.positions->last >= 0 && !edit.target.layer && !edit.target.head;
    };
    std::set<int> all;
    for (const Intervention& edit : document.edits)
      if (painted(edit))
        for (int at = edit.target.positions->first; at <= edit.target.positions->last; ++at) all.insert(at);
    const std::set<int> before = all;
    for (const Index position : positions) {
      if (hidden)
        all.insert(static_cast<int>(position));
      else
        all.erase(static_cast<int>(position));
    }
    if (all == before) return;
    std::erase_if(document.edits, painted);
    for (auto at = all.begin(); at != all.end();) {  // an edit for each row of neighbours
      const int first = *at;
      int last = first;
      while (++at != all.end() && *at == last + 1) last = *at;
      document.edits.push_back({{{}, {}, PositionRange{first, last}}, grey});
    }
  });
}

void DocumentEditor::show_input(const RunRequest& input, Stack stack, HeadId head, std::optional<Index> query) {
  ++choices_;
  change("", [&](Document& document) {
    if (!input.image.empty()) {  // the text stays for models of texts
      document.image = input.image;
    } else {
      document.text = input.text;
      if (!input.source.empty()) document.source = input.source, document.source_ids.clear();
      if (!input.sound.empty()) document.sound = input.sound;
      document.ids.clear();
      document.masked.clear();
    }
    document.stack = stack;
    document.selected = head;
    document.query = query;
    document.key.reset();
  });
}

void DocumentEditor::set_too_long(RunRequest::TooLong what) {
  change("", [&](Document& document) {
    document.too_long = what;
    document.masked.clear();  // positions of what was read until now
  });
}

void DocumentEditor::select(HeadId head) {
  ++choices_;
  change("select", [&](Document& document) { document.selected = head; });
}

void DocumentEditor::pin(std::optional<Index> query, std::optional<Index> key) {
  if (query && *query < 0) query = std::nullopt;
  if (!query || (key && *key < 0)) key = std::nullopt;
  change("pin", [&](Document& document) {
    document.query = query;
    document.key = key;
  });
}

void DocumentEditor::set_edits(std::vector<Intervention> edits) {
  change("edits", [&](Document& document) {
    for (Intervention& edit : edits)
      if (edit.target.stack == Stack::only && std::ranges::count(document.edits, edit) == 0)
        edit.target.stack = document.stack;
    document.edits = std::move(edits);
  });
}

void DocumentEditor::set_temperature(double tau) {
  const HeadTarget target = target_of(state_.view.edit_scope, state_.document.selected, state_.document.stack);
  change("temperature " + text_of(target),
         [&](Document& document) { headscope::set_temperature(document.edits, target, tau); });
}

void DocumentEditor::set_mask(const std::string& spec, const std::string& own) {
  const HeadTarget target = target_of(state_.view.edit_scope, state_.document.selected, state_.document.stack);
  change("", [&](Document& document) { headscope::set_mask(document.edits, target, spec, own); });
}

void DocumentEditor::set_weight(Index query, Index key, double weight) {
  const HeadId head = state_.document.selected;
  const SetWeight action{static_cast<int>(query), static_cast<int>(key), std::clamp(weight, 0.0, 1.0)};
  const HeadTarget target = target_of(EditScope::head, head, state_.document.stack);
  change(fmt::format("weight {} {} {}", text_of(target), query, key), [&](Document& document) {
    for (Intervention& edit : document.edits)
      if (const auto* set = edit.action.as<SetWeight>();
          set && edit.enabled && edit.target == target && set->query == action.query && set->key == action.key) {
        edit.action = action;
        return;
      }
    document.edits.push_back({target, action});
  });
}

void DocumentEditor::paint_mask(Index query, Index key, Index side, bool visible, Index tokens,
                                const std::string& own) {
  const HeadId head = state_.document.selected;
  const Stack stack = state_.document.stack;
  std::string spec = mask_of(edits_of(state_.document.edits, stack), head);
  if (spec.empty()) spec = own;
  std::vector<MapCell> cells;
  for (Index q = query; q < std::min(query + side, tokens); ++q)
    for (Index k = key; k < std::min(key + side, tokens); ++k) cells.push_back({q, k});
  spec = painted_mask(spec, cells, visible, tokens);
  change("paint", [&](Document& document) {
    headscope::set_mask(document.edits, target_of(EditScope::head, head, stack), spec, own);
  });
}

void DocumentEditor::replace(Document document) {
  ++choices_;
  change("", [&](Document& now) { now = std::move(document); });
  changed(true);
}

void DocumentEditor::undo() {
  if (history_.undo(state_.document)) changed(true);
}

void DocumentEditor::redo() {
  if (history_.redo(state_.document)) changed(true);
}

void DocumentEditor::go_to(std::size_t done) {
  while (history_.undoable() > done && history_.undo(state_.document)) changed(true);
  while (history_.undoable() < done && history_.redo(state_.document)) changed(true);
}

std::vector<std::string> DocumentEditor::steps() const {
  const auto documents = history_.documents(state_.document);
  std::vector<std::string> names;
  for (std::size_t i = 1; i < documents.size(); ++i) names.push_back(step_name(*documents[i - 1], *documents[i]));
  return names;
}

}  // namespace headscope

#include "app/workspaces/analyse/analyse_workspace.h"

#include <algorithm>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/head_cells.h"
#include "core/base/words.h"
#include "core/trace/mixer_words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
/// Another stack of an encoder-decoder is looked at than this page can be asked about.
bool asks_the_decoder(const PageContext& c, const PageInfo& page) {
  const Stack stack = c.state().document.stack;
  return c.results().translates() && stack != Stack::decoder && std::ranges::count(page.besides, stack) == 0;
}
bool asks_of_attention(const PageContext& c, const PageInfo& page) {
  return page.attention && holds_state(c.results());
}
}  // namespace

AnalyseWorkspace::AnalyseWorkspace(JobRunner& jobs, const RunController& run)
    : Workspace("Analyse"), jobs_(jobs), run_(run) {
  for (const PageEntry& entry : page_registry()) {
    pages_.push_back({&entry.info, entry.make(jobs)});
    if (groups_.empty() || groups_.back().title != entry.info.group) groups_.push_back({entry.info.group, {}});
    groups_.back().entries.push_back({entry.info.id, entry.info.title, entry.info.words + " " + entry.info.source});
  }
}

AnalyseWorkspace::Open& AnalyseWorkspace::chosen(const AppContext& app) {
  const auto wanted = app.settings.pages.find(id());
  const auto found = wanted == app.settings.pages.end()
                         ? pages_.end()
                         : std::ranges::find_if(pages_, [&](const Open& o) { return o.info->id == wanted->second; });
  return found == pages_.end() ? pages_.front() : *found;
}

void AnalyseWorkspace::left(const PageContext& c) {
  std::string page = chosen(c.app).info->id;
  if (catalogue_.draw(c.ui, "instruments", groups_, page)) c.app.settings.pages[id()] = page;
  c.app.ui.arrows_taken = catalogue_.takes_arrows();
}

void AnalyseWorkspace::middle(const PageContext& c) {
  Open& open = chosen(c.app);
  drawn_ = &open;
  const float top = ImGui::GetCursorPosY();
  {
    const UseFont font(c.ui, c.ui.heading());
    ImGui::TextUnformatted(said(open.info->title).c_str());
  }
  if (!open.info->source.empty()) {
    ImGui::SameLine(0, c.ui.px(8));
    ImGui::SetCursorPosY(top + c.ui.px(4));
    const UseFont font(c.ui, c.ui.body());
    ImGui::TextColored(vec(c.ui.theme.faint), "%s", open.info->source.c_str());
  }
  paragraph(c.ui, said(open.info->sentence), c.ui.theme.muted);
  ImGui::Dummy({0, c.ui.px(6)});
  if (!open.info->cross) stack_bar(c);
  if (asks_the_decoder(c, *open.info))
    return empty_state(c.ui, said("This page asks about the decoder"),
                       said("It alone gives logits: choose it above. What the encoder and cross-attention change in "
                            "them is what edits of theirs show."));
  if (asks_of_attention(c, *open.info))
    return empty_state(
        c.ui, said("This model has no attention"),
        say("In its place stands {}, without queries, keys, values and scores of heads. What that amounts to stands in "
            "Explore, head by head; State tells what each token writes, and what is forgotten.",
            said(state_words(c.results().model.model->config().dims))));
  ImGui::PushID(open.info->id.c_str());
  open.page->middle(c);
  ImGui::PopID();
}

void AnalyseWorkspace::right(const PageContext& c) {
  Open& open = chosen(c.app);
  if (asks_the_decoder(c, *open.info) || asks_of_attention(c, *open.info)) return;
  ImGui::PushID(open.info->id.c_str());
  open.page->right(c);
  ImGui::PopID();
}

void AnalyseWorkspace::controls(ControlsRecord& record) {
  for (Open& open : pages_)
    record.inside(open.info->id.c_str(), [&](ControlsRecord& inner) { open.page->controls(inner); });
}

void AnalyseWorkspace::each_frame() {
  const Open* drawn = std::exchange(drawn_, nullptr);
  for (Open& open : pages_) open.page->each_frame(jobs_, run_.results(), &open == drawn);
}

}  // namespace headscope

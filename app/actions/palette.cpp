#include "app/actions/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "app/actions/shortcut_words.h"
#include "app/state/mechanism_controller.h"
#include "app/state/model_list.h"
#include "core/attention/masks.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/trace/model_heads.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
/// What else the field calls what an action shows.
std::string further_words(std::string_view action) {
  static const std::map<std::string_view, std::string_view> words = {
      {"file.open.tiny-translate",
       "machine translation encoder-decoder seq2seq sequence to sequence translation T5 BART Marian source target"},
      {"file.open.tiny-vit", "vision transformer ViT DeiT CLIP image picture patches"},
      {"file.open.tiny-bert", "BERT RoBERTa encoder masked language model masked LM MLM bidirectional [MASK]"},
      {"file.open.tiny-mixtral", "Mixtral mixture of experts MoE sparse experts router Switch Transformer"},
      {"file.open.tiny-mamba", "Mamba SSM state space model recurrent"},
      {"file.open.everyday-gpt2",
       "GPT-2 GPT decoder-only causal language model everyday English sentences first start"},
      {"file.open.tiny-gpt2", "GPT-2 GPT decoder-only causal language model"},
      {"file.open.tiny-llama", "Llama rotary GQA decoder-only"},
      {"file.open.induction-2l", "induction heads in-context learning"},
      {"file.open.sink-2l",
       "attention sink first token BOS rest no-op dormant active-dormant head backcopy bigram StreamingLLM"},
      {"file.open.induction", "induction heads in-context learning"},
      {"view.word_answers", "which word does it look at click token explain sentence"},
      {"view.first_steps", "welcome start here beginner newcomer help tutorial getting started"},
      {"lesson.record", "write author teacher record state"},
      {"scenes.add", "save state slide playlist remember keep snapshot story bookmark talk"},
      {"scenes.list", "slides playlist storyboard bookmarks talk presentation order rename"},
      {"scenes.present", "slides slideshow playlist talk presentation"},
      {"present.spotlight", "dim highlight focus laser pointer darken"},
      {"present.notes", "presenter view speaker notes second screen monitor timer clock"},
      {"view.present", "presentation slides projector full screen fullscreen demo class presenter mode"},
      {"help.glossary", "words definition meaning what is explain terms dictionary"},
      {"help.lessons", "course learn teach tutorial class"},
      {"file.open_model", "load checkpoint weights safetensors GGUF folder"},
      {"file.get_model", "download pull Hugging Face hub fetch"},
      {"file.export", "save image heatmap PNG SVG PDF CSV screenshot"},
      {"file.film", "animation animate GIF APNG movie video frames temperature"},
      {"file.about_model", "configuration config parameters architecture inspect dtype"},
      {"file.check_model", "verify certificate parity float64 trust"},
      {"file.settings",
       "preferences options font device cpu or gpu cuda nvidia graphics card processor precision tf32 bf16 threads"},
      {"edit.add", "intervention change"},
      {"edit.clear", "clear delete all edits"},
      {"edit.ablate", "zero knock out remove head"},
      {"edit.mask_token", "[MASK] masked token masking"},
      {"edit.cancel", "abort interrupt"},
      {"go.cell.next", "strong cells largest weight peak jump walk long map"},
      {"go.cell.previous", "previous strongest cells largest weight back"},
      {"go.find", "find a word token search text Ctrl F look for long map"},
      {"view.follow_row", "follow row keep lock query in sight"},
      {"view.zoom.reset", "zoom out overview all of it"},
      {"view.words", "word-level attention join subwords"},
      {"go.workspace.1", "attention map heatmap heads head view atlas"},
      {"go.workspace.2", "text generation decoding sampling write"},
      {"go.workspace.3", "two models two texts diff side by side"},
      {"go.workspace.4", "positional encoding position embeddings"},
      {"go.workspace.5", "kinds of attention variants efficient attention zoo laboratory"},
      {"go.workspace.6", "interpretability mechanistic analysis tools"},
      {"go.workspace.7", "dataset many texts statistics distribution"},
      {"go.workspace.8", "training loss curve learning optimizer AdamW checkpoint"},
  };
  const auto found = words.find(action);
  return found == words.end() ? "" : std::string(found->second);
}

void add_actions(std::vector<PaletteItem>& items, const AppContext& app) {
  for (const Action& action : actions())
    if (action.is_enabled(app) && action.id != "help.palette")
      items.push_back({action.title, action.shortcut, to_say("Action"), action.run, further_words(action.id), action.id,
                       action.shown(), shown_shortcut(action.shortcut)});
}

void add_pages(std::vector<PaletteItem>& items, const AppContext& app) {
  for (const UiRequests::Page& page : app.ui.pages)
    items.push_back({page.title,
                     page.detail,
                     std::string(workspace_name(page.of).title),
                     [page](AppContext& at) {
                       at.ui.workspace = page.workspace;
                       at.settings.pages[page.of] = page.id;
                     },
                     {},
                     workspace_option(page.of) + "/" + page.id,
                     said(page.title),
                     said(page.group) == page.group
                         ? ""
                         : fmt::format("{} · {}", said_view(workspace_name(page.of).title), said(page.group))});
}

void add_lessons(std::vector<PaletteItem>& items, const AppContext& app) {
  for (const auto& lesson : app.explorer.lessons.list()) {
    std::string words;
    for (const std::string& each : lesson->words) words += each + " ";
    items.push_back({lesson->title, lesson->about, to_say("Lesson"),
                     [lesson](AppContext& at) { at.explorer.lessons.open(lesson); }, words, "lesson/" + lesson->id});
  }
}

void add_glossary(std::vector<PaletteItem>& items, const AppContext& app) {
  for (const GlossaryEntry& entry : app.explorer.lessons.glossary()) {
    std::string words;
    for (const std::string& each : entry.words) words += each + " ";
    items.push_back({entry.term, "Glossary · " + entry.text, to_say("Glossary"),
                     [term = entry.term](AppContext& at) { at.ui.glossary = term; }, words, "glossary/" + entry.term,
                     entry.title, say("Glossary · {}", entry.text)});
  }
}

void add_heads(std::vector<PaletteItem>& items, const Results& results) {
  if (!results.model.model) return;
  for (const auto& [layer, head] : every_head(results.model.model->config().dims)) {
    const HeadId ref{layer, head};
    std::string detail;
    const int row = results.facts ? results.facts->row(ref) : -1;
    if (row >= 0)
      for (const HeadVerdict& verdict : results.facts->told(row)) {
        if (!detail.empty()) detail += ", ";
        detail += fmt::format("{} {:.2f}", said(verdict.rule->title), verdict.score);
        if (std::isfinite(verdict.chance)) detail += fmt::format(" ({})", beside_chance(verdict));
      }
    items.push_back({fmt::format("Layer {} Head {}", layer, head), std::move(detail), to_say("Head"),
                     [ref](AppContext& at) { at.explorer.editor.select(ref); }, "", "",
                     say("Layer {} Head {}", layer, head)});
  }
}

void add_tokens(std::vector<PaletteItem>& items, const Results& results) {
  if (!results.run) return;
  const std::vector<Token>& tokens = results.run->trace->tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    items.push_back({fmt::format("Token {} {}", i, tokens[i].label), "pin its row", to_say("Token"),
                     [i](AppContext& at) { at.explorer.editor.pin(static_cast<Index>(i)); }, "", "",
                     say("Token {} {}", i, tokens[i].label), said("pin its row")});
}

void add_models(std::vector<PaletteItem>& items, const AppContext& app) {
  for (const fs::path& folder : app.settings.recent_models)
    items.push_back({"Open " + model_label(folder), folder.string(), to_say("Model"),
                     [folder](AppContext& at) { at.explorer.run.open_model(folder); }, "", "",
                     say("Open {}", model_label(folder))});
}

void add_masks(std::vector<PaletteItem>& items, const Results& results) {
  if (!results.model.model) return;
  for (const MaskForm& form : mask_forms())
    items.push_back({fmt::format("Mask: {}", form.example), std::string(form.predicate), to_say("Mask"),
                     [spec = std::string(form.example)](AppContext& at) {
                       at.explorer.editor.set_mask(spec,
                                                   at.explorer.results().own_mask(at.explorer.editor.document().stack));
                     },
                     fmt::format("{} {} {}", form.id, form.title, form.source), fmt::format("mask/{}", form.id),
                     say("Mask: {}", form.example)});
}

/// Matrices by hand, on the page of softmax attention.
void add_examples(std::vector<PaletteItem>& items, const AppContext& app) {
  const auto page = std::ranges::find_if(app.ui.pages, [](const UiRequests::Page& each) {
    return workspace_option(each.of) == "mechanisms" && each.id == "softmax";
  });
  if (page == app.ui.pages.end()) return;
  for (const WorkedExample& example : worked_examples())
    items.push_back({std::string(example.title), "Worked example of Mechanisms", to_say("Example"),
                     [page = *page, example = &example](AppContext& at) {
                       at.ui.workspace = page.workspace;
                       at.settings.pages[page.of] = page.id;
                       at.explorer.editor.history().close_step();
                       at.explorer.editor.change("", [&](Document& document) {
                         document.by_hand = std::make_shared<const MatricesByHand>(matrices_of(*example));
                       });
                     },
                     std::string(example.words), fmt::format("example/{}", example.id),
                     std::string(said_view(example.title)), said("Worked example of Mechanisms")});
}

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}
}  // namespace

std::vector<PaletteItem> palette_items(const AppContext& app) {
  std::vector<PaletteItem> items;
  const Results& results = app.explorer.results();
  add_actions(items, app);
  add_pages(items, app);
  add_heads(items, results);
  add_tokens(items, results);
  add_models(items, app);
  add_masks(items, results);
  add_examples(items, app);
  add_lessons(items, app);
  add_glossary(items, app);
  return items;
}

std::vector<PaletteHit> search_palette(const std::vector<PaletteItem>& items, std::string_view query,
                                       std::size_t most) {
  constexpr double detail_share = 0.5;  // what is found in the detail counts less than a name
  constexpr double head_share = 0.9;    // of what pages and actions count as much
  // Behind the page that shows it, the lesson that teaches it; behind that, what the word means.
  constexpr double lesson_share = 0.5, glossary_share = 0.45;
  constexpr double named = 2000;  // more than scattered letters, however many
  std::vector<PaletteHit> hits;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto title = fuzzy_match(query, items[i].title);
    const auto detail = fuzzy_match(query, items[i].detail);
    double words = word_match(query, items[i].title,
                              fmt::format("{} {} {}", items[i].detail, items[i].words,
                                          items[i].shown == items[i].title ? "" : items[i].shown));
    // Of a class, say, the page that explains it and the action that shows it come before the many heads that have it.
    if (items[i].group == "Head") words *= head_share;
    if (!title && !detail && words == 0) continue;
    PaletteHit hit{i, title ? title->score : detail ? detail->score * detail_share : 0, {}};
    if (words > 0) hit.score = named * (1 + words) + hit.score / 20;
    if (items[i].group == "Lesson") hit.score *= lesson_share;
    if (items[i].group == "Glossary") hit.score *= glossary_share;
    if (title) hit.positions = std::move(title->positions);
    hits.push_back(std::move(hit));
  }
  const bool all_alike = query.find_first_not_of(' ') == std::string_view::npos;
  if (!all_alike) std::ranges::stable_sort(hits, std::ranges::greater{}, &PaletteHit::score);
  // Among what is called so, what a word means comes third: behind two pages, or a page and a lesson.
  constexpr std::ptrdiff_t third = 2;
  const auto explains = [&](const PaletteHit& hit) { return items[hit.item].group == "Glossary"; };
  const auto called_so =
      std::ranges::find_if(hits, [&](const PaletteHit& hit) { return hit.score < named * glossary_share; });
  std::stable_partition(hits.begin(), called_so, std::not_fn(explains));
  auto meaning = std::find_if(hits.begin(), called_so, [&](const PaletteHit& hit) {
    const PaletteItem& item = items[hit.item];
    return explains(hit) && (same_word(query, item.title) || same_word(query, item.shown));
  });
  if (meaning == called_so) meaning = std::find_if(hits.begin(), called_so, explains);
  if (!all_alike && meaning != called_so && meaning - hits.begin() > third)
    std::rotate(hits.begin() + third, meaning, meaning + 1);
  if (hits.size() > most) hits.resize(most);
  return hits;
}

}  // namespace headscope

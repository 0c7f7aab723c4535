#include "app/workspaces/no_run.h"

#include <algorithm>

#include "app/widgets/controls.h"
#include "core/base/words.h"
#include "core/trace/model_heads.h"

namespace headscope {

namespace {
std::string with_what_follows(std::string advice, const std::string& then) {
  return then.empty() ? advice : advice + " " + then;
}

/// What the open model reads, to be written or opened in Explore.
std::string what_to_do(const PageContext& c) {
  const LoadedModel& model = c.results().model;
  if (reads_pictures(c.results())) return said("Open a picture in Explore, on the left.");
  if (c.results().hears()) return said("Open a sound in Explore, on the left.");
  if (c.results().translates())
    return model.source_tokenizer ? said("Write a source in Explore, on the left.")
                                  : said(
                                        "This model has no tokenizer: write its source as token ids in Explore, on "
                                        "the left.");
  return model.tokenizer ? said("Write a text in Explore, on the left.")
                         : said("This model has no tokenizer: write token ids in Explore, on the left.");
}
}  // namespace

NoRun why_no_run(const PageContext& c, const std::string& then) {
  if (!c.results().model.model)
    return c.jobs.busy() ? NoRun{said("Opening the model …"), ""}
                         : NoRun{said("No model is open"), said("Open one from the menu on the left above.")};
  if (const auto& long_text = c.results().too_long)
    return {said("The text is too long for this model"),
            long_text->counted
                ? say("It has {} tokens, and the model reads at most {}. In Explore, on the left, choose which of them "
                      "it shall read.",
                      long_text->tokens, long_text->context)
                : say("It has at least {} tokens, and the model reads at most {}. In Explore, on the left, choose "
                      "which of them it shall read.",
                      long_text->tokens, long_text->context)};
  if (c.app.explorer.run.has_input()) {
    if (c.jobs.busy()) return {said("Running the model …"), ""};
    return {said("This was not run to its end"), said("F5 runs it again.")};
  }
  return {reads_pictures(c.results()) ? said("There is no picture yet")
          : c.results().hears()       ? said("There is no sound yet")
                                      : said("There is no text yet"),
          with_what_follows(what_to_do(c), then)};
}

void no_run(const PageContext& c, const std::string& then) {
  const NoRun why = why_no_run(c, then);
  empty_state(c.ui, why.title, why.advice);
}

void no_attention(const PageContext& c, const std::string& title, const std::string& advice) {
  const ModelDims& dims = c.results().model.model->config().dims;
  int layer = 0;
  while (layer < dims.layers - 1 && !dims.attends(layer)) ++layer;
  if (empty_state(c.ui, title, advice, say("Layer {}", layer).c_str()))
    c.editor.select(nearest_head(dims, {layer, c.state().document.selected.head}));
}

}  // namespace headscope

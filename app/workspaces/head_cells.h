#pragma once
// A head among layers × heads, on whatever page shows such a matrix, and the colours of classes. Thread rule: the UI
// thread.

#include <optional>
#include <string_view>
#include <vector>

#include "app/widgets/scene_view.h"
#include "app/workspaces/page_context.h"
#include "viz/scene/head_grid.h"

namespace headscope {

/// Over a matrix of layers × heads that was just drawn: names the cells for tests, outlines the selected head (or
/// `framed` in its place) and the hovered one, selects on click, opens it in Explore on double click. Returns the head
/// under the pointer. `by_key`: columns are key heads of a model of these dimensions, and stand for the heads that read
/// them; cells past a layer's own are none.
std::optional<HeadId> head_cells(const PageContext& c, const Scene& scene, const SceneTouch& touch,
                                 const ModelDims* by_key = nullptr, std::optional<HeadId> framed = {});

/// Section STACK with the three kinds of attention of an encoder-decoder, of which `now` is looked at; returns the one
/// that was chosen just now.
std::optional<Stack> stack_choice(const Ui& ui, Stack now);
/// Section STACK of an encoder-decoder: which of its three kinds of attention is looked at. Nothing elsewhere.
void stack_bar(const PageContext& c);
/// What the decoder's attention to the source, or the other stacks, are called, as the window says it: "encoder",
/// "decoder", "cross-attention".
std::string_view stack_word(Stack stack);

/// Section SELECTED HEAD with a button that opens it in Explore.
void selected_head(const PageContext& c);
void show_in_explore(const PageContext& c, HeadId head);

/// The classes of all heads as outlines, strongest first.
std::vector<HeadMark> head_marks(const HeadFacts* facts);
/// The hue of a class, readable beside text.
Color class_color(const ClassRule& rule);

}  // namespace headscope

#pragma once
// What somebody says to an instruction-tuned model, put into the prompt between the marks of the model's own chat
// template. Thread rule: the UI thread.

#include <string>

#include "app/widgets/prompt_edit.h"
#include "app/workspaces/page_context.h"

namespace headscope {

class ChatPopup {
 public:
  /// A button that opens the form; nothing where the model has no template. Also what says, and takes back, that
  /// special tokens are read in the prompt.
  void draw(const PageContext& c);

 private:
  void form(const PageContext& c);
  PromptEdit edit_;
  std::string system_, user_, error_;
};

}  // namespace headscope

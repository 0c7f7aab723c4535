#include "app/cli/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "app/assets.h"
#include "app/render/spoken_words.h"
#include "core/analysis/certificate.h"
#include "core/attention/described_rule.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/standard_streams.h"
#include "core/edits/edit_notes.h"
#include "core/io/model_location.h"
#include "core/io/trace_file.h"
#include "core/run/edit_pairs.h"
#include "core/text/chat_template.h"

namespace headscope::cli {

HeadId parse_head(const std::string& text) {
  if (const auto head = parse_head_id(text)) return *head;
  throw UsageError(fmt::format("--head: expected LAYER.HEAD such as 1.0, found \"{}\"", text));
}

namespace fs = std::filesystem;

namespace {
constexpr std::size_t text_limit = std::size_t{64} << 20;

/// A text that names where it came from when it is empty or not UTF-8.
std::string checked(std::string text, const std::string& where) {
  if (text.empty()) throw Error(where, "at least one character of text", "nothing");
  if (const auto offset = first_invalid_utf8(text))
    throw Error(where, "UTF-8 text",
                fmt::format("byte 0x{:02X} at offset {}", static_cast<unsigned char>(text[*offset]), *offset),
                "convert it to UTF-8, or give token ids instead");
  if (text.starts_with("\xEF\xBB\xBF"))  // as Windows' editors write it, and nobody sees it
    write_error(
        fmt::format("headscope-cli: {} begins with a byte order mark (U+FEFF), which is read as text\n", where));
  return text;
}
/// The request's text as the first turn of a conversation.
void read_as_chat(RunRequest& request, const std::string& system) {
  const auto chat = load_chat_template(request.model);
  if (!chat)
    throw Error(request.model.string(), "a chat template (chat_template.jinja, or in tokenizer_config.json)", "none",
                "leave --chat out: the model continues the text as it is");
  std::vector<ChatMessage> messages;
  if (!system.empty()) messages.push_back({"system", system});
  messages.push_back({"user", request.text});
  request.text = chat->render(messages);
  request.parse_special = true;
  if (!request.add_bos) request.add_bos = false;  // the template writes it itself
}
}  // namespace

void Input::add_source_to(Command& command) {
  const Option words = command
                           .add_option("--source", source,
                                       "Of an encoder-decoder: what its encoder reads; the text is then what its "
                                       "decoder has written so far, and may be left away")
                           .type_name("TEXT");
  const Option ids_of_source =
      command.add_option("--source-ids", source_ids, "The same as token ids, separated by commas")
          .delimiter(',')
          .excludes(words)
          .type_name("N,N,…");
  command
      .add_option("--sound", sound,
                  "What a model of speech (Whisper) reads in their place: a file of sound (FILE#t=SECONDS: from there "
                  "on), or builtin:tones; the text is then "
                  "what it has written so far")
      .excludes(words)
      .excludes(ids_of_source)
      .type_name("FILE");
}

void Input::add_to(Command& command, const Takes& takes) {
  const Option of_model =
      command
          .add_option(
              "-m,--model", model,
              "Model: a folder (Hugging Face layout or cache), a file (.gguf, .safetensors, .bin, .pt), or the name of "
              "a bundled one or of one in the cache (org/name); models lists them")
          .type_name("MODEL");
  add_adapter_to(command);
  add_source_to(command);
  if (takes.part)
    command
        .add_option("--part", part,
                    "Of an encoder-decoder: read its encoder's attention, its decoder's (the default), or that of the "
                    "target to the source")
        .check(one_of({"enc", "dec", "cross"}))
        .type_name("enc|dec|cross");
  Command texts = command.add_choice("text", "What to read (one of)");
  texts.add_option("-t,--text", text, "The text itself").type_name("TEXT");
  if (!command.strangers())
    texts
        .add_option("-f,--file", file,
                    "A UTF-8 text file, read as it is (a final newline is a token); - for standard input")
        .type_name("FILE");
  texts.add_option("--image", image, "A picture, PNG or JPEG, for models that read one (ViT, DeiT, CLIP)")
      .type_name("FILE");
  if (!command.strangers())
    texts.add_option("input", dash, "- reads the text from standard input")
        .check(words_of([](const std::string& word) { return word == "-"; },
                        "-, which reads standard input; a text goes behind --text"))
        .type_name("-");
  texts.add_option("--ids", ids, "Token ids, separated by commas").delimiter(',').type_name("N,N,…");
  std::optional<Option> of_trace;
  if (takes.trace)
    of_trace = texts
                   .add_option("--trace", trace,
                               "Instead of a model and a text: a trace file of `capture`, or attention that another "
                               "program captured (.npz, .npy, .safetensors)")
                   .excludes(of_model)
                   .type_name("FILE");
  const Option yes =
      command.add_flag("--bos", bos, "Put the beginning-of-sequence token in front (default: as the tokenizer says)");
  command.add_flag("--no-bos", no_bos, "Put nothing in front").excludes(yes);
  command.add_flag("--special", special, "Read special tokens such as <|endoftext|> in the text as tokens");
  command.add_flag("--chat", chat, "The text is what a user says: the model's chat template puts its marks around it");
  command.add_option("--system", system, "With --chat: what the model is told before").type_name("TEXT");
  command.add_option("--cut", cut, "Of a text longer than the model's context keep the first or the last part")
      .check(one_of({"first", "last"}))
      .type_name("first|last");

  std::vector<Option> of_edits;
  if (takes.short_edits) {
    of_edits.push_back(command
                           .add_option("--temperature", temperatures,
                                       "Divide the scores by τ before the softmax, of one head (1.0=0.5), a layer "
                                       "(1.*=0.5) or all (0.5); may be given again")
                           .type_name("[L.H=]τ"));
    of_edits.push_back(
        command
            .add_option("--mask", masks,
                        "Another mask for one head, a layer or all: window W, full, sink K window W, …; or "
                        "positions of tokens, 3,7, that an encoder is asked for: [MASK] stands there")
            .type_name("[L.H=]MASK"));
  }
  of_edits.push_back(command
                         .add_option("--edit", actions,
                                     "Any edit, \"WHERE: WHAT\", such as \"1.0: ablate zero\" or \"0.*@3..: pattern "
                                     "previous\"; a wrong one lists them all; may be given again")
                         .type_name("EDIT"));
  for (const Option& edit : of_edits) {
    edit.take_all();
    if (of_trace) edit.excludes(*of_trace);
  }
}

void Input::add_adapter_to(Command& command) {
  command
      .add_option(
          "--adapter", adapter,
          "Folder of a LoRA adapter of this model (peft's adapter_config.json beside adapter_model.safetensors)")
      .type_name("FOLDER");
}

bool Input::has_text() const {
  return !text.empty() || !file.empty() || !dash.empty() || !ids.empty() || !image.empty();
}

fs::path Input::model_folder() const {
  if (model.empty()) throw UsageError("--model is required");
  if (!adapter.empty()) {
    if (!is_adapter(adapter)) throw Error(adapter, "the folder of an adapter, with adapter_config.json", "none there");
    Input base = *this;
    base.adapter.clear();
    return with_adapter(base.model_folder(), adapter);
  }
  std::error_code ignored;
  if (!fs::exists(model, ignored) && fs::path(model).filename() == fs::path(model)) {
    if (const auto bundled = find_bundled_model(model)) return *bundled;
  }
  if (!fs::exists(model, ignored))
    if (const auto cached = find_in_cache(model)) return *cached;
  return model;
}

namespace {
/// "3,7": tokens to mask, not a mask of cells.
bool is_positions(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789,-") == std::string::npos;
}

std::vector<MaskedPosition> positions_in(const std::string& text) {
  std::vector<MaskedPosition> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    int position = 0;
    const auto [rest, failure] = std::from_chars(text.data() + at, text.data() + end, position);
    if (failure != std::errc() || rest != text.data() + end)
      throw UsageError("--mask: expected positions of tokens, such as 3,7, or a mask, found " + text);
    out.push_back({position, {}});
    at = end + 1;
  }
  return out;
}
}  // namespace

bool Input::masks_tokens() const {
  return std::ranges::any_of(masks, is_positions);
}

std::vector<Intervention> Input::edits() const {
  return understood([&] {
    std::vector<Intervention> result;
    for (const std::string& each : temperatures) result.push_back(parse_temperature_edit(each, "--temperature"));
    for (const std::string& each : masks)
      if (!is_positions(each)) result.push_back(parse_mask_edit(each, "--mask"));
    for (const std::string& each : actions) result.push_back(parse_intervention(each, "--edit"));
    return result;
  });
}

RunRequest Input::request() const {
  RunRequest request;
  std::string read;
  request.model = model_folder();
  if (!file.empty() && file != "-") {
    request.text = read = checked(read_input(file, text_limit), file);
  } else if (!dash.empty() || file == "-") {
    request.text = read = checked(standard_input(text_limit), "standard input");
  } else if (!image.empty()) {
    request.image = image;
  } else if (!ids.empty()) {
    request.ids = ids;
  } else {
    request.text = text;
    if (text.empty() && !has_source())
      throw UsageError("a text is required: --text, --file, - or --ids; or a picture: --image; or a sound: --sound");
  }
  if (!source.empty()) request.source = checked(source, "--source");
  request.source_ids = source_ids;
  request.sound = sound;
  if (bos || no_bos) request.add_bos = bos;
  request.parse_special = special;
  if (chat) {
    if (!request.ids.empty() || !request.image.empty()) throw UsageError("--chat takes a text, not --ids or --image");
    read_as_chat(request, system);
  } else if (!system.empty()) {
    throw UsageError("--system goes with --chat");
  }
  if (!cut.empty())
    request.too_long = cut == "first" ? RunRequest::TooLong::keep_first : RunRequest::TooLong::keep_last;
  for (const std::string& each : masks)
    if (is_positions(each)) std::ranges::copy(positions_in(each), std::back_inserter(request.masked));
  request.edits = edits();
  *asked = {request, read};
  return request;
}

std::string model_note_of(const Input& input, const Opened& opened) {
  return model_note_of(input, opened.trace->model.name);
}

std::string model_note_of(const Input& input, const std::string& model_name) {
  std::optional<Certificate> known;
  if (!input.from_trace()) known = CertificateStore(certificates_folder()).find(input.model_folder());
  return model_note(model_name, known ? &*known : nullptr);
}

Opened run_request(Console& console, LoadedModel loaded, const RunRequest& request) {
  Opened opened{std::move(loaded), nullptr};
  console.with_progress("forward pass", [&](const Ctx& ctx) { opened.trace = run(opened.loaded, request, ctx); });
  const Trace& trace = *opened.trace;
  console.weights = trace.model.dtype;
  for (const Stack stack : trace.stacks()) {
    const Trace& part = *trace.part(stack);
    const int positions = static_cast<int>(part.queries().size());
    for (const std::string& note : edit_notes(edits_of(request.edits, stack), part.model, positions))
      console.say("note: " + note);
  }
  for (const Intervention& edit : request.edits) {
    const bool of_source = trace.encoder && edit.target.stack == Stack::encoder;
    if (const auto pairs = edit_pairs(opened.loaded, request, of_source ? trace.encoder->ids() : trace.ids(), edit))
      console.say(
          fmt::format("{}\n  takes from the other text {}", describe(edit), stretches_of_pairs(pairs->partner)));
  }
  return opened;
}

std::shared_ptr<const Trace> part_of(std::shared_ptr<const Trace> trace, Stack part) {
  const Trace* const found = trace->part(part);
  if (found == trace.get()) return trace;
  if (found) return part == Stack::encoder ? trace->encoder : trace->cross;
  throw Error("--part " + std::string(name_in(stack_names, part)), "an encoder-decoder, or a trace of that part",
              trace->model.name + ", which has one stack");
}

Opened open_input(Console& console, const Input& input, const CaptureSpec& capture, bool times_words) {
  if (input.from_trace()) {
    if (input.has_text() || input.has_source()) throw UsageError("--trace holds its own text; give one or the other");
    auto trace = open_trace(input.trace, parse_described_rule);
    return {{}, part_of(std::move(trace), input.stack())};
  }
  RunRequest request = input.request();
  request.capture = capture;
  Opened opened = run_request(console, load_model(request.model, console.backend()), request);
  if (times_words) opened.spoken = spoken_words(*opened.trace, opened.loaded.target.get());
  opened.trace = part_of(std::move(opened.trace), input.stack());
  if (opened.trace->model.stack == Stack::encoder && opened.loaded.model->encoder())
    opened.loaded = opened.loaded.encoder();
  return opened;
}

}  // namespace headscope::cli

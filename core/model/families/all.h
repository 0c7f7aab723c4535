#pragma once
// Every family, in the order in which errors list them: a line each, and the file of its name in this folder.

#define HEADSCOPE_FAMILIES(X) \
  X(gpt2)                     \
  X(llama)                    \
  X(qwen2)                    \
  X(qwen3)                    \
  X(mistral)                  \
  X(gpt_neox)                 \
  X(gpt_neo)                  \
  X(gemma)                    \
  X(gemma2)                   \
  X(gemma3_text)              \
  X(phi)                      \
  X(phi3)                     \
  X(olmo)                     \
  X(olmo2)                    \
  X(olmo3)                    \
  X(smollm3)                  \
  X(stablelm)                 \
  X(opt)                      \
  X(bloom)                    \
  X(falcon)                   \
  X(gptj)                     \
  X(codegen)                  \
  X(mpt)                      \
  X(cohere)                   \
  X(granite)                  \
  X(gpt_bigcode)              \
  X(starcoder2)               \
  X(apertus)                  \
  X(deepseek_v2)              \
  X(deepseek_v3)              \
  X(mixtral)                  \
  X(qwen3_moe)                \
  X(olmoe)                    \
  X(gpt_oss)                  \
  X(bert)                     \
  X(distilbert)               \
  X(roberta)                  \
  X(xlm_roberta)              \
  X(modernbert)               \
  X(vit)                      \
  X(deit)                     \
  X(clip_vision_model)        \
  X(clip)                     \
  X(transformer_lens)

"""Of make_families.py: more models of pictures or sounds and text, of which the half that reads text is read."""

from decoder_cases import (TEXT_HALVES, clip_sees, deltas, growing, latent, llama_like, pixtral_sees, qwen_sees, rope,
                           siglip_sees, three, usual)

llama = llama_like | rope() | dict(model_type="llama", pad_token_id=0)
qwen2 = llama_like | rope() | dict(model_type="qwen2", pad_token_id=0)
qwen3 = qwen2 | dict(model_type="qwen3", head_dim=8, num_attention_heads=6, num_key_value_heads=2)
granite = llama_like | rope() | dict(
    embedding_multiplier=3.0, residual_multiplier=0.7, attention_multiplier=0.5, logits_scaling=1.7, pad_token_id=0)
glm_sees = dict(depth=1, hidden_size=8, num_heads=2, patch_size=2, spatial_merge_size=1, out_hidden_size=18,
                intermediate_size=5, image_size=4)
glm4v = llama_like | dict(hidden_size=24, pad_token_id=0, rope_parameters=dict(
    rope_type="default", rope_theta=90.0, partial_rotary_factor=0.5, mrope_section=[1, 1, 0]))
omni_hears = dict(d_model=8, encoder_layers=1, encoder_attention_heads=1, encoder_ffn_dim=8, num_mel_bins=4,
                  max_source_positions=4, n_window=2, output_dim=18)
omni3 = dict(
    vision_config=qwen_sees | dict(out_hidden_size=18, intermediate_size=5, num_position_embeddings=4,
                                   deepstack_visual_indexes=[0]),
    audio_config=omni_hears | dict(downsample_hidden_size=4),
    text_config=llama_like | three(100.0, [2, 1, 1], mrope_interleaved=True) | dict(
        num_hidden_layers=3, head_dim=8, num_attention_heads=6, num_key_value_heads=2, moe_intermediate_size=10,
        num_experts=5, num_experts_per_tok=2, mlp_only_layers=[1], norm_topk_prob=True))
omni2 = dict(
    vision_config=qwen_sees | dict(out_hidden_size=18, intermediate_size=5, fullatt_block_indexes=[0], window_size=4),
    audio_config=omni_hears, text_config=llama_like | three(90.0, [1, 1, 1]) | dict(
        num_hidden_layers=3, use_sliding_window=True, sliding_window=4, max_window_layers=1, tie_word_embeddings=False))
mel_hears = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, num_mel_bins=4)
sam_sees = dict(hidden_size=8, output_channels=4, num_hidden_layers=1, num_attention_heads=2, image_size=16,
                patch_size=4, window_size=2, global_attn_indexes=[0], mlp_dim=5)
blip_sees = dict(hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2, image_size=4, patch_size=2)
asks = dict(vocab_size=3, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=5,
            max_position_embeddings=3, encoder_hidden_size=8)
minicpm_sees = dict(hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2, image_size=4, patch_size=2,
                    insert_layer_id=0)
minicpm_reads = llama_like | deltas | dict(
    model_type="qwen3_5_text", num_hidden_layers=2, head_dim=8, num_attention_heads=6, num_key_value_heads=2,
    rms_norm_eps=0.03, layer_types=["linear_attention", "full_attention"], pad_token_id=0,
    rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.75, mrope_section=[2, 1, 0]))
speech = dict(
    audio_token_index=42, has_lora_adapter=False, encoder_config=dict(
        input_dim=4, num_layers=1, hidden_dim=8, num_heads=2, dim_head=4, output_dim=4, context_size=2, max_pos_emb=4,
        conv_kernel_size=3), projector_config=dict(
        model_type="blip_2_qformer", hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=5,
        encoder_hidden_size=8, vocab_size=3))
experts = dict(moe_intermediate_size=10, n_routed_experts=6, num_experts_per_tok=2, first_k_dense_replace=1, n_group=1,
               topk_group=1)

MORE_TEXT_HALVES = {
    # The first and the third of these layers look at pictures alone. As published.
    "mllama": ("MllamaConfig", dict(
        image_token_index=42, vision_config=dict(
            hidden_size=8, num_hidden_layers=1, num_global_layers=1, attention_heads=2, intermediate_size=5,
            vision_output_dim=16, image_size=4, patch_size=2, max_num_tiles=1, intermediate_layers_indices=[0],
            supported_aspect_ratios=[[1, 1]]),
        text_config=llama_like | rope(200.0) | dict(
            num_hidden_layers=5, cross_attention_layers=[0, 2], pad_token_id=0, rms_norm_eps=0.02))),
    # As published: beside what speaks, of which nothing stands here.
    "qwen2_5_omni": ("Qwen2_5OmniThinkerConfig", omni2),
    "qwen2_5_omni_thinker": ("Qwen2_5OmniThinkerConfig", omni2 | dict(
        tie_word_embeddings=True, text_config=llama_like | three(90.0, [2, 1, 0]) | dict(tie_word_embeddings=True))),
    "qwen3_omni_moe": ("Qwen3OmniMoeThinkerConfig", omni3),
    "qwen3_omni_moe_thinker": ("Qwen3OmniMoeThinkerConfig", omni3 | dict(
        text_config=omni3["text_config"] | dict(norm_topk_prob=False, attention_bias=True))),
    "lfm2_vl": ("Lfm2VlConfig", dict(
        image_token_id=42, projector_hidden_size=4, downsample_factor=1, vision_config=siglip_sees | dict(
            model_type="siglip2_vision_model", num_patches=4), text_config=usual | dict(
            model_type="lfm2", num_hidden_layers=4, hidden_size=18, num_attention_heads=3, num_key_value_heads=1,
            intermediate_size=25, block_multiple_of=4, norm_eps=0.03, pad_token_id=0,
            rope_parameters=dict(rope_type="default", rope_theta=100.0),
            layer_types=["conv", "full_attention", "conv", "full_attention"]))),
    "glm46v": ("Glm46VConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=glm_sees, text_config=glm4v | dict(head_dim=8))),
    # As published; the last layer predicts a token further on, and is no part of the decoder.
    "glm_ocr": ("GlmOcrConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=glm_sees, text_config=glm4v | dict(
            head_dim=12, rope_parameters=glm4v["rope_parameters"] | dict(mrope_section=[1, 1, 1])))),
    "glm4v_moe": ("Glm4vMoeConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=glm_sees, text_config=glm4v | experts | dict(
            head_dim=12, num_hidden_layers=3, n_shared_experts=2, routed_scaling_factor=1.5,
            rope_parameters=dict(rope_type="default", rope_theta=90.0, partial_rotary_factor=0.5,
                                 mrope_section=[1, 1, 1])))),
    # As published: tensors behind "language_model.model", a half by another name.
    "kimi_k25": ("Kimi_K25Config", dict(
        image_token_id=42, video_token_id=41, tie_word_embeddings=False, projection_hidden_size=8, vision_config=dict(
            patch_size=2, pos_emb_height=2, pos_emb_width=2, pos_emb_time=1, num_attention_heads=2, num_hidden_layers=1,
            hidden_size=8, intermediate_size=5),
        text_config=latent | rope() | experts | dict(
            model_type="deepseek_v3", num_hidden_layers=2, n_shared_experts=1, routed_scaling_factor=1.2,
            n_routed_experts=4))),
    "idefics2": ("Idefics2Config", dict(
        image_token_id=42, vision_config=siglip_sees | dict(model_type="idefics2_vision"), perceiver_config=dict(
            hidden_size=18, resampler_n_latents=2, resampler_depth=1, resampler_n_heads=2, resampler_head_dim=4,
            num_key_value_heads=1),
        text_config=llama | dict(model_type="mistral", head_dim=8, sliding_window=5))),
    "deepseek_vl": ("DeepseekVLConfig", dict(image_token_id=42, vision_config=siglip_sees, text_config=llama,
                                             tie_word_embeddings=False)),
    "deepseek_vl_hybrid": ("DeepseekVLHybridConfig", dict(
        image_token_id=42, vision_config=siglip_sees, high_res_vision_config=sam_sees | dict(
            model_type="sam_vision_model"), text_config=llama | dict(head_dim=6), tie_word_embeddings=False)),
    # No word of tied embeddings: they are.
    "janus": ("JanusConfig", dict(
        image_token_id=42, vision_config=dict(
            hidden_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=4, patch_size=2, projection_dim=18,
            num_image_tokens=4, mlp_ratio=1.0), vq_config=dict(
            num_embeddings=4, latent_channels=4, base_channels=32, channel_multiplier=[1, 1], num_res_blocks=1,
            num_patches=2, projection_dim=18, image_token_embed_dim=18, embed_dim=4), text_config=llama)),
    "ovis2": ("Ovis2Config", dict(
        image_token_id=42, visual_indicator_token_ids=[38, 39], hidden_size=18, vocab_size=43, vision_config=dict(
            hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2, image_size=4, patch_size=2,
            vocab_size=6, num_visual_indicator_tokens=2),
        text_config=qwen2)),
    # As published: keys beside each other, tensors not behind "language_model".
    "paddleocr_vl": ("PaddleOCRVLConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=siglip_sees | dict(
            model_type="paddleocr_vl_vision", spatial_merge_size=1, hidden_size=8),
        text_config=llama_like | three(90.0, [2, 1, 1]) | dict(head_dim=8, use_bias=True, pad_token_id=0))),
    # As published: tensors behind "language_model.model", experts of a layer in two of these.
    "aria": ("AriaConfig", dict(
        image_token_index=42, vision_config=siglip_sees | dict(model_type="idefics3_vision"),
        projector_patch_to_query_dict={1: 1}, text_config=llama_like | rope() | dict(
            moe_num_experts=5, moe_topk=2, moe_num_shared_experts=2, intermediate_size=6, pad_token_id=0,
            attention_bias=True))),
    "aria-today": ("AriaConfig", dict(
        image_token_index=42, vision_config=siglip_sees | dict(model_type="idefics3_vision"),
        projector_patch_to_query_dict={1: 1}, text_config=llama_like | rope() | dict(
            moe_num_experts=4, moe_topk=3, moe_num_shared_experts=1, intermediate_size=6, pad_token_id=0))),
    "video_llava": ("VideoLlavaConfig", dict(
        image_token_index=42, video_token_index=41, vision_config=clip_sees, text_config=llama)),
    "video_llama_3": ("VideoLlama3Config", dict(
        image_token_id=42, video_token_id=41, vision_config=dict(
            hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2, patch_size=2),
        text_config=qwen2 | dict(num_key_value_heads=3))),
    # As published: keys beside each other, an early rotation, tensors not behind "language_model".
    "hunyuan_vl": ("HunYuanVLConfig", dict(
        image_token_id=42, im_start_id=40, im_end_id=41, im_newline_id=39, vision_config=dict(
            hidden_size=8, intermediate_size=5, num_attention_heads=2, num_hidden_layers=1, out_hidden_size=18,
            text_hidden_size=18, patch_size=2, spatial_merge_size=1, img_max_token_num=4, max_image_size=4,
            min_image_size=2, max_vit_seq_len=4),
        text_config=llama_like | dict(
            head_dim=8, pad_token_id=0, rope_parameters=dict(
                rope_type="dynamic", rope_theta=100.0, alpha=3.0, factor=1.0, mrope_section=[1, 1, 1, 1])))),
    "exaone4_5": ("Exaone4_5_Config", dict(
        image_token_id=42, video_token_id=41, vision_config=qwen_sees | dict(
            out_hidden_size=18, intermediate_size=5, fullatt_block_indexes=[0], window_size=4, num_key_value_heads=2),
        text_config=llama_like | rope() | dict(
            model_type="exaone4", num_hidden_layers=3, sliding_window=5, head_dim=8, pad_token_id=0,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"]))),
    "fast_vlm": ("FastVlmConfig", dict(image_token_id=42, vision_config=siglip_sees, text_config=qwen2)),
    "perception_lm": ("PerceptionLMConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=siglip_sees | dict(model_args=dict(embed_dim=6)),
        text_config=llama | dict(rms_norm_eps=0.01))),
    # As published: tensors behind "text_model.model".
    "emu3": ("Emu3Config", dict(
        vocabulary_map={"<image>": 42}, vq_config=dict(
            codebook_size=4, embed_dim=2, latent_channels=2, base_channels=32, channel_multiplier=[1, 1],
            num_res_blocks=1, hidden_size=32, attn_resolutions=[], temporal_downsample_factor=1),
        text_config=llama_like | rope() | dict(pad_token_id=0, attention_dropout=0.0))),
    # As published: keys beside each other, tensors behind "language_model.model".
    "fuyu": ("FuyuConfig", dict(
        image_token_id=42, image_size=4, patch_size=2, text_config=usual | dict(
            model_type="persimmon", hidden_size=24, num_attention_heads=3, intermediate_size=20, qk_layernorm=True,
            rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5)))),
    # As published, and as today with norms behind and a rotation that not all layers stretch.
    "molmo2": ("Molmo2Config", dict(
        image_patch_id=42, vision_config=dict(
            hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
            head_dim=4, image_size=[4, 4], patch_size=2, num_position_embeddings=4), adapter_config=dict(
            vision_feature_layer=[0], hidden_size=8, num_attention_heads=2, num_key_value_heads=2, head_dim=4,
            intermediate_size=5, text_hidden_size=18),
        text_config=llama_like | rope() | dict(head_dim=8, attention_bias=True, rms_norm_eps=0.01))),
    "molmo2-today": ("Molmo2Config", dict(
        image_patch_id=42, vision_config=dict(
            hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
            head_dim=4, image_size=[4, 4], patch_size=2, num_position_embeddings=4), adapter_config=dict(
            vision_feature_layer=[0], hidden_size=8, num_attention_heads=2, num_key_value_heads=2, head_dim=4,
            intermediate_size=5, text_hidden_size=18),
        text_config=llama_like | dict(
            num_hidden_layers=3, head_dim=8, qk_norm_type="olmo", norm_after=True, rope_scaling_layers=[0, 2],
            rope_parameters=dict(rope_type="linear", rope_theta=100.0, factor=3.0)))),
    # The whole asks for a picture: what is given a text is the half.
    "blip_2": ("Blip2Config", dict(
        image_token_index=42, num_query_tokens=2, vision_config=blip_sees, qformer_config=asks, text_config=usual | dict(
            model_type="opt", hidden_size=18, num_attention_heads=3, ffn_dim=20, word_embed_proj_dim=18, pad_token_id=0))),
    "instructblip": ("InstructBlipConfig", dict(
        image_token_index=42, num_query_tokens=2, vision_config=blip_sees, qformer_config=asks, text_config=llama)),
    "glmga": ("GlmgaConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=glm_sees, text_config=glm4v | dict(
            head_dim=8, num_key_value_heads=3))),
    "pp_chart2table": ("PPChart2TableConfig", dict(
        image_token_index=42, vision_config=sam_sees, text_config=qwen2 | dict(num_key_value_heads=3))),
    "got_ocr2": ("GotOcr2Config", dict(
        image_token_index=42, vision_config=sam_sees, text_config=qwen2 | dict(tie_word_embeddings=True))),
    "lighton_ocr": ("LightOnOcrConfig", dict(
        image_token_id=42, vision_config=pixtral_sees, spatial_merge_size=1, text_config=qwen3)),
    # As published: tensors behind "language_model.model".
    "qianfan_ocr": ("QianfanOCRConfig", dict(
        image_token_id=42, vision_config=dict(
            hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2, image_size=[4, 4],
            patch_size=[2, 2]), text_config=qwen3 | dict(attention_bias=True))),
    # As published: tensors behind "model.language_model.model".
    "hyperclovax_vision_v2": ("HyperCLOVAXVisionV2Config", dict(
        image_token_id=42, video_token_id=41, tie_word_embeddings=False, vision_config=qwen_sees | dict(
            out_hidden_size=18, intermediate_size=5, fullatt_block_indexes=[0], window_size=4,
            model_type="qwen2_5_vl_vision"),
        text_config=granite | dict(model_type="hyperclovax", use_post_norm=True, head_dim=6))),
    "minicpmv4_6": ("MiniCPMV4_6Config", dict(
        image_token_id=42, video_token_id=41, insert_layer_id=0, vision_config=minicpm_sees, text_config=minicpm_reads | dict(
            num_hidden_layers=3, layer_types=["linear_attention", "full_attention", "linear_attention"]))),
    "minicpmv4_7": ("MiniCPMV4_7Config", dict(
        image_token_id=42, video_token_id=41, insert_layer_id=0, vision_config=minicpm_sees, text_config=minicpm_reads)),
    "minicpm_ocr": ("MiniCPMOcrConfig", dict(
        image_token_id=42, video_token_id=41, insert_layer_id=0, vision_config=minicpm_sees,
        text_config=minicpm_reads | dict(tie_word_embeddings=True))),
    "granite4_vision": ("Granite4VisionConfig", dict(
        image_token_index=42, vision_config=clip_sees | dict(hidden_size=64), downsample_rate="1/2",
        deepstack_layer_map=[[-1, 0]], qformer_config=dict(
            model_type="blip_2_qformer", num_hidden_layers=1, intermediate_size=5, vocab_size=3), text_config=granite | dict(attention_bias=True))),
    "granite_docling": ("GraniteDoclingConfig", dict(
        image_token_id=42, pad_token_id=0, vision_config=siglip_sees | dict(
            model_type="granite_docling_vision", image_size=8, patch_size=2, out_hidden_size=24, scale_factor=2,
            deepstack_visual_indexes=[0]),
        text_config=granite | dict(hidden_size=24, mlp_bias=True))),
    "phi4_multimodal": ("Phi4MultimodalConfig", llama_like | rope(partial_rotary_factor=0.75) | dict(
        hidden_size=24, num_attention_heads=3, sliding_window=6, pad_token_id=0, vision_config=dict(
            hidden_size=8, intermediate_size=5, num_hidden_layers=2, num_attention_heads=2, image_size=8, patch_size=2,
            crop_size=8, image_token_id=42), audio_config=dict(
            hidden_size=8, intermediate_size=5, num_blocks=2, num_attention_heads=2, ext_pw_out_channel=8,
            depthwise_separable_out_channel=8, input_size=8, nemo_conv_channels=8, audio_token_id=41))),
    # The library's class leaves out what Granite divides logits by: 1 here. As published.
    "granite_speech": ("GraniteSpeechConfig", speech | dict(
        text_config=granite | dict(model_type="granite", logits_scaling=1.0, tie_word_embeddings=True))),
    "granite_speech_plus": ("GraniteSpeechPlusConfig", speech | dict(
        text_config=granite | dict(model_type="granite", logits_scaling=1.0, attention_bias=True), tie_word_embeddings=False)),
    "musicflamingo": ("MusicFlamingoConfig", dict(
        audio_token_id=42, audio_bos_token_id=41, audio_eos_token_id=40, audio_config=mel_hears | dict(
            max_source_positions=4, model_type="audioflamingo3_encoder"),
        text_config=qwen2 | dict(num_key_value_heads=3))),
    "fun_asr_nano": ("FunAsrNanoConfig", dict(
        audio_token_id=42, adaptor_config=dict(hidden_size=20, num_attention_heads=2, intermediate_size=5,
                                               num_hidden_layers=1, projector_hidden_size=4),
        audio_config=dict(model_type="fun_asr_nano_encoder", num_mel_bins=4, hidden_size=8, num_attention_heads=2,
                          intermediate_size=5, num_hidden_layers=1, max_position_embeddings=4, num_stacked_frames=1,
                          num_timestamp_prediction_layers=1, fsmn_kernel_size=3),
        text_config=qwen3 | dict(hidden_size=20, tie_word_embeddings=True))),
    "moss_transcribe_diarize": ("MossTranscribeDiarizeConfig", dict(
        audio_token_id=42, tie_word_embeddings=False, audio_config=mel_hears | dict(
            max_source_positions=4, model_type="moss_transcribe_diarize_audio"), text_config=qwen3)),
    "audioflamingo3": ("AudioFlamingo3Config", dict(
        audio_token_id=42, audio_config=mel_hears | dict(max_source_positions=4, model_type="audioflamingo3_encoder"),
        text_config=qwen2)),
    "glmasr": ("GlmAsrConfig", dict(
        audio_token_id=42, tie_word_embeddings=False, audio_config=mel_hears | dict(
            max_position_embeddings=4, model_type="glmasr_encoder", num_attention_heads=2), text_config=llama)),
    "qwen3_asr": ("Qwen3ASRConfig", dict(
        audio_token_id=42, timestamp_token_id=41, pad_token_id=0, eos_token_id=2, audio_config=omni_hears | dict(
            model_type="qwen3_asr_encoder", downsample_hidden_size=4, max_position_embeddings=4), text_config=qwen3)),
    "vibevoice_asr": ("VibeVoiceAsrConfig", dict(
        audio_token_id=42, audio_bos_token_id=40, audio_eos_token_id=41, text_config=qwen2,
        **{part + "_tokenizer_encoder_config": dict(
            model_type="vibevoice_acoustic_tokenizer_encoder", hidden_size=4, num_filters=2, downsampling_ratios=[2],
            depths=[1, 1]) for part in ("acoustic", "semantic")})),
}
# Of the other half these hold what is small: files have it, and no pass reads it.
OTHER_HALF = 60

TEXT_HALVES |= MORE_TEXT_HALVES

"""What other projects call our settings, so that an unknown name can be answered with ours.

From nanoGPT, litgpt, Hugging Face's transformers and their kin.
"""

FOREIGN = {
    foreign: ours
    for ours, names in {
        "model.num_layers": "n_layer n_layers num_hidden_layers layers depth num_blocks",
        "model.num_heads": "n_head n_heads num_attention_heads heads",
        "model.embed_dim": "n_embd n_embed hidden_size d_model dim emb_dim width model_dim d_out",
        "model.context_length": "block_size n_ctx n_positions max_seq_len seq_len sequence_length "
        "max_position_embeddings seq_length max_seq_length context_size context ctx_len",
        "model.feed_forward_multiple": "d_ff intermediate_size n_inner mlp_ratio d_mlp ffn_dim",
        "model.activation": "activation_function act_fn hidden_act act",
        "model.positions": "position_embedding pos_emb position_encoding rope use_rope",
        "model.dropout": "drop_rate attn_pdrop resid_pdrop embd_pdrop attention_dropout p_dropout",
        "model.tie_embeddings": "tie_word_embeddings tie_weights weight_tying tied",
        "model.bias": "qkv_bias use_bias",
        "train.max_steps": "max_iters iters num_steps total_steps num_iterations steps epochs "
        "max_epochs num_epochs num_train_epochs n_steps iterations max_iterations train_steps",
        "train.batch_size": "micro_batch_size per_device_train_batch_size bs device_batch_size "
        "global_batch_size train_batch_size",
        "train.accumulate": "gradient_accumulation_steps grad_accum accumulate_grad_batches "
        "gradient_accumulation accumulation_steps grad_accum_steps",
        "train.learning_rate": "lr max_lr eta step_size",
        "train.min_learning_rate": "min_lr lr_min eta_min",
        "train.schedule": "lr_scheduler lr_scheduler_type scheduler decay_lr lr_schedule lr_decay",
        "train.warmup_steps": "warmup_iters lr_warmup_steps warmup warmup_ratio",
        "train.optimizer": "optim",
        "train.weight_decay": "wd",
        "train.beta1": "adam_beta1",
        "train.beta2": "adam_beta2",
        "train.grad_clip": "max_grad_norm clip gradient_clip_val max_norm grad_clip_norm",
        "train.eval_interval": "eval_steps eval_freq eval_iters eval_every eval_only val_interval",
        "train.save_interval": "save_steps always_save_checkpoint save_every checkpoint_interval",
        "train.log_interval": "logging_steps log_every log_freq",
        "train.patience": "early_stopping early_stopping_patience",
        "train.ema": "ema_decay",
        "train.keep": "save_total_limit",
        "train.max_minutes": "max_time time time_budget max_hours minutes",
        "data.path": "dataset data_dir text train_file data_path file input corpus train_data",
        "data.tokenizer": "tokenizer_name encoder vocab_type",
        "data.val_fraction": "val_size val_split validation_split val_ratio",
        "data.field": "text_field text_column text_key column json_key dataset_text_field",
        "data.encoding": "file_encoding charset",
        "init_from": "pretrained pretrained_model base_model from_pretrained model_name_or_path",
        "run_dir": "out_dir output_dir save_dir log_dir checkpoint_dir out name run_name",
        "precision": "dtype torch_dtype mixed_precision amp fp16 bf16",
        "compile": "torch_compile compile_model",
        "seed": "random_seed manual_seed",
        "device": "device_type accelerator gpu",
        "sample.max_new_tokens": "max_tokens max_length num_tokens_to_generate max_gen_len length",
        "sample.num_samples": "n num_return_sequences samples",
        "sample.prompt": "start",
        "sample.temperature": "temp",
        "log.tensorboard": "use_tensorboard tensorboard_log tb logger logger_name report_to",
        "log.wandb": "use_wandb wandb_log",
        "log.wandb_project": "project project_name",
    }.items()
    for foreign in names.split()
}

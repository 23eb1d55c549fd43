"""all-MiniLM-L6-v2 as a GGUF file: the float32 weights of a package, as llama.cpp wants them."""

import json
from pathlib import Path

import gguf
import numpy as np


def write_gguf(source: Path, target: Path) -> None:
    """Write the BERT network in folder ``source`` (its usual files) to the file ``target``."""
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    writer = gguf.GGUFWriter(target, "bert")
    _add_shape(writer, config)
    _add_words(writer, (source / "vocab.txt").read_text(encoding="utf-8").splitlines())
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
    for name, tensor in read_tensors(source / "model.safetensors").items():
        if renamed := names.get_name(name, try_suffixes=(".weight", ".bias")):
            writer.add_tensor(renamed, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: gguf.GGUFWriter, config: dict[str, int]) -> None:
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)


def _add_words(writer: gguf.GGUFWriter, words: list[str]) -> None:
    """Add a WordPiece vocabulary; llama.cpp marks the start of a word, not its continuation."""
    types, tokens = [], []
    for word in words:
        is_special = word.startswith("[") and word.endswith("]") and len(word) > 2
        types.append(gguf.TokenType.CONTROL if is_special else gguf.TokenType.NORMAL)
        tokens.append(word if is_special else word[2:] if word.startswith("##") else f"\u2581{word}")
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_type_count(2)
    writer.add_unk_token_id(words.index("[UNK]"))
    writer.add_sep_token_id(words.index("[SEP]"))
    writer.add_pad_token_id(words.index("[PAD]"))
    writer.add_bos_token_id(words.index("[CLS]"))
    writer.add_mask_token_id(words.index("[MASK]"))


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Return the float32 tensors of a safetensors file by name; others are left out."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:start]).items():
        if entry.get("dtype") == "F32":
            first, end = entry["data_offsets"]
            values = np.frombuffer(data, "<f4", (end - first) // 4, start + first)
            found[name] = values.reshape(entry["shape"])
    return found

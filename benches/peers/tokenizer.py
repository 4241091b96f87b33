"""Makes a small byte-level BPE tokenizer, so that load generators that insist on one need no network.

usage: tokenizer.py FOLDER CORPUS

FOLDER/tok has the files, and FOLDER/hf is a cache that holds them as the model `local/tok`, for
programs that only look up names there (HF_HOME=FOLDER/hf). It promises valid tokens and nothing
about how many: what is compared is when requests arrive.
"""

import json
import pathlib
import shutil
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

folder, corpus = pathlib.Path(sys.argv[1]), sys.argv[2]
out = folder / "tok"
out.mkdir(parents=True, exist_ok=True)
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(
    vocab_size=2048,
    special_tokens=["<|endoftext|>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    show_progress=False,
)
tokenizer.train([corpus], trainer)
tokenizer.save(str(out / "tokenizer.json"))
config = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "eos_token": "<|endoftext|>",
    "model_max_length": 1000000,
    "clean_up_tokenization_spaces": False,
}
(out / "tokenizer_config.json").write_text(json.dumps(config))
(out / "special_tokens_map.json").write_text(json.dumps({"eos_token": "<|endoftext|>"}))
(out / "config.json").write_text('{"model_type": "gpt2"}')

revision = "0" * 39 + "1"
home = folder / "hf" / "hub" / "models--local--tok"
(home / "snapshots" / revision).mkdir(parents=True, exist_ok=True)
(home / "refs").mkdir(exist_ok=True)
for file in out.iterdir():
    shutil.copy(file, home / "snapshots" / revision / file.name)
(home / "refs" / "main").write_text(revision)

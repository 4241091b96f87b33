#!/usr/bin/env bash
# GuideLLM at a constant rate; benches/peers/README.md has the arguments.
. "$(dirname "$0")/prepare.sh"
need guidellm "pip install guidellm"
make_tokenizer
"${BIN}guidellm" benchmark --target "$URL" --model bench --processor "$TOKENIZER" \
    --rate-type constant --rate "$RATE" --max-requests "$COUNT" \
    --data "prompt_tokens=$INPUT,output_tokens=$OUTPUT" --output-path "$FOLDER/guidellm.json"

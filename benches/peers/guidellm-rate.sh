#!/usr/bin/env bash
# GuideLLM at a constant rate, without a trace; benches/peers/README.md has the arguments.
. "$(dirname "$0")/prepare.sh"
need guidellm "pip install guidellm==0.8.1"
make_tokenizer
"${BIN}guidellm" run --disable-console-interactive \
    --backend kind=openai_http,target="$URL",model=bench \
    --profile kind=constant,rate="$RATE" \
    --data kind=synthetic_text,prompt_tokens="$INPUT",output_tokens="$OUTPUT" \
    --tokenizer kind=huggingface_auto,model="$TOKENIZER" \
    --constraint kind=max_requests,count="$COUNT" \
    --output kind=json,path="$FOLDER/guidellm.json"
# Beyond what it can send it loses count of a few that were answered; the server knows better.
the_report_says "$FOLDER/guidellm.json" benchmarks.0.metrics.request_totals.errored 0

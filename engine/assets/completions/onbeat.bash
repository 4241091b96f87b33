_onbeat() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="onbeat"
                ;;
            onbeat,compare)
                cmd="onbeat__subcmd__compare"
                ;;
            onbeat,completions)
                cmd="onbeat__subcmd__completions"
                ;;
            onbeat,demo)
                cmd="onbeat__subcmd__demo"
                ;;
            onbeat,doctor)
                cmd="onbeat__subcmd__doctor"
                ;;
            onbeat,export)
                cmd="onbeat__subcmd__export"
                ;;
            onbeat,help)
                cmd="onbeat__subcmd__help"
                ;;
            onbeat,inspect)
                cmd="onbeat__subcmd__inspect"
                ;;
            onbeat,man)
                cmd="onbeat__subcmd__man"
                ;;
            onbeat,merge)
                cmd="onbeat__subcmd__merge"
                ;;
            onbeat,mock)
                cmd="onbeat__subcmd__mock"
                ;;
            onbeat,plan)
                cmd="onbeat__subcmd__plan"
                ;;
            onbeat,profile)
                cmd="onbeat__subcmd__replay"
                ;;
            onbeat,reference)
                cmd="onbeat__subcmd__reference"
                ;;
            onbeat,replay)
                cmd="onbeat__subcmd__replay"
                ;;
            onbeat,report)
                cmd="onbeat__subcmd__report"
                ;;
            onbeat__subcmd__help,compare)
                cmd="onbeat__subcmd__help__subcmd__compare"
                ;;
            onbeat__subcmd__help,completions)
                cmd="onbeat__subcmd__help__subcmd__completions"
                ;;
            onbeat__subcmd__help,demo)
                cmd="onbeat__subcmd__help__subcmd__demo"
                ;;
            onbeat__subcmd__help,doctor)
                cmd="onbeat__subcmd__help__subcmd__doctor"
                ;;
            onbeat__subcmd__help,export)
                cmd="onbeat__subcmd__help__subcmd__export"
                ;;
            onbeat__subcmd__help,help)
                cmd="onbeat__subcmd__help__subcmd__help"
                ;;
            onbeat__subcmd__help,inspect)
                cmd="onbeat__subcmd__help__subcmd__inspect"
                ;;
            onbeat__subcmd__help,man)
                cmd="onbeat__subcmd__help__subcmd__man"
                ;;
            onbeat__subcmd__help,merge)
                cmd="onbeat__subcmd__help__subcmd__merge"
                ;;
            onbeat__subcmd__help,mock)
                cmd="onbeat__subcmd__help__subcmd__mock"
                ;;
            onbeat__subcmd__help,plan)
                cmd="onbeat__subcmd__help__subcmd__plan"
                ;;
            onbeat__subcmd__help,reference)
                cmd="onbeat__subcmd__help__subcmd__reference"
                ;;
            onbeat__subcmd__help,replay)
                cmd="onbeat__subcmd__help__subcmd__replay"
                ;;
            onbeat__subcmd__help,report)
                cmd="onbeat__subcmd__help__subcmd__report"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        onbeat)
            opts="-h -V --help --version replay profile plan inspect report compare export merge doctor mock demo completions man reference help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__compare)
            opts="-v -h --format --max-lateness-us --verbose --goodput --slo-ttft --slo-decode-tps --fail-on --accept-not-held --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json markdown" -- "${cur}"))
                    return 0
                    ;;
                --max-lateness-us)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --goodput)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slo-ttft)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slo-decode-tps)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fail-on)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__completions)
            opts="-h --help bash elvish fish powershell zsh"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__demo)
            opts="-o -h --output --ui --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ui)
                    COMPREPLY=($(compgen -W "auto simple none" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__doctor)
            opts="-h --cores --format --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --cores)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__export)
            opts="-o -h --as --format --table --partition-by --recorded-text --output --force --range --goodput --slo-ttft --slo-decode-tps --slice-duration --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --as)
                    COMPREPLY=($(compgen -W "aiperf vllm-bench kv-cache-tester hdr chrome-trace" -- "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "csv parquet jsonl" -- "${cur}"))
                    return 0
                    ;;
                --table)
                    COMPREPLY=($(compgen -W "requests chunks scraped" -- "${cur}"))
                    return 0
                    ;;
                --partition-by)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --recorded-text)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --range)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --goodput)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slo-ttft)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slo-decode-tps)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slice-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help)
            opts="replay plan inspect report compare export merge doctor mock demo completions man reference help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__compare)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__completions)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__demo)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__doctor)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__export)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__inspect)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__man)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__merge)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__mock)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__plan)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__reference)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__replay)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__help__subcmd__report)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__inspect)
            opts="-h --input-file --trace-directory --custom-dataset-type --prompt-input-tokens-block-size --isl-block-size --lenient --session-key --format --cache-tokens --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --input-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-directory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --custom-dataset-type)
                    COMPREPLY=($(compgen -W "bailian_trace mooncake_trace baseten_trace raw_payload azure_csv burst_gpt_trace agentic ragpulse otel" -- "${cur}"))
                    return 0
                    ;;
                --isl-block-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prompt-input-tokens-block-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --session-key)
                    COMPREPLY=($(compgen -W "auto provided poor-man none" -- "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --cache-tokens)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__man)
            opts="-h --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__merge)
            opts="-o -h --output --allow-missing --force --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__mock)
            opts="-h --host --port --threads --model --strict-model --seed --prefill-rate --overhead-ms --step-ms --sequence-ms --step-tokens --jitter --running --queue --context --block-size --cache-tokens --template-tokens --default-max-tokens --early-stop --tokens-per-event --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --model)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefill-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --overhead-ms)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --step-ms)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sequence-ms)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --step-tokens)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jitter)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --running)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --queue)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --context)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --block-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache-tokens)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --template-tokens)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --default-max-tokens)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --early-stop)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tokens-per-event)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__plan)
            opts="-m -H -o -v -u -h --input-file --trace-directory --custom-dataset-type --prompt-input-tokens-block-size --isl-block-size --lenient --session-key --replay-speedup --fixed-schedule-start-offset --fixed-schedule-end-offset --fixed-schedule-auto-offset --fixed-schedule --no-fixed-schedule --request-rate --request-rate-mode --arrival-pattern --vllm-burstiness --arrival-smoothness --max-idle-gap-cap-seconds --trace-session-sample-ratio --synthesis-max-isl --max-isl --synthesis-max-osl --max-osl --synthesis-speedup-ratio --synthesis-prefix-len-multiplier --synthesis-prefix-root-multiplier --synthesis-prompt-len-multiplier --synthesis-output-len-multiplier --force-min-tokens --no-force-min-tokens --benchmark-duration --num-requests --num-prompts --request-count --tile --open-loop-replay --no-open-loop-replay --inter-turn-delay-cap-seconds --open-loop-strict --request-cancellation-rate --request-cancellation-delay --replay-cancellations --model-names --model --endpoint-type --custom-endpoint --endpoint --streaming --no-streaming --no-include-usage --per-chunk-usage --use-legacy-max-tokens --extra-inputs --omit-kv-hints --context-mode --header --session-header --api-key --api-key-file --random-seed --seed --render --render-budget --render-threads --temperature --top-p --top-k --repetition-penalty --shard --cores --pacing --num-warmup-requests --num-warmups --warmup-request-count --lock-memory --realtime --numa-local --drain-seconds --stop-after-failures --output --output-dir --artifact-dir --force --max-lateness-us --failed-request-threshold --verbose --ui-type --ui --goodput --slo-ttft --slo-decode-tps --prometheus-port --prometheus-address --prometheus-linger-seconds --scrape --scrape-interval --server-metrics --no-server-metrics --start-at --max-clock-error --tokenizer --tokenizer-revision --tokenizer-trust-remote-code --use-server-token-count --max-workers --workers-max --record-processors --record-processor-service-count --prompt-corpus --dataset-sampling-strategy --benchmark-grace-period --gpu-telemetry --no-gpu-telemetry --export-http-trace --profile-export-file --profile-export-prefix --profile-export-level --export-level --start-users --max-users --recycle --min-requests --max-context --advance-min --advance-max --advance-all-users --trace-seed --prompt-seed --timing-strategy --max-delay --time-scale --api-time-scale --clamp-think-time --no-clamp-think-time --test-duration --reply-mode --async-subagents --stream-all --tool-role --warm-prefix-pct --chunk-size --max-concurrent-requests --max-prefill-concurrent --max-decode-concurrent --itpm-budget --otpm-budget --enable-request-rate-limiting --max-consecutive-errors --circuit-breaker-window --rate-limit-backoff --fairness-window --max-ttft --ttft-metric --min-output-tokens-per-req --assessment-period --ramp --ttft-window --max-new-tokens-per-period --max-working-set-tokens --cache-max-age --resume --skip-graphs --no-color --api-endpoint --base-url --url --url-strategy --ready-check-timeout-sec --wait-for-model-timeout --wait-for-model-mode --wait-for-model-interval --connection-reuse-strategy --unix-socket --local-address --cacert --cert --key --insecure --connect-timeout-seconds --first-byte-timeout-seconds --idle-timeout-seconds --request-timeout-seconds --warm-connections --max-connections --max-concurrency --concurrency --driver --bodies --limit --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --input-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-directory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --custom-dataset-type)
                    COMPREPLY=($(compgen -W "bailian_trace mooncake_trace baseten_trace raw_payload azure_csv burst_gpt_trace agentic ragpulse otel" -- "${cur}"))
                    return 0
                    ;;
                --isl-block-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prompt-input-tokens-block-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --session-key)
                    COMPREPLY=($(compgen -W "auto provided poor-man none" -- "${cur}"))
                    return 0
                    ;;
                --replay-speedup)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fixed-schedule-start-offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fixed-schedule-end-offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arrival-pattern)
                    COMPREPLY=($(compgen -W "constant poisson gamma" -- "${cur}"))
                    return 0
                    ;;
                --request-rate-mode)
                    COMPREPLY=($(compgen -W "constant poisson gamma" -- "${cur}"))
                    return 0
                    ;;
                --arrival-smoothness)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --vllm-burstiness)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-idle-gap-cap-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-session-sample-ratio)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-isl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-max-isl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-osl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-max-osl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-speedup-ratio)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-prefix-len-multiplier)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-prefix-root-multiplier)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-prompt-len-multiplier)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-output-len-multiplier)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --benchmark-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --num-requests)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --num-prompts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --inter-turn-delay-cap-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-cancellation-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-cancellation-delay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --model)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --model-names)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -m)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --endpoint-type)
                    COMPREPLY=($(compgen -W "chat completions" -- "${cur}"))
                    return 0
                    ;;
                --endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --custom-endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --extra-inputs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --context-mode)
                    COMPREPLY=($(compgen -W "message_array_with_responses deltas_with_responses deltas_without_responses" -- "${cur}"))
                    return 0
                    ;;
                --header)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -H)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --session-header)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --random-seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --render)
                    COMPREPLY=($(compgen -W "auto all ahead" -- "${cur}"))
                    return 0
                    ;;
                --render-budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --render-threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --temperature)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --top-p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --top-k)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repetition-penalty)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shard)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cores)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pacing)
                    COMPREPLY=($(compgen -W "spin hybrid sleep" -- "${cur}"))
                    return 0
                    ;;
                --warmup-request-count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --num-warmup-requests)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --num-warmups)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stop-after-failures)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --artifact-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-lateness-us)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --failed-request-threshold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ui)
                    COMPREPLY=($(compgen -W "auto simple none" -- "${cur}"))
                    return 0
                    ;;
                --ui-type)
                    COMPREPLY=($(compgen -W "auto simple none" -- "${cur}"))
                    return 0
                    ;;
                --goodput)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slo-ttft)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slo-decode-tps)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prometheus-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prometheus-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prometheus-linger-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scrape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scrape-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-metrics)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --start-at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-clock-error)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tokenizer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tokenizer-revision)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --workers-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --record-processor-service-count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --record-processors)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prompt-corpus)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dataset-sampling-strategy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --benchmark-grace-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gpu-telemetry)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile-export-prefix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile-export-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --export-level)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile-export-level)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --start-users)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-users)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-requests)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-context)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --advance-min)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --advance-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prompt-seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timing-strategy)
                    COMPREPLY=($(compgen -W "think-only original api-scaled" -- "${cur}"))
                    return 0
                    ;;
                --max-delay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --time-scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-time-scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --test-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reply-mode)
                    COMPREPLY=($(compgen -W "live recorded" -- "${cur}"))
                    return 0
                    ;;
                --async-subagents)
                    COMPREPLY=($(compgen -W "wait detach" -- "${cur}"))
                    return 0
                    ;;
                --warm-prefix-pct)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --chunk-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-concurrent-requests)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-prefill-concurrent)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-decode-concurrent)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --itpm-budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --otpm-budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-consecutive-errors)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --circuit-breaker-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit-backoff)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fairness-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-ttft)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ttft-metric)
                    COMPREPLY=($(compgen -W "max avg p95" -- "${cur}"))
                    return 0
                    ;;
                --min-output-tokens-per-req)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --assessment-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ramp)
                    COMPREPLY=($(compgen -W "documented rolling" -- "${cur}"))
                    return 0
                    ;;
                --ttft-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-new-tokens-per-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-working-set-tokens)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache-max-age)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --resume)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --base-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -u)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url-strategy)
                    COMPREPLY=($(compgen -W "round_robin" -- "${cur}"))
                    return 0
                    ;;
                --wait-for-model-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ready-check-timeout-sec)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-for-model-mode)
                    COMPREPLY=($(compgen -W "models inference both" -- "${cur}"))
                    return 0
                    ;;
                --wait-for-model-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --connection-reuse-strategy)
                    COMPREPLY=($(compgen -W "pooled never sticky-user-sessions" -- "${cur}"))
                    return 0
                    ;;
                --unix-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --local-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cacert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --connect-timeout-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --first-byte-timeout-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --idle-timeout-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeout-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --warm-connections)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-connections)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --concurrency)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-concurrency)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --driver)
                    COMPREPLY=($(compgen -W "auto io_uring epoll" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__reference)
            opts="-h --help flags columns queries plan-schema report-schema compare-schema manifest-schema"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__replay)
            opts="-u -m -H -o -v -h --input-file --trace-directory --custom-dataset-type --prompt-input-tokens-block-size --isl-block-size --lenient --session-key --replay-speedup --fixed-schedule-start-offset --fixed-schedule-end-offset --fixed-schedule-auto-offset --fixed-schedule --no-fixed-schedule --request-rate --request-rate-mode --arrival-pattern --vllm-burstiness --arrival-smoothness --max-idle-gap-cap-seconds --trace-session-sample-ratio --synthesis-max-isl --max-isl --synthesis-max-osl --max-osl --synthesis-speedup-ratio --synthesis-prefix-len-multiplier --synthesis-prefix-root-multiplier --synthesis-prompt-len-multiplier --synthesis-output-len-multiplier --force-min-tokens --no-force-min-tokens --benchmark-duration --num-requests --num-prompts --request-count --tile --open-loop-replay --no-open-loop-replay --inter-turn-delay-cap-seconds --open-loop-strict --request-cancellation-rate --request-cancellation-delay --replay-cancellations --start-users --max-users --recycle --min-requests --max-context --advance-min --advance-max --advance-all-users --trace-seed --prompt-seed --timing-strategy --max-delay --time-scale --api-time-scale --clamp-think-time --no-clamp-think-time --test-duration --reply-mode --async-subagents --stream-all --tool-role --warm-prefix-pct --chunk-size --max-concurrent-requests --max-prefill-concurrent --max-decode-concurrent --itpm-budget --otpm-budget --enable-request-rate-limiting --max-consecutive-errors --circuit-breaker-window --rate-limit-backoff --fairness-window --max-ttft --ttft-metric --min-output-tokens-per-req --assessment-period --ramp --ttft-window --max-new-tokens-per-period --max-working-set-tokens --cache-max-age --resume --skip-graphs --no-color --api-endpoint --base-url --url --url-strategy --ready-check-timeout-sec --wait-for-model-timeout --wait-for-model-mode --wait-for-model-interval --connection-reuse-strategy --unix-socket --local-address --cacert --cert --key --insecure --connect-timeout-seconds --first-byte-timeout-seconds --idle-timeout-seconds --request-timeout-seconds --warm-connections --max-connections --max-concurrency --concurrency --driver --model-names --model --endpoint-type --custom-endpoint --endpoint --streaming --no-streaming --no-include-usage --per-chunk-usage --use-legacy-max-tokens --extra-inputs --omit-kv-hints --context-mode --header --session-header --api-key --api-key-file --random-seed --seed --render --render-budget --render-threads --temperature --top-p --top-k --repetition-penalty --tokenizer --tokenizer-revision --tokenizer-trust-remote-code --use-server-token-count --max-workers --workers-max --record-processors --record-processor-service-count --prompt-corpus --dataset-sampling-strategy --benchmark-grace-period --gpu-telemetry --no-gpu-telemetry --export-http-trace --profile-export-file --profile-export-prefix --profile-export-level --export-level --cores --pacing --num-warmup-requests --num-warmups --warmup-request-count --lock-memory --realtime --numa-local --drain-seconds --stop-after-failures --output --output-dir --artifact-dir --force --max-lateness-us --failed-request-threshold --verbose --ui-type --ui --prometheus-port --prometheus-address --prometheus-linger-seconds --scrape --scrape-interval --server-metrics --no-server-metrics --shard --start-at --max-clock-error --goodput --slo-ttft --slo-decode-tps --slice-duration --fail-on --accept-not-held --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --input-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-directory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --custom-dataset-type)
                    COMPREPLY=($(compgen -W "bailian_trace mooncake_trace baseten_trace raw_payload azure_csv burst_gpt_trace agentic ragpulse otel" -- "${cur}"))
                    return 0
                    ;;
                --isl-block-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prompt-input-tokens-block-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --session-key)
                    COMPREPLY=($(compgen -W "auto provided poor-man none" -- "${cur}"))
                    return 0
                    ;;
                --replay-speedup)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fixed-schedule-start-offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fixed-schedule-end-offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arrival-pattern)
                    COMPREPLY=($(compgen -W "constant poisson gamma" -- "${cur}"))
                    return 0
                    ;;
                --request-rate-mode)
                    COMPREPLY=($(compgen -W "constant poisson gamma" -- "${cur}"))
                    return 0
                    ;;
                --arrival-smoothness)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --vllm-burstiness)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-idle-gap-cap-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-session-sample-ratio)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-isl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-max-isl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-osl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-max-osl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-speedup-ratio)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-prefix-len-multiplier)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-prefix-root-multiplier)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-prompt-len-multiplier)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --synthesis-output-len-multiplier)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --benchmark-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --num-requests)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --num-prompts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --inter-turn-delay-cap-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-cancellation-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-cancellation-delay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --start-users)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-users)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-requests)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-context)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --advance-min)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --advance-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prompt-seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timing-strategy)
                    COMPREPLY=($(compgen -W "think-only original api-scaled" -- "${cur}"))
                    return 0
                    ;;
                --max-delay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --time-scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-time-scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --test-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reply-mode)
                    COMPREPLY=($(compgen -W "live recorded" -- "${cur}"))
                    return 0
                    ;;
                --async-subagents)
                    COMPREPLY=($(compgen -W "wait detach" -- "${cur}"))
                    return 0
                    ;;
                --warm-prefix-pct)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --chunk-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-concurrent-requests)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-prefill-concurrent)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-decode-concurrent)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --itpm-budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --otpm-budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-consecutive-errors)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --circuit-breaker-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit-backoff)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fairness-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-ttft)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ttft-metric)
                    COMPREPLY=($(compgen -W "max avg p95" -- "${cur}"))
                    return 0
                    ;;
                --min-output-tokens-per-req)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --assessment-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ramp)
                    COMPREPLY=($(compgen -W "documented rolling" -- "${cur}"))
                    return 0
                    ;;
                --ttft-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-new-tokens-per-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-working-set-tokens)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache-max-age)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --resume)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --base-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -u)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url-strategy)
                    COMPREPLY=($(compgen -W "round_robin" -- "${cur}"))
                    return 0
                    ;;
                --wait-for-model-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ready-check-timeout-sec)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-for-model-mode)
                    COMPREPLY=($(compgen -W "models inference both" -- "${cur}"))
                    return 0
                    ;;
                --wait-for-model-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --connection-reuse-strategy)
                    COMPREPLY=($(compgen -W "pooled never sticky-user-sessions" -- "${cur}"))
                    return 0
                    ;;
                --unix-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --local-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cacert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --connect-timeout-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --first-byte-timeout-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --idle-timeout-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeout-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --warm-connections)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-connections)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --concurrency)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-concurrency)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --driver)
                    COMPREPLY=($(compgen -W "auto io_uring epoll" -- "${cur}"))
                    return 0
                    ;;
                --model)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --model-names)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -m)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --endpoint-type)
                    COMPREPLY=($(compgen -W "chat completions" -- "${cur}"))
                    return 0
                    ;;
                --endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --custom-endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --extra-inputs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --context-mode)
                    COMPREPLY=($(compgen -W "message_array_with_responses deltas_with_responses deltas_without_responses" -- "${cur}"))
                    return 0
                    ;;
                --header)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -H)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --session-header)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --random-seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --render)
                    COMPREPLY=($(compgen -W "auto all ahead" -- "${cur}"))
                    return 0
                    ;;
                --render-budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --render-threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --temperature)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --top-p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --top-k)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repetition-penalty)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tokenizer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tokenizer-revision)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --workers-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --record-processor-service-count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --record-processors)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prompt-corpus)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dataset-sampling-strategy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --benchmark-grace-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gpu-telemetry)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile-export-prefix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile-export-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --export-level)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile-export-level)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cores)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pacing)
                    COMPREPLY=($(compgen -W "spin hybrid sleep" -- "${cur}"))
                    return 0
                    ;;
                --warmup-request-count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --num-warmup-requests)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --num-warmups)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stop-after-failures)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --artifact-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-lateness-us)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --failed-request-threshold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ui)
                    COMPREPLY=($(compgen -W "auto simple none" -- "${cur}"))
                    return 0
                    ;;
                --ui-type)
                    COMPREPLY=($(compgen -W "auto simple none" -- "${cur}"))
                    return 0
                    ;;
                --prometheus-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prometheus-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prometheus-linger-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scrape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scrape-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-metrics)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shard)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --start-at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-clock-error)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --goodput)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slo-ttft)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slo-decode-tps)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slice-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fail-on)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        onbeat__subcmd__report)
            opts="-v -h --format --html --force --max-lateness-us --verbose --goodput --slo-ttft --slo-decode-tps --slice-duration --fail-on --accept-not-held --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json html markdown" -- "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-lateness-us)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --goodput)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slo-ttft)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slo-decode-tps)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slice-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fail-on)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _onbeat -o nosort -o bashdefault -o default onbeat
else
    complete -F _onbeat -o bashdefault -o default onbeat
fi

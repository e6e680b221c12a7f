# Completion of `cairn` for bash:  source <(cairn completion bash)

_cairn_options() {
    case $1 in
@options@
    esac
}

_cairn() {
    # The line itself, since bash takes the words of hdfs://host:port apart.
    local line=${COMP_LINE:0:COMP_POINT} words word found='' verb='' paths=0 index
    local -a fs=()
    read -ra words <<< "$line"
    if [[ $line == *[[:space:]] ]]; then words+=(''); fi
    word=${words[-1]}
    COMPREPLY=()

    if (( ${#words[@]} == 2 )); then
        found=$(compgen -W '@commands@' -- "$word")
    else case ${words[1]} in
@others@
        fs)
            for (( index = 2; index < ${#words[@]} - 1; index++ )); do
                case ${words[index]} in
                    --fs | -fs) fs=(--fs "${words[index + 1]}"); (( index++ )) ;;
                    --*) ;;
                    *) if [[ -z $verb ]]; then verb=${words[index]#-}
                       elif [[ ${words[index]} != -* ]]; then (( paths++ )); fi ;;
                esac
            done
            if [[ -z $verb ]]; then
                if [[ $word == -[a-z]* ]]; then
                    found=$(compgen -P - -W '@verbs@' -- "${word#-}")
                else
                    found=$(compgen -W '@verbs@ --fs --json' -- "$word")
                fi
            elif [[ $word == -* ]]; then
                found=$(compgen -W "$(_cairn_options "$verb")" -- "$word")
            elif [[ $verb == help || $verb == usage ]]; then
                found=$(compgen -W '@verbs@' -- "$word")
            else
                case $verb in
                    @local_verbs@)
                        compopt -o filenames
                        found=$(compgen -f -- "$word") ;;
                    *) paths=1 ;;
                esac
                if (( paths )); then
                    compopt +o filenames
                    found+=$'\n'$(cairn complete "${fs[@]}" -- "$word" 2> /dev/null)
                fi
                case $verb in get | copyToLocal | getmerge) found+=$'\n'$(compgen -f -- "$word") ;; esac
            fi ;;
    esac; fi

    # What stands before the last colon is on the line already, for bash.
    local before=${word%"${word##*:}"} each
    while IFS= read -r each; do
        [[ -n $each ]] && COMPREPLY+=("${each#"$before"}")
    done <<< "$found"
    if (( ${#COMPREPLY[@]} == 1 )) && [[ ${COMPREPLY[0]} == */ ]]; then compopt -o nospace; fi
}

complete -F _cairn cairn

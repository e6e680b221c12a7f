#compdef cairn
# Completion of `cairn` for zsh:  source <(cairn completion zsh)

_cairn_options() {
    case $1 in
@options@
    esac
}

_cairn_paths() {
    local -a found
    found=(${(f)"$(cairn complete $fs -- "$PREFIX" 2> /dev/null)"})
    compadd -S '' -- ${(M)found:#*/}
    compadd -- ${found:#*/}
}

_cairn() {
    local -a commands verbs fs
    local verb='' paths=0 index
    commands=(
@commands@
    )
    verbs=(
@verbs@
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    case $words[2] in
@others@
        fs)
            for (( index = 3; index < CURRENT; index++ )); do
                case $words[index] in
                    --fs | -fs) fs=(--fs $words[index+1]); (( index++ )) ;;
                    --*) ;;
                    *) if [[ -z $verb ]]; then verb=${words[index]#-}
                       elif [[ $words[index] != -* ]]; then (( paths++ )); fi ;;
                esac
            done
            if [[ -z $verb ]]; then
                _describe verb verbs
                compadd -- --fs --json -${^verbs%%:*}
            elif [[ $PREFIX == -* ]]; then
                compadd -- $(_cairn_options $verb)
            elif [[ $verb == help || $verb == usage ]]; then
                _describe verb verbs
            else
                case $verb in
                    @local_verbs@) _files; (( paths )) && _cairn_paths ;;
                    get | copyToLocal | getmerge) _cairn_paths; (( paths )) && _files ;;
                    *) _cairn_paths ;;
                esac
            fi ;;
    esac
}

compdef _cairn cairn

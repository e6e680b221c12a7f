# Completion of `cairn` for fish:  cairn completion fish | source

function __cairn_verb
    # The verb of `cairn fs`, without its dash.
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = fs; or return 1
    set -l skip 0
    for word in $words[3..-1]
        if test $skip = 1
            set skip 0
        else if contains -- $word --fs -fs
            set skip 1
        else if not string match -q -- '--*' $word
            string replace -r -- '^-' '' $word
            return 0
        end
    end
    return 1
end

function __cairn_wants_verb
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = fs; and not __cairn_verb > /dev/null
end

function __cairn_verb_is
    set -l verb (__cairn_verb); and contains -- $verb $argv
end

function __cairn_wants_path
    set -l verb (__cairn_verb); and not contains -- $verb help usage
end

function __cairn_paths
    set -l words (commandline -opc)
    set -l fs
    for index in (seq 3 (math (count $words) - 1))
        if contains -- $words[$index] --fs -fs
            set fs --fs $words[(math $index + 1)]
        end
    end
    cairn complete $fs -- (commandline -ct) 2> /dev/null
end

complete -c cairn -f
@words@
complete -c cairn -n __cairn_wants_verb -l fs -r -d 'the file system'
complete -c cairn -n __cairn_wants_verb -l json -d 'for programs'
complete -c cairn -n '__cairn_verb_is help usage' -a '@verbs@'
complete -c cairn -n '__cairn_verb_is @local_verbs@ get copyToLocal getmerge' -F
complete -c cairn -n __cairn_wants_path -a '(__cairn_paths)'

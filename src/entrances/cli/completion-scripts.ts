/** Has a shell complete file names. */
export const filesMark = ':files';

/*
 * Own scripts, because those of the libraries for this have the shell evaluate what is on the command line, or what
 * the program answers: a user named `$(…)` would run commands as the operator who presses the key.
 */

const bash = `# bash completion of hub. In ~/.bashrc: source <(hub completion bash)
_hub() {
  local line="\${COMP_LINE:0:COMP_POINT}" current='' before value
  local -a words lines
  read -ra words <<< "$line"
  # A word has not begun after a space.
  if [[ $line == *[[:space:]] ]]; then words+=(''); fi
  if ((\${#words[@]} > 0)); then current="\${words[-1]}"; fi
  mapfile -t lines < <(command hub complete -- "\${words[@]:1}" 2> /dev/null)
  COMPREPLY=()
  if [[ \${lines[0]-} == '${filesMark}' ]]; then
    compopt -o default 2> /dev/null
    return
  fi
  # To bash a word begins after each of these too.
  before="\${current%"\${current##*[:=@]}"}"
  for value in "\${lines[@]}"; do
    value="\${value%%$'\\t'*}"
    printf -v value %q "\${value#"$before"}"
    COMPREPLY+=("$value")
  done
}
complete -F _hub hub
`;

const zsh = `#compdef hub
# zsh completion of hub. In ~/.zshrc, after compinit: source <(hub completion zsh)
_hub() {
  local line value
  local -a lines described
  lines=("\${(@f)$(command hub complete -- "\${(@Q)words[2,CURRENT]}" 2> /dev/null)}")
  if [[ $lines[1] == '${filesMark}' ]]; then
    compset -P '--*='
    _files
    return
  fi
  for line in $lines; do
    value="\${line%%$'\\t'*}"
    described+=("\${value//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe -t values hub described
}
if [[ $funcstack[1] == _hub ]]; then _hub "$@"; else compdef _hub hub; fi
`;

const fish = `# fish completion of hub. Once: hub completion fish > ~/.config/fish/completions/hub.fish
function __hub_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (command hub complete -- $words[2..] 2> /dev/null)
    if test "$lines[1]" = '${filesMark}'
        set -l option (string match -r -- '^--[^=]*=' (commandline -ct))
        printf "$option%s\\n" (__fish_complete_path (string replace -r -- '^--[^=]*=' '' (commandline -ct)))
    else if test (count $lines) -gt 0
        printf '%s\\n' $lines
    end
end
complete -c hub -f -a '(__hub_complete)'
`;

/** What has a shell ask `hub complete`, by its name. */
export const shellScripts = { bash, zsh, fish } as const;
export type Shell = keyof typeof shellScripts;

import { singleQuoted } from '../serve/invocation.js';
import { offerText, offerWords } from './posix.js';
import { type CommandNode, commandPaths } from './tree.js';

/** A zsh function for `compdef`, with what each thing is for. */
export function zshScript(nodes: readonly CommandNode[]): string {
  const commands = commandPaths(nodes).map(singleQuoted);
  return `#compdef osl
# zsh completion for osl; in ~/.zshrc, after compinit: source <(osl completion zsh)
_osl() {
  local path_='' word before i offer
  local -a items
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i] before=$words[i-1]
    _osl_value "$path_" "$before" && continue
    case "\${path_:+$path_ }$word" in
      ${commands.map((c) => `(${c})`).join(' | ')}) path_="\${path_:+$path_ }$word" ;;
    esac
  done
  if _osl_value "$path_" "$words[CURRENT-1]"; then
    _osl_offer "\${offer%%:*}" "\${offer#*:}"
    return
  fi
  case "$path_" in
${nodes.map(caseOf).join('\n')}
  esac
}

# Whether option $2 of command $1 takes a value; offer is what that may be.
_osl_value() {
  offer=nothing:
  case "$1 $2" in
${nodes.flatMap(valuesOf).join('\n')}
    (*) return 1 ;;
  esac
}

_osl_offer() {
  case "$1" in
    (file) _files ;;
    (folder) _files -/ ;;
    (choices) items=(\${=2}); compadd -a items ;;
  esac
}

compdef _osl osl
`;
}

function caseOf(node: CommandNode): string {
  const options = node.options.flatMap((o) => o.names.map((name) => described(name, o.about)));
  const children = node.children.map((c) => described(c.name, c.about));
  const rest =
    children.length === 0
      ? `_osl_offer ${offerWords(node.argument)}`
      : `items=(${children.join(' ')}); _describe command items`;
  return `    (${singleQuoted(node.path)})
      if [[ $PREFIX == -* ]]; then
        items=(${options.join(' ')}); _describe -o option items
      else
        ${rest}
      fi ;;`;
}

function valuesOf(node: CommandNode): readonly string[] {
  return node.options.flatMap((o) => {
    const { value } = o;
    if (value === null) return [];
    return o.names.map(
      (name) => `    (${singleQuoted(`${node.path} ${name}`)}) offer=${singleQuoted(offerText(value))} ;;`,
    );
  });
}

/** A colon ends the word in `_describe`. */
function described(word: string, about: string): string {
  return singleQuoted(`${word.replaceAll(':', '\\:')}:${about}`);
}

import { singleQuoted } from '../serve/invocation.js';
import { offerText, offerWords } from './posix.js';
import { type CommandNode, commandPaths } from './tree.js';

/** A bash function for `complete`. Needs nothing but bash 4. */
export function bashScript(nodes: readonly CommandNode[]): string {
  const commands = commandPaths(nodes).map(singleQuoted);
  return `# bash completion for osl; in ~/.bashrc: source <(osl completion bash)
_osl() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path='' word before i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]} before=\${COMP_WORDS[i-1]}
    _osl_value "$path" "$before" && continue
    case "\${path:+$path }$word" in
      ${commands.join(' | ')}) path="\${path:+$path }$word" ;;
    esac
  done
  if _osl_value "$path" "$prev"; then
    _osl_offer "\${offer%%:*}" "\${offer#*:}"
    return
  fi
  case "$path" in
${nodes.map(caseOf).join('\n')}
  esac
}

# Whether option $2 of command $1 takes a value; offer is what that may be.
_osl_value() {
  offer=nothing:
  case "$1 $2" in
${nodes.flatMap(valuesOf).join('\n')}
    *) return 1 ;;
  esac
}

_osl_offer() {
  case "$1" in
    file) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")) ;;
    folder) compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur")) ;;
    choices) COMPREPLY=($(compgen -W "$2" -- "$cur")) ;;
  esac
}

complete -F _osl osl
`;
}

function caseOf(node: CommandNode): string {
  const options = node.options.flatMap((o) => o.names).join(' ');
  const words = node.children.map((c) => c.name).join(' ');
  const rest = words === '' ? node.argument : ({ kind: 'choices', choices: words.split(' ') } as const);
  return `    ${singleQuoted(node.path)})
      if [[ $cur == -* ]]; then _osl_offer choices ${singleQuoted(options)}; else _osl_offer ${offerWords(rest)}; fi ;;`;
}

function valuesOf(node: CommandNode): readonly string[] {
  return node.options.flatMap((o) => {
    if (o.value === null) return [];
    const patterns = o.names.map((name) => singleQuoted(`${node.path} ${name}`)).join(' | ');
    return [`    ${patterns}) offer=${singleQuoted(offerText(o.value))} ;;`];
  });
}

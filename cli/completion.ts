import { Argument, type Command, type Option } from 'commander';
import { print } from './output.js';
import { singleQuoted } from './serve/invocation.js';

export type ShellCompletion =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'file' | 'folder' }
  | { readonly kind: 'choices'; readonly choices: readonly string[] };

interface OptionNode {
  /** All names of the flag, the long one first. */
  readonly names: readonly string[];
  readonly about: string;
  /** Suggestions for the flag's value; null if the flag takes no value. */
  readonly value: ShellCompletion | null;
}

export interface CommandNode {
  /** Command path, such as `audit verify` for `osl audit verify`; empty for the root. */
  readonly path: string;
  readonly about: string;
  readonly options: readonly OptionNode[];
  readonly argument: ShellCompletion;
  readonly children: readonly { readonly name: string; readonly about: string }[];
}

export function commandNodes(command: Command, path = ''): readonly CommandNode[] {
  const below = command.commands.map((c) => ({ name: c.name(), about: c.description() }));
  const node: CommandNode = {
    path,
    about: command.description(),
    options: command.createHelp().visibleOptions(command).map(optionNode),
    argument: argumentOf(command),
    children: below,
  };
  return [node, ...command.commands.flatMap((c) => commandNodes(c, `${path} ${c.name()}`.trim()))];
}

export function commandPaths(nodes: readonly CommandNode[]): readonly string[] {
  return nodes.map((n) => n.path).filter((path) => path !== '');
}

function optionNode(option: Option): OptionNode {
  const names = [option.long, option.short].filter((name) => name !== undefined && name !== null);
  const takes = option.required || option.optional;
  return { names, about: option.description, value: takes ? offerOf(option.flags, option.argChoices) : null };
}

function argumentOf(command: Command): ShellCompletion {
  const [first] = command.registeredArguments;
  if (first === undefined) return { kind: 'nothing' };
  return offerOf(`<${first.name()}>`, first.argChoices);
}

/** Suggestions for the value of a flag, according to its placeholder, such as `<file>` or `<dir>`. */
function offerOf(flags: string, choices: readonly string[] | undefined): ShellCompletion {
  if (choices !== undefined) return { kind: 'choices', choices };
  const [, word = ''] = /[<[]([a-z-]+)/.exec(flags) ?? [];
  if (word === 'file' || word === 'proposed') return { kind: 'file' };
  return word === 'dir' || word === 'folder' ? { kind: 'folder' } : { kind: 'nothing' };
}

/** Formats suggestions as `_osl_value` stores them in `offer`: kind, colon, choices. */
export function offerText(offer: ShellCompletion): string {
  return `${offer.kind}:${choicesOf(offer)}`;
}

/** Formats suggestions as the two arguments of `_osl_offer`: kind and choices. */
export function offerWords(offer: ShellCompletion): string {
  return `${offer.kind} ${singleQuoted(choicesOf(offer))}`;
}

function choicesOf(offer: ShellCompletion): string {
  return offer.kind === 'choices' ? offer.choices.join(' ') : '';
}

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

${valueFunction(nodes)}

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

/** Shell function `_osl_value` for bash and zsh. */
function valueFunction(nodes: readonly CommandNode[]): string {
  const cases = nodes.flatMap(({ path, options }) =>
    options.flatMap(({ names, value }) =>
      value === null
        ? []
        : names.map(
            (name) => `    (${singleQuoted(`${path} ${name}`)}) offer=${singleQuoted(offerText(value))} ;;`,
          ),
    ),
  );
  return `# True if option $2 of command $1 takes a value, which offer describes.
_osl_value() {
  offer=nothing:
  case "$1 $2" in
${cases.join('\n')}
    (*) return 1 ;;
  esac
}`;
}

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
${nodes.map(caseOfZsh).join('\n')}
  esac
}

${valueFunction(nodes)}

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

function caseOfZsh(node: CommandNode): string {
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

/** Escapes colons, because `_describe` ends the word at a colon. */
function described(word: string, about: string): string {
  return singleQuoted(`${word.replaceAll(':', '\\:')}:${about}`);
}

export function fishScript(nodes: readonly CommandNode[]): string {
  const commands = commandPaths(nodes).map(quoted);
  const valued = nodes.flatMap((n) =>
    n.options
      .filter((o) => o.value !== null)
      .flatMap((o) => o.names.map((name) => quoted(`${n.path} ${name}`))),
  );
  return `# fish completion for osl: osl completion fish > ~/.config/fish/completions/osl.fish
set -g __osl_commands ${commands.join(' ')}
set -g __osl_valued ${valued.join(' ')}

# The command that is being typed is $argv.
function __osl_at
    set -l path ''
    set -l before ''
    for word in (commandline -opc)[2..-1]
        if not contains -- "$path $before" $__osl_valued
            set -l longer (string trim -- "$path $word")
            contains -- "$longer" $__osl_commands; and set path $longer
        end
        set before $word
    end
    test "$path" = "$argv"
end

complete -c osl -f
${nodes.flatMap(linesOf).join('\n')}
`;
}

function linesOf(node: CommandNode): readonly string[] {
  const at = `complete -c osl -n ${quoted(`__osl_at ${node.path}`.trim())}`;
  return [
    ...node.children.map((c) => `${at} -a ${quoted(c.name)} -d ${quoted(c.about)}`),
    ...(node.argument.kind === 'nothing' ? [] : [`${at} ${wordsOf(node.argument)}`]),
    ...node.options.map((o) => {
      const names = o.names
        .map((n) => (n.startsWith('--') ? `-l ${n.slice(2)}` : `-s ${n.slice(1)}`))
        .join(' ');
      const value = o.value === null ? '' : ` -r ${wordsOf(o.value)}`;
      return `${at} ${names}${value} -d ${quoted(o.about)}`;
    }),
  ];
}

function wordsOf(offer: ShellCompletion): string {
  switch (offer.kind) {
    case 'nothing':
      return '-f';
    case 'file':
      return '-F';
    case 'folder':
      return "-f -a '(__fish_complete_directories)'";
    case 'choices':
      return `-f -a ${quoted(offer.choices.join(' '))}`;
  }
}

/** Quotes for Fish, which supports two escapes in single quotes. */
function quoted(word: string): string {
  return `'${word.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

const HELP = `
Prints a script that completes commands, flags, file names and choices.

Examples:
  $ source <(osl completion bash)                                 # in ~/.bashrc
  $ source <(osl completion zsh)                                  # in ~/.zshrc, after compinit
  $ osl completion fish > ~/.config/fish/completions/osl.fish`;

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', HELP)
    .action((shell: string) => print(scriptFor(shell, program).trimEnd()));
}

function scriptFor(shell: string, program: Command): string {
  const nodes = commandNodes(program);
  return shell === 'fish' ? fishScript(nodes) : shell === 'zsh' ? zshScript(nodes) : bashScript(nodes);
}

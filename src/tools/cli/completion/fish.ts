import { type CommandNode, commandPaths, type Offer } from './tree.js';

/** `complete` commands for fish, with what each thing is for. */
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

function wordsOf(offer: Offer): string {
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

/** Within single quotes fish knows two escapes. */
function quoted(word: string): string {
  return `'${word.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

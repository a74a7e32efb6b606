import type { Command, Option } from 'commander';

/** What a shell can offer in some place. */
export type Offer =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'file' | 'folder' }
  | { readonly kind: 'choices'; readonly choices: readonly string[] };

interface OptionNode {
  /** `--manifest`, and `-n` where there is one. */
  readonly names: readonly string[];
  readonly about: string;
  /** What its value may be; null where it takes none. */
  readonly value: Offer | null;
}

/** A command as a shell sees it. */
export interface CommandNode {
  /** `osl audit verify` is `audit verify`; the root is empty. */
  readonly path: string;
  readonly about: string;
  readonly options: readonly OptionNode[];
  /** What its arguments may be. */
  readonly argument: Offer;
  readonly children: readonly { readonly name: string; readonly about: string }[];
}

/** The command and all below it, each before those of its own. */
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

/** What can be typed after `osl` to name a command: `audit`, `audit verify`, … */
export function commandPaths(nodes: readonly CommandNode[]): readonly string[] {
  return nodes.map((n) => n.path).filter((path) => path !== '');
}

function optionNode(option: Option): OptionNode {
  const names = [option.long, option.short].filter((name) => name !== undefined && name !== null);
  const takes = option.required || option.optional;
  return { names, about: option.description, value: takes ? offerOf(option.flags, option.argChoices) : null };
}

function argumentOf(command: Command): Offer {
  const [first] = command.registeredArguments;
  if (first === undefined) return { kind: 'nothing' };
  return offerOf(`<${first.name()}>`, first.argChoices);
}

/** By the word between the brackets: `<file>`, `<dir>`. */
function offerOf(flags: string, choices: readonly string[] | undefined): Offer {
  if (choices !== undefined) return { kind: 'choices', choices };
  const [, word = ''] = /[<[]([a-z-]+)/.exec(flags) ?? [];
  if (word === 'file' || word === 'proposed') return { kind: 'file' };
  return word === 'dir' || word === 'folder' ? { kind: 'folder' } : { kind: 'nothing' };
}

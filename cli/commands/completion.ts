import { Argument, type Command } from 'commander';
import { print } from '../output.js';

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
    .action(async (shell: string) => print((await scriptFor(shell, program)).trimEnd()));
}

async function scriptFor(shell: string, program: Command): Promise<string> {
  const { commandNodes } = await import('../completion.js');
  const nodes = commandNodes(program);
  if (shell === 'fish') return (await import('../completion.js')).fishScript(nodes);
  if (shell === 'zsh') return (await import('../completion.js')).zshScript(nodes);
  return (await import('../completion.js')).bashScript(nodes);
}

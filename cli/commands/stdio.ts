import { resolve } from 'node:path';
import type { Command } from 'commander';
import { version } from '../../src/base/package-root.js';
import { addClientOptions, type ClientFlags } from '../ask.js';
import { freshToken } from '../caller.js';
import { fetchHttp, serverUrl } from '../client.js';
import { manifestOption, policyOption, settingsOf, wholeNumber } from '../flags.js';
import { note } from '../output.js';

interface McpFlags extends ClientFlags {
  readonly maxBytes?: number;
}

const HELP = `
Speaks MCP on standard input and output until its input ends; messages for people go to standard error. Who asks is
settled as for \`osl query\`. A token that is given ends with its 300 s, and then every call is refused; one that is
minted here (--subject, --chain) is made anew in time.

Examples:
  $ osl mcp --subject agent:scout --chain user:analyst,agent:scout
  $ OSL_TOKEN=… osl mcp --server https://osl.example`;

export function addMcp(program: Command): void {
  const command = program.command('mcp');
  addClientOptions(command)
    .option(
      '--max-bytes <bytes>',
      'JSON of the rows of a result, at most (131072)',
      wholeNumber(1_024, 16_777_216),
    )
    .addHelpText('after', HELP)
    .action(runMcp);
}

async function runMcp(flags: McpFlags): Promise<void> {
  const [
    { serveStdio },
    { createSemanticServer },
    { remoteEngine },
    { captureArguments, MAX_MESSAGE_BYTES },
  ] = await Promise.all([
    import('@modelcontextprotocol/server/stdio'),
    import('../../src/surfaces/mcp/tools.js'),
    import('../../src/surfaces/mcp/engine.js'),
    import('../../src/surfaces/mcp/raw-arguments.js'),
  ]);
  const { StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
  const settings = settingsOf(flags);
  const engine = remoteEngine({
    url: serverUrl(flags.server, settings),
    fetch: fetchHttp,
    token: (await freshToken(flags)).current,
  });
  const options = {
    version: version(),
    ...(flags.maxBytes === undefined ? {} : { maxBytes: flags.maxBytes }),
  };
  const { output, takeArguments } = captureArguments(process.stdin);
  const transport = new StdioServerTransport(output, process.stdout, { maxBufferSize: MAX_MESSAGE_BYTES });
  const handle = serveStdio(() => createSemanticServer(engine, { ...options, rawArguments: takeArguments }), {
    transport,
    maxSubscriptions: 0,
    onerror: (error) => note(`error: ${error.message}`),
  });
  await new Promise<void>((resolve) => process.stdin.once('end', resolve).once('close', resolve));
  await handle.close();
}

interface LspFlags {
  readonly manifest?: string;
  readonly policy?: string;
  readonly subject?: string;
  readonly stdio?: true;
}

const LSP_HELP = `
Speaks the Language Server Protocol on standard input and output; editors start it (docs/editors.md). Without
--manifest a policy belongs to the manifest.yaml beside it, and an .osql file to the next one in its folder or above.
No server is asked, and no database.

Example:
  $ osl lsp --stdio                              # in the settings of an editor`;

export function addLsp(program: Command): void {
  program
    .command('lsp')
    .addOption(manifestOption())
    .addOption(policyOption())
    .option('--subject <name>', 'check .osql files as this subject of the policy asks, with all its roles')
    .option('--stdio', 'what it does anyway; some editors say it')
    .addHelpText('after', LSP_HELP)
    .action(runLsp);
}

async function runLsp({ manifest, policy, subject }: LspFlags): Promise<void> {
  const { serveLsp } = await import('../lsp/serve.js');
  const file = (name: string | undefined): string | null => (name === undefined ? null : resolve(name));
  const given = { manifestFile: file(manifest), policyFile: file(policy), subject: subject ?? null };
  process.exitCode = await serveLsp(process.stdin, process.stdout, given);
}

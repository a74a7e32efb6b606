import type { Command } from 'commander';
import { splitList } from '../../src/service/settings/types.js';
import { callerToken } from '../caller.js';
import { EXIT, Failure, usage } from '../exit.js';
import { dataDirOption, restAddress, settingsOf, wholeNumber } from '../flags.js';
import { note, print, printJson } from '../output.js';
import type { ProxyTarget } from '../proxy/connection.js';
import { namedAddress, subjectOf, tokensOfCommand } from '../proxy/connection.js';
import type { TokenSource } from '../proxy/relay.js';
import { addressOf, isLoopback, runningServer } from '../server-file.js';

interface ProxyFlags {
  readonly port: number;
  readonly to?: string;
  readonly tls?: boolean;
  readonly tokenCommand?: string;
  readonly server?: string;
  readonly subject?: string;
  readonly chain?: readonly string[];
  readonly dataDir?: string;
  readonly json?: true;
}

const HELP = `
For BI tools that keep one password for ever: they connect to the proxy without one. It gets a fresh token for each
connection and renews it while the connection lives. It listens on 127.0.0.1 only, but whoever is on this machine can
use it, with the rights of its tokens.

Examples:
  $ osl proxy --subject user:analyst                                  # to the server that runs here
  $ osl proxy --to osl.example.com:5432 --token-command "vault-token osl"`;

export function addProxy(program: Command): void {
  program
    .command('proxy')
    .option('--port <port>', 'where it listens, on 127.0.0.1', wholeNumber(0, 65_535), 6_432)
    .option('--to <host:port>', 'the gateway (default: port 15432 of --server, or the server that runs here)')
    .option(
      '--server <url>',
      'REST address of the gateway at which you are logged in (osl login)',
      restAddress,
    )
    .option('--no-tls', 'speak to it without TLS; on loopback only')
    .option('--token-command <command>', 'prints a token; run for each connection and renewal')
    .option('--subject <name>', "mint tokens for this subject with the data directory's key")
    .option('--chain <names>', 'the last of these asks, and acts for the others', splitList)
    .addOption(dataDirOption())
    .option('--json', 'print where it listens as one JSON line')
    .addHelpText('after', HELP)
    .action(runProxy);
}

async function runProxy(flags: ProxyFlags): Promise<void> {
  const target = targetOf(flags);
  const tokens = tokensOf(flags);
  const { subject } = await tokens();
  const [{ listenProxy }, { RENEW_MS }] = await Promise.all([
    import('../proxy/connection.js'),
    import('../proxy/relay.js'),
  ]);
  const proxy = await listenProxy(flags.port, {
    target,
    tokens,
    renewMs: RENEW_MS,
    said: note,
    notConnected: note,
  });
  if (flags.json)
    printJson({ event: 'listening', port: proxy.port, to: `${target.host}:${target.port}`, subject });
  else print(`postgres://127.0.0.1:${proxy.port}/osl   as ${subject}, no password   (Ctrl-C ends it)`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await proxy.close();
  process.exitCode = EXIT.ok;
}

function targetOf(flags: ProxyFlags): ProxyTarget {
  const named = namedAddress(flags);
  if (named === null) {
    const record = runningServer(settingsOf(flags).dataDir);
    if (record === null)
      throw new Failure(EXIT.unreachable, 'error: no server runs here: name one with --to');
    return {
      host: addressOf(record),
      port: record.pgPort,
      tls: record.tls && flags.tls !== false ? 'verify' : 'off',
    };
  }
  if (flags.tls === false && !isLoopback(named.host))
    throw usage('--no-tls is for loopback: a token would go in the clear');
  return { ...named, tls: flags.tls === false ? 'off' : 'verify' };
}

function tokensOf(flags: ProxyFlags): TokenSource {
  if (flags.tokenCommand !== undefined) return tokensOfCommand(flags.tokenCommand);
  const settings = settingsOf(flags);
  return async () => {
    const caller = await callerToken(flags, settings);
    if (caller.kind === 'minted') return caller.issued;
    return { token: caller.token, subject: subjectOf(caller.token) };
  };
}

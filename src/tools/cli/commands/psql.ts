import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Command } from 'commander';
import { DEFAULT_PG_PORT, type Settings } from '../../../service/settings.js';
import { callerToken } from '../caller.js';
import { EXIT, Failure, usage } from '../exit.js';
import { dataDirOption, names, serverOption, settingsOf } from '../flags.js';
import { subjectOf } from '../proxy/tokens.js';
import { addressOf, isLoopback, runningServer } from '../server-file.js';

interface PsqlFlags {
  readonly subject?: string;
  readonly chain?: readonly string[];
  readonly dataDir?: string;
  readonly server?: string;
  readonly to?: string;
}

const HELP = `
Everything after the flags above goes to psql. A session ends with its token, after 300 s. Who has logged in (osl login)
needs no --subject.

Examples:
  $ osl psql --subject user:analyst
  $ osl psql --subject user:auditor -c "select name, email from entities.person limit 5"`;

export function addPsql(program: Command): void {
  program
    .command('psql')
    .description('open psql on the running server, as a subject')
    .argument('[args...]', 'for psql')
    .option('--subject <name>', 'who asks (OSL_SUBJECT; in the demo user:analyst)')
    .option('--chain <names>', 'the last of these asks, and acts for the others', names)
    .addOption(serverOption())
    .option('--to <host:port>', 'where its wire is (default: port 15432 of the server)')
    .addOption(dataDirOption())
    .allowUnknownOption()
    .passThroughOptions()
    .addHelpText('after', HELP)
    .action(runPsql);
}

async function runPsql(args: readonly string[], flags: PsqlFlags): Promise<void> {
  const settings = settingsOf(flags);
  const target = targetOf(flags, settings);
  const caller = await callerToken(flags, settings);
  const { subject, token } =
    caller.kind === 'given' ? { token: caller.token, subject: subjectOf(caller.token) } : caller.issued;
  process.exitCode = await psql(args, environmentOf(target, subject, token));
}

/** Where the wire is: of the server that runs here, or of the one that is named. @throws Failure */
function targetOf({ server, to }: PsqlFlags, settings: Settings): WireTarget {
  if (server === undefined && to === undefined) {
    const record = runningServer(settings.dataDir);
    if (record === null)
      throw new Failure(EXIT.unreachable, `error: no server runs in ${settings.dataDir}: start one first`);
    return { host: addressOf(record), port: record.pgPort, mode: record.tls ? 'require' : 'disable' };
  }
  const host = server === undefined ? '' : new URL(server).hostname.replace(/^\[|\]$/g, '');
  const [, named = host, port] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(to ?? '') ?? [];
  if (named === '' || (to !== undefined && port === undefined))
    throw usage('--to takes a host and a port, such as osl.example.com:5432');
  // Nobody between may read the token, which is a password.
  const mode = isLoopback(named) ? 'prefer' : 'verify-full';
  return { host: named, port: Number(port ?? DEFAULT_PG_PORT), mode };
}

interface WireTarget {
  readonly host: string;
  readonly port: number;
  /** `sslmode` of libpq, unless the environment names another. */
  readonly mode: 'require' | 'disable' | 'prefer' | 'verify-full';
}

/** What libpq reads; arguments of psql still override it. */
function environmentOf({ host, port, mode }: WireTarget, subject: string, token: string): NodeJS.ProcessEnv {
  return {
    PGSSLMODE: mode,
    ...(mode === 'verify-full' && { PGSSLROOTCERT: 'system' }),
    ...process.env,
    PGHOST: host,
    PGPORT: String(port),
    PGDATABASE: 'osl',
    PGUSER: subject,
    PGPASSWORD: token,
  };
}

/** Runs psql in the foreground. Ctrl-C is for it: it cancels a query. */
function psql(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return new Promise((resolve, reject) => {
    const ignore = (): void => undefined;
    process.on('SIGINT', ignore);
    const child = spawn('psql', args, { env, stdio: 'inherit' });
    child.once('error', (error) => {
      const missing = 'code' in error && error.code === 'ENOENT';
      reject(missing ? usage('psql is not installed (Debian: apt-get install postgresql-client)') : error);
    });
    child.once('exit', (code, signal) => {
      process.off('SIGINT', ignore);
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}

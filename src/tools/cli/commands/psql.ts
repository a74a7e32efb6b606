import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Command } from 'commander';
import { callerToken } from '../caller.js';
import { EXIT, Failure, usage } from '../exit.js';
import { dataDirOption, names, settingsOf } from '../flags.js';
import { addressOf, runningServer, type ServerRecord } from '../server-file.js';

interface PsqlFlags {
  readonly subject?: string;
  readonly chain?: readonly string[];
  readonly dataDir?: string;
}

const HELP = `
Everything after the flags above goes to psql. A session ends with its token, after 300 s.

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
    .addOption(dataDirOption())
    .allowUnknownOption()
    .passThroughOptions()
    .addHelpText('after', HELP)
    .action(runPsql);
}

async function runPsql(args: readonly string[], flags: PsqlFlags): Promise<void> {
  const settings = settingsOf(flags);
  const record = runningServer(settings.dataDir);
  if (record === null) {
    throw new Failure(EXIT.unreachable, `error: no server runs in ${settings.dataDir}: start one first`);
  }
  const caller = await callerToken(flags, settings);
  if (caller.kind === 'given') throw usage('psql needs a subject, not a token: --subject user:analyst');
  const { subject, token } = caller.issued;
  process.exitCode = await psql(args, environmentOf(record, subject, token));
}

/** What libpq reads; arguments of psql still override it. */
function environmentOf(record: ServerRecord, subject: string, token: string): NodeJS.ProcessEnv {
  return {
    PGSSLMODE: record.tls ? 'require' : 'disable',
    ...process.env,
    PGHOST: addressOf(record),
    PGPORT: String(record.pgPort),
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

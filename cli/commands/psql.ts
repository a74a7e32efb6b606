import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { constants, homedir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { splitList } from '../../src/service/settings/types.js';
import type { Settings } from '../../src/service/settings.js';
import { EXIT, Failure, usage } from '../exit.js';
import { dataDirOption, serverOption, settingsOf } from '../flags.js';
import { note } from '../output.js';
import type { ProxyOptions, ProxyTarget } from '../proxy/connection.js';
import { listenProxy, namedAddress, subjectOf } from '../proxy/connection.js';
import { RENEW_MS, type SubjectToken } from '../proxy/relay.js';
import { addressOf, isLoopback, runningServer } from '../server-file.js';

interface PsqlFlags {
  readonly subject?: string;
  readonly chain?: readonly string[];
  readonly dataDir?: string;
  readonly server?: string;
  readonly to?: string;
}

const HELP = `
Everything after the flags above goes to psql, which connects through a proxy of its own on 127.0.0.1. The proxy renews
the token while psql runs; a token of OSL_TOKEN cannot be renewed, and the session ends with it. Who has logged in (osl
login) needs no --subject. PGSSLMODE, PGSSLROOTCERT, PGSSLCERT and PGSSLKEY are
heeded.

Examples:
  $ osl psql --subject user:analyst
  $ osl psql --subject user:auditor -c "select name, email from entities.person limit 5"`;

export function addPsql(program: Command): void {
  program
    .command('psql')
    .argument('[args...]', 'for psql')
    .option('--subject <name>', 'who asks (OSL_SUBJECT; in the demo user:analyst)')
    .option('--chain <names>', 'the last of these asks, and acts for the others', splitList)
    .addOption(serverOption())
    .option('--to <host:port>', 'where its wire is (default: port 15432 of the server)')
    .addOption(dataDirOption())
    .allowUnknownOption()
    .passThroughOptions()
    .addHelpText('after', HELP)
    .action(runPsql);
}

async function runPsql(args: readonly string[], flags: PsqlFlags): Promise<void> {
  const target = targetOf(flags, settingsOf(flags));
  const { freshToken } = await import('../caller.js');
  const fresh = await freshToken(flags);
  const tokens = async (): Promise<SubjectToken> => {
    const token = (await fresh.another()) ?? (await fresh.current());
    return { token, subject: subjectOf(token) };
  };
  const subject = subjectOf(await fresh.current());
  process.exitCode = await psqlThroughProxy(args, { subject, target, tokens, renewMs: RENEW_MS });
}

function targetOf(flags: PsqlFlags, settings: Settings): ProxyTarget {
  const named = namedAddress(flags);
  if (named === null) {
    const record = runningServer(settings.dataDir);
    if (record === null)
      throw new Failure(EXIT.unreachable, `error: no server runs in ${settings.dataDir}: start one first`);
    const mode = record.tls ? 'require' : 'disable';
    return { host: addressOf(record), port: record.pgPort, ...encryptionOf(mode) };
  }
  // The token is sent as a password and must not be readable in transit.
  return { ...named, ...encryptionOf(isLoopback(named.host) ? 'prefer' : 'verify-full') };
}

type Encryption = Pick<ProxyTarget, 'tls' | 'certificates'>;

/** Encryption as set by libpq's environment variables, otherwise `mode`. @throws Failure, and system errors of files */
function encryptionOf(mode: 'require' | 'disable' | 'prefer' | 'verify-full'): Encryption {
  const { PGSSLMODE: named = mode, PGSSLROOTCERT: root = 'system' } = process.env;
  const ca = root === 'system' || root === '' ? null : readFileSync(root);
  const certificates = { ...(ca !== null && { ca }), ...clientCertificate() };
  switch (named) {
    case 'disable':
      return { tls: 'off' };
    case 'allow':
    case 'prefer':
      return { tls: 'prefer', certificates };
    case 'require':
      return { tls: ca === null ? 'encrypt' : 'verify', certificates };
    case 'verify-ca':
    case 'verify-full':
      return { tls: 'verify', certificates };
    default:
      throw usage(
        `PGSSLMODE is one of disable, allow, prefer, require, verify-ca, verify-full, not \`${named}\``,
      );
  }
}

/** The client certificate libpq would use: PGSSLCERT and PGSSLKEY, otherwise the one in `~/.postgresql`. */
function clientCertificate(): Encryption['certificates'] {
  const own = join(homedir(), '.postgresql', 'postgresql');
  const {
    PGSSLCERT: cert = `${own}.crt`,
    PGSSLKEY: key = `${own}.key`,
    PGSSLPASSWORD: passphrase,
  } = process.env;
  if (process.env['PGSSLCERT'] === undefined && !existsSync(cert)) return {};
  return {
    cert: readFileSync(cert),
    key: readFileSync(key),
    ...(passphrase !== undefined && { passphrase }),
  };
}

export interface PsqlSession extends Omit<ProxyOptions, 'said' | 'notConnected' | 'password'> {
  readonly subject: string;
}

/**
 * Runs psql through a dedicated proxy on 127.0.0.1, which renews the token and accepts only the password given to this
 * psql. Resolves with psql's exit status.
 */
export async function psqlThroughProxy(
  args: readonly string[],
  { subject, ...options }: PsqlSession,
): Promise<number> {
  const password = randomBytes(32).toString('base64url');
  const proxy = await listenProxy(0, { ...options, password, said: note });
  try {
    return await psql(args, {
      ...process.env,
      PGHOST: '127.0.0.1',
      PGHOSTADDR: undefined,
      PGSERVICE: undefined,
      PGPORT: String(proxy.port),
      PGSSLMODE: 'disable',
      PGDATABASE: 'osl',
      PGUSER: subject,
      PGPASSWORD: password,
    });
  } finally {
    await proxy.close();
  }
}

/** Runs psql and resolves with its exit status. Ctrl-C is left to psql, which cancels the query. */
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

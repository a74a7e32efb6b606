import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import type { Test } from 'tap';
import { mintToken } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { emptyDatabases } from '../../support/embedded-data.js';
import { EXAMPLE, Server, temporary } from '../../tools/cli/support.js';

export interface Place {
  readonly dataDir: string;
  readonly manifest: string;
  readonly policy: string;
}

/** Files that a server can be started from, and a data directory to be; limits are out of the way. */
export function place(): Place {
  const dir = temporary();
  cpSync(EXAMPLE, dir, { recursive: true });
  const policy = join(dir, 'policy.yaml');
  writeFileSync(policy, readFileSync(policy, 'utf8').replace(/query: \d+/, 'query: 100000'));
  const dataDir = join(dir, 'data');
  mkdirSync(dataDir);
  return { dataDir, manifest: join(dir, 'manifest.yaml'), policy };
}

/** `osl serve --json`, listening. It is killed when `t` ends, if it is not over by then. */
export async function served(
  t: Test,
  { dataDir, manifest, policy }: Place,
  env: Readonly<Record<string, string>> = {},
  within: readonly string[] = [],
): Promise<Server> {
  await emptyDatabases(dataDir, readFileSync(manifest, 'utf8'));
  const args = ['serve', '--json', '--manifest', manifest, '--policy', policy];
  const server = new Server(args, dataDir, env, undefined, within);
  t.teardown(() => server.signal('SIGKILL'));
  await server.said('"event":"listening"');
  return server;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

const agent = new Agent({ keepAlive: true });

/** `GET path`, or a POST where there is a body. */
export function asked(
  server: Server,
  path: string,
  body: unknown = null,
  headers: Readonly<Record<string, string>> = {},
  host = '127.0.0.1',
): Promise<Reply> {
  const { httpPort } = server.record();
  const method = body === null ? 'GET' : 'POST';
  const more = body === null ? {} : { 'content-type': 'application/json' };
  const options = { host, port: Number(httpPort), path, method, agent, headers: { ...more, ...headers } };
  return replyTo((taken) => request(options, taken), body);
}

/** The reply to a request that `begin` makes, whose body is `body` as JSON, or empty. */
export function replyTo(
  begin: (taken: (reply: IncomingMessage) => void) => ClientRequest,
  body: unknown,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = begin((reply) => {
      let text = '';
      reply.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      reply.once('end', () => resolve({ status: reply.statusCode ?? 0, headers: reply.headers, body: text }));
    });
    sent.once('error', reject);
    sent.end(body === null ? undefined : JSON.stringify(body));
  });
}

/** A token of the data directory's own key. */
export function tokenFor(
  dataDir: string,
  subject = 'user:analyst',
  kid?: string,
  role = subject.replace('user:', ''),
): Promise<string> {
  const { signing } = tenantKeys(dataDir);
  const claims = { tenant: 'demo', chain: [subject], aclRoles: [role] };
  return mintToken(claims, {
    algorithm: 'HS256',
    secret: signing,
    ...(kid === undefined ? {} : { kid }),
  });
}

/** The lines of the operator's log so far. */
export function logged(server: Server): readonly Readonly<Record<string, unknown>>[] {
  return server.stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>); // what pino writes
}

/** What a command of the system says; null where it fails. */
export function run(command: string, ...args: readonly string[]): string | null {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? stdout : null;
}

/** Arguments that name the files of a server to a command. */
export function fileArgs({ dataDir, manifest, policy }: Place): readonly string[] {
  return ['--data-dir', dataDir, '--manifest', manifest, '--policy', policy];
}

import { execFile } from 'node:child_process';
import { createHash, timingSafeEqual } from 'node:crypto';
import { connect as connectSocket, createServer, isIP, type Socket } from 'node:net';
import { connect as connectTls, type SecureContextOptions } from 'node:tls';
import { messageOf } from '../../src/base/thrown.js';
import { SETTINGS } from '../../src/service/settings/table.js';
import { FrameDecoder } from '../../wire/index.js';
import { usage } from '../exit.js';
import {
  askForPassword,
  CANCEL_REQUEST,
  encodeMessage,
  fatalError,
  GSS_REQUEST,
  messagesIn,
  onData,
  Relay,
  SSL_REQUEST,
  type SubjectToken,
  type TokenSource,
  withUser,
} from './relay.js';

export interface ProxyTarget {
  readonly host: string;
  readonly port: number;
  /**
   * `verify`: TLS with a certificate that is valid for the host. `encrypt`: TLS with any certificate. `prefer`: like
   * `encrypt`, but only if the server offers TLS. `off`: no TLS. All but `verify` let a man in the middle read tokens.
   */
  readonly tls: 'verify' | 'encrypt' | 'prefer' | 'off';
  /** Certificate authorities for `verify` (default: Node's), and the client certificate. */
  readonly certificates?: Pick<SecureContextOptions, 'ca' | 'cert' | 'key' | 'passphrase'>;
}

/**
 * Address of the Postgres port: that of `--to`, otherwise the default port at the host of `--server`; null if neither
 * is given.
 *
 * @throws Failure if `to` is malformed
 */
export function namedAddress({
  server,
  to,
}: {
  readonly server?: string;
  readonly to?: string;
}): Pick<ProxyTarget, 'host' | 'port'> | null {
  if (to === undefined)
    return server === undefined
      ? null
      : {
          host: new URL(server).hostname.replace(/^\[|\]$/g, ''),
          port: Number(SETTINGS.OSL_PG_PORT.default),
        };
  const [, host, port] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(to) ?? [];
  if (host === undefined) throw usage('--to takes a host and a port, such as osl.example.com:5432');
  return { host, port: Number(port) };
}

export interface ProxyOptions {
  readonly target: ProxyTarget;
  readonly tokens: TokenSource;
  readonly renewMs: number;
  /** Password that clients must send; without it, anyone on this machine has the rights of the tokens. */
  readonly password?: string;
  readonly said: (text: string) => void;
  readonly notConnected?: (text: string) => void;
}

/** Serves one client until it disconnects. Never throws. */
async function serveClient(client: Socket, options: ProxyOptions): Promise<void> {
  client.setNoDelay(true);
  client.on('error', () => client.destroy());
  try {
    const asked = await startupOf(client);
    if (asked === null) return;
    if (asked.startup.readUInt32BE(4) === CANCEL_REQUEST) {
      const server = await connectGateway(options.target);
      server.end(asked.startup);
      client.end();
      return;
    }
    const { password } = options;
    const behind = password === undefined ? asked.behind : await checkPassword(client, asked, password);
    if (behind === null) client.end(fatalError('password authentication failed', '28P01'));
    else await logIn(client, { ...asked, behind }, options);
  } catch (error) {
    const text = messageOf(error);
    options.notConnected?.(text);
    client.end(fatalError(`osl proxy: ${text}`));
  }
}

interface ClientStartup {
  readonly startup: Buffer;
  readonly behind: Buffer;
}

function startupOf(client: Socket): Promise<ClientStartup | null> {
  const incoming = new FrameDecoder();
  return new Promise((resolve, reject) => {
    const data = (chunk: Buffer): void => {
      incoming.push(chunk);
      try {
        for (let packet = incoming.packet(); packet !== null; packet = incoming.packet()) {
          const code = packet.readUInt32BE(4);
          if (code === SSL_REQUEST || code === GSS_REQUEST) {
            client.write('N');
            continue;
          }
          client.off('data', data);
          client.pause();
          resolve({ startup: packet, behind: incoming.takeAll() });
          return;
        }
      } catch (error) {
        reject(error);
      }
    };
    client.on('data', data);
    client.once('close', () => resolve(null));
  });
}

/** Requests the password. Resolves with the bytes after it; null if the password is wrong or the client disconnects. */
async function checkPassword(client: Socket, asked: ClientStartup, password: string): Promise<Buffer | null> {
  const incoming = new FrameDecoder();
  const message = new Promise<Buffer | null>((resolve) => {
    onData(client, (chunk) => {
      incoming.push(chunk);
      const whole = incoming.message(() => MOST_PASSWORD);
      if (whole !== null) resolve(whole);
    });
    client.once('close', () => resolve(null));
  });
  client.unshift(asked.behind);
  client.write(askForPassword());
  client.resume();
  const given = await message;
  client.pause();
  client.removeAllListeners('data');
  if (given?.[0] !== PASSWORD) return null;
  const text = given.subarray(5, -1).toString('utf8');
  return timingSafeEqual(digest(text), digest(password)) ? incoming.takeAll() : null;
}

const PASSWORD = 0x70; // p
const MOST_PASSWORD = 1_024;

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

async function logIn(client: Socket, asked: ClientStartup, options: ProxyOptions): Promise<void> {
  const login = await options.tokens();
  const server = await connectGateway(options.target);
  client.once('close', () => server.destroy());
  server.once('close', () => client.end());
  server.write(withUser(asked.startup, login.subject));
  const rest = await authenticate(client, server, login);
  if (rest === null) return;
  const relay = new Relay({ client, server }, options.tokens, options.renewMs, options.said);
  relay.resume(asked.behind, rest);
  client.resume();
  server.resume();
}

const AUTHENTICATION = 0x52; // R
const CLEARTEXT = 3;

/**
 * Sends the token as the password. Resolves with the server's messages from AuthenticationOk on; null if the server
 * refuses.
 */
function authenticate(client: Socket, server: Socket, login: SubjectToken): Promise<Buffer | null> {
  const incoming = new FrameDecoder();
  return new Promise((resolve) => {
    const data = (chunk: Buffer): void => {
      incoming.push(chunk);
      for (const message of messagesIn(incoming)) {
        const asks = message[0] === AUTHENTICATION ? message.readUInt32BE(5) : null;
        if (asks === CLEARTEXT) {
          server.write(encodeMessage('p', login.token));
        } else if (asks === 0) {
          server.removeAllListeners('data');
          server.pause();
          resolve(Buffer.concat([message, incoming.takeAll()]));
          return;
        } else {
          client.write(message); // a refusal or a notice for the client
        }
      }
    };
    onData(server, data);
    server.once('close', () => resolve(null));
  });
}

const CONNECT_MS = 10_000;

async function connectGateway(target: ProxyTarget): Promise<Socket> {
  const { host, port } = target;
  const socket = connectSocket({ host, port, noDelay: true, keepAlive: true });
  await openSocket(socket, 'connect', target);
  if (target.tls === 'off') return socket;
  socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])); // SSLRequest
  const timer = setTimeout(() => socket.destroy(), CONNECT_MS);
  const answer = await new Promise<string>((resolve) => {
    socket.once('data', (bytes: Buffer) => resolve(bytes.toString('latin1')));
    socket.once('close', () => resolve('')); // refused, closed, or too late
  });
  clearTimeout(timer);
  if (answer === '') throw new Error(`${host}:${port} does not answer the request for TLS`);
  if (answer === 'N' && target.tls === 'prefer') return socket;
  if (answer !== 'S') {
    socket.destroy();
    throw new Error(`${host}:${port} does not offer TLS`);
  }
  const secure = connectTls({
    socket,
    host,
    ...(isIP(host) === 0 && { servername: host }),
    ALPNProtocols: ['postgresql'],
    rejectUnauthorized: target.tls === 'verify',
    ...target.certificates,
  });
  await openSocket(secure, 'secureConnect', target);
  return secure;
}

function openSocket(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  { host, port }: ProxyTarget,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void =>
      reject(new Error(`${host}:${port} cannot be reached: ${error.message}`));
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), CONNECT_MS);
    socket.on('error', fail); // never removed, because without a listener Node would exit
    socket.once(event, () => {
      clearTimeout(timer);
      resolve();
    });
    socket.once('close', () => {
      clearTimeout(timer);
      fail(new Error('the connection was closed'));
    });
  });
}

export interface LocalProxy {
  readonly port: number;
  close(): Promise<void>;
}

/** Listens on loopback only, because anyone who can connect has the rights of the tokens. */
export async function listenProxy(port: number, options: ProxyOptions): Promise<LocalProxy> {
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.once('close', () => clients.delete(client));
    void serveClient(client, options);
  });
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject); // also handles later errors of `accept`
    server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const client of clients) client.destroy();
      }),
  };
}

const COMMAND_MS = 30_000;

/** Token source that runs `command` in a shell and takes its output as the token. */
export function tokensOfCommand(command: string): TokenSource {
  return async () => {
    const token = await outputOf(command);
    return { token, subject: subjectOf(token) };
  };
}

function outputOf(command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('/bin/sh', ['-c', command], { timeout: COMMAND_MS }, (error, out, err) => {
      // Show only standard error, because standard output may contain a token.
      if (error !== null)
        reject(new Error(`the token command failed: ${err.trim().split('\n').at(-1) ?? ''}`));
      else resolve(out.trim());
    });
  });
}

/** Reads `sub` from an unverified token; the server verifies it and checks the user name. @throws Error */
export function subjectOf(token: string): string {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    if (typeof claims === 'object' && claims !== null && 'sub' in claims && typeof claims.sub === 'string')
      return claims.sub;
  } catch {
    // reported below: the text is not a token
  }
  throw new Error('the token command printed no actor token');
}

import { fatal } from '../errors.js';
import { MessageReader, type MessageWriter } from '../message-fields.js';
import { encodingName } from '../text-encoding.js';
import { Backend } from './types.js';

/** Messages before authentication, which have no type byte. */
export type StartupPacket = SslRequest | GssEncRequest | CancelRequest | StartupMessage;

interface SslRequest {
  readonly kind: 'ssl';
}

interface GssEncRequest {
  readonly kind: 'gssenc';
}

interface CancelRequest {
  readonly kind: 'cancel';
  readonly processId: number;
  /** The cancel key, 4 to 256 bytes; empty for a malformed request. */
  readonly key: Buffer;
}

export interface StartupMessage {
  readonly kind: 'startup';
  readonly minor: number;
  /** Parameters by name as sent, without `_pq_.` options; the last value of a repeated name wins, as in Postgres. */
  readonly parameters: ReadonlyMap<string, string>;
  /** The full names of the `_pq_.` options. */
  readonly protocolOptions: readonly string[];
}

/** The newest supported version: 3.2, with cancel keys of 32 bytes. */
export const NEWEST_MINOR = 2;

const CANCEL_REQUEST = (1234 << 16) | 5678;
const SSL_REQUEST = (1234 << 16) | 5679;
const GSSENC_REQUEST = (1234 << 16) | 5680;

/**
 * @param body the packet without its length
 * @throws WireError FATAL 08P01 (malformed), 0A000 (version)
 */
export function decodeStartupPacket(body: Buffer): StartupPacket {
  const reader = new MessageReader(body);
  const code = reader.uint32();
  switch (code) {
    case CANCEL_REQUEST:
      return decodeCancelRequest(reader);
    case SSL_REQUEST:
      reader.end();
      return { kind: 'ssl' };
    case GSSENC_REQUEST:
      reader.end();
      return { kind: 'gssenc' };
    default:
      return decodeStartupMessage(reader, code >>> 16, code & 0xffff);
  }
}

function decodeCancelRequest(reader: MessageReader): CancelRequest {
  const length = reader.remainingBytes;
  if (length < 8 || length > 260) return { kind: 'cancel', processId: 0, key: Buffer.alloc(0) };
  return { kind: 'cancel', processId: reader.int32(), key: reader.bytes(length - 4) };
}

function decodeStartupMessage(reader: MessageReader, major: number, minor: number): StartupMessage {
  if (major !== 3) throw unsupportedVersion(major, minor);
  const parameters = new Map<string, string>();
  const protocolOptions: string[] = [];
  for (;;) {
    if (reader.remainingBytes === 0) throw badLayout();
    const name = reader.cstring();
    if (name === '') break;
    if (reader.remainingBytes === 0) throw badLayout();
    const value = reader.cstring();
    if (name.startsWith('_pq_.')) protocolOptions.push(name);
    else parameters.set(name, value);
  }
  if (reader.remainingBytes !== 0) throw badLayout();
  return { kind: 'startup', minor, parameters, protocolOptions };
}

export function unsupportedVersion(major: number, minor: number) {
  return fatal(
    '0A000',
    `unsupported frontend protocol ${major}.${minor}: server supports 3.0 to 3.${NEWEST_MINOR}`,
  );
}

function badLayout() {
  return fatal('08P01', 'invalid startup packet layout: expected terminator as last byte');
}

/** Encodes a StartupMessage, version 3.0, for the in-process authentication by `pg-gateway`. */
export function encodeStartupMessage(user: string): Uint8Array<ArrayBuffer> {
  const name = Buffer.from(user, 'utf8');
  const packet = new Uint8Array(4 + 4 + 5 + name.length + 1 + 1);
  new DataView(packet.buffer).setUint32(0, packet.length);
  packet[5] = 3;
  packet.set(Buffer.from('user\0'), 8);
  packet.set(name, 13);
  return packet;
}

/** Reports the newest supported version and the unsupported options. libpq expects the full version number. */
export function negotiateProtocolVersion(out: MessageWriter, unsupported: readonly string[]): void {
  out.message(Backend.negotiateProtocolVersion, (fields) => {
    fields.int32((3 << 16) | NEWEST_MINOR);
    fields.int32(unsupported.length);
    for (const name of unsupported) fields.cstring(name);
  });
}

export function parameterStatus(out: MessageWriter, name: string, value: string): void {
  out.message(Backend.parameterStatus, (fields) => {
    fields.cstring(name);
    fields.cstring(value);
  });
}

export function authenticationOk(out: MessageWriter): void {
  out.message(Backend.authentication, (fields) => fields.int32(0));
}

export function backendKeyData(out: MessageWriter, processId: number, key: Uint8Array): void {
  out.message(Backend.backendKeyData, (fields) => {
    fields.int32(processId);
    fields.bytes(key);
  });
}

export interface StartupIdentity {
  readonly user: string;
  readonly database: string;
  /** Other parameters by canonical name. */
  readonly parameters: ReadonlyMap<string, string>;
}

const FALSE_VALUES = new Set(['', '0', 'false', 'off', 'no']);

/**
 * Reads the user, database and settings in a startup message. `permitted` lists the accepted parameters, also within
 * `options`. Other parameters are refused rather than ignored: a client must not believe that its `search_path`
 * applies, and `options=-c…` must not bypass the list (CVE-2025-12819).
 *
 * Throws FATAL 28000 without user, 0A000 for replication, 42501 for a parameter not on the list, 42601 for malformed
 * options, 22023 for an unknown encoding.
 */
export function readIdentity(startup: StartupMessage, permitted: readonly string[]): StartupIdentity {
  const canonical = new Map(permitted.map((name) => [name.toLowerCase(), name]));
  let user = '';
  let database = '';
  const parameters = new Map<string, string>();
  for (const [name, value] of startup.parameters) {
    if (name === 'user') user = value;
    else if (name === 'database') database = value;
    else if (name === 'replication') refuseReplication(value);
    else if (name !== 'options') parameters.set(requirePermitted(name, canonical), value);
  }
  // As in Postgres, the last setting of a name in `options` counts, and a startup parameter overrides it.
  const optionSettings = parseOptions(startup.parameters.get('options') ?? '').map(
    ([name, value]) => [requirePermitted(name, canonical), value] as const,
  );
  for (const [name, value] of new Map(optionSettings)) if (!parameters.has(name)) parameters.set(name, value);
  if (user === '') throw fatal('28000', 'no user name specified in startup packet');
  requireEncoding(parameters.get('client_encoding'));
  return { user, database: database === '' ? user : database, parameters };
}

function requirePermitted(name: string, canonical: ReadonlyMap<string, string>): string {
  const canonicalName = canonical.get(name.toLowerCase());
  if (canonicalName !== undefined) return canonicalName;
  throw fatal('42501', `startup parameter "${name}" is not permitted`, {
    hint: 'Remove it from the connection settings; what a session may change, it can SET once connected.',
  });
}

/** Parses `-c name=value` and `--name=value`; a backslash escapes the next character. */
function parseOptions(options: string): readonly (readonly [name: string, value: string])[] {
  const words = [...options.matchAll(/(?:\\[\s\S]|\S)+/g)].map(([word]) => word.replace(/\\([\s\S])/g, '$1'));
  const settings: (readonly [string, string])[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const setting = word === '-c' ? words[++i] : /^(?:-c|--)(.+)$/s.exec(word)?.[1];
    const [, name = '', value] = /^([^=]+)=(.*)$/s.exec(setting ?? '') ?? [];
    if (value === undefined)
      throw fatal('42601', 'startup parameter "options" is not understood', {
        hint: 'It takes settings: -c name=value.',
      });
    settings.push([name.replaceAll('-', '_'), value]);
  }
  return settings;
}

function refuseReplication(value: string): void {
  if (FALSE_VALUES.has(value.toLowerCase())) return;
  throw fatal('0A000', 'replication connections are not supported');
}

/** Rejects unknown encodings. Quoted names are accepted, because asyncpg sends them. */
function requireEncoding(encoding: string | undefined): void {
  if (encoding === undefined || encodingName(encoding) !== null) return;
  throw fatal('22023', `invalid value for parameter "client_encoding": "${encoding}"`);
}

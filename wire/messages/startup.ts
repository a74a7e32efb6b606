import { fatal } from '../errors.js';
import { MessageReader } from '../message-reader.js';
import type { MessageWriter } from '../message-writer.js';
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
  const length = reader.left;
  if (length < 8 || length > 260) return { kind: 'cancel', processId: 0, key: Buffer.alloc(0) };
  return { kind: 'cancel', processId: reader.int32(), key: reader.bytes(length - 4) };
}

function decodeStartupMessage(reader: MessageReader, major: number, minor: number): StartupMessage {
  if (major !== 3) throw unsupportedVersion(major, minor);
  const parameters = new Map<string, string>();
  const protocolOptions: string[] = [];
  for (;;) {
    if (reader.left === 0) throw badLayout();
    const name = reader.cstring();
    if (name === '') break;
    if (reader.left === 0) throw badLayout();
    const value = reader.cstring();
    if (name.startsWith('_pq_.')) protocolOptions.push(name);
    else parameters.set(name, value);
  }
  if (reader.left !== 0) throw badLayout();
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

/** Encodes a StartupMessage, version 3.0, for the internal authentication exchange. */
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

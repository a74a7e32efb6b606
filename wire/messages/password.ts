import { protocolViolation } from '../errors.js';
import { MessageReader } from '../message-reader.js';
import type { Frontend } from './types.js';

/** PasswordMessage: one NUL-terminated string and nothing behind it. 08P01, 22021. */
export function decodePassword(body: Buffer): string {
  const reader = new MessageReader(body);
  const password = reader.cstring();
  if (reader.left !== 0) throw protocolViolation('invalid password packet size');
  return password;
}

/** The whole message again, in memory of its own, for the exchange behind the guard. */
export function encodePassword(type: typeof Frontend.password, body: Buffer): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(5 + body.length);
  message[0] = type;
  new DataView(message.buffer).setUint32(1, 4 + body.length);
  message.set(body, 5);
  return message;
}

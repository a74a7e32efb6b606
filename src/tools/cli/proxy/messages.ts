/** The little of the Postgres protocol that the proxy says itself. */

export const SSL_REQUEST = 80_877_103;
export const GSS_REQUEST = 80_877_104;
export const CANCEL_REQUEST = 80_877_102;
/** Postgres' own bound on one message: what either side says is passed on, whatever it is. */
export const anyMessage = (): number => 0x4000_0000;

/** The startup packet with another user; every other parameter stays as the client sent it. */
export function withUser(startup: Buffer, user: string): Buffer {
  const words = startup.toString('utf8', 8).split('\0').slice(0, -2);
  const parameters = new Map<string, string>();
  for (let i = 0; i + 1 < words.length; i += 2) parameters.set(words[i] ?? '', words[i + 1] ?? '');
  parameters.set('user', user);
  const body = Buffer.from(`${[...parameters].map(([name, value]) => `${name}\0${value}\0`).join('')}\0`);
  const packet = Buffer.alloc(8 + body.length);
  packet.writeUInt32BE(packet.length, 0);
  startup.copy(packet, 4, 4, 8);
  body.copy(packet, 8);
  return packet;
}

export function typed(type: string, body: string): Buffer {
  const text = Buffer.from(`${body}\0`);
  const message = Buffer.alloc(5 + text.length);
  message.write(type, 0, 'latin1');
  message.writeUInt32BE(4 + text.length, 1);
  text.copy(message, 5);
  return message;
}

export function fatalError(text: string, sqlstate = '08006'): Buffer {
  return typed('E', ['SFATAL', 'VFATAL', `C${sqlstate}`, `M${text}`, ''].join('\0'));
}

/** AuthenticationCleartextPassword. */
export function askForPassword(): Buffer {
  return Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]);
}
